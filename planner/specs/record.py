"""What all written records share: strict models, whole numbers, and kinds of figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field

from planner.errors import SpecError


def whole(value: object) -> object:
    """Return a float without fraction (``1e3``) as the whole number that it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def known(lookup: Callable[[str], object]) -> Callable[[str], str]:
    """Return a validator of names that `lookup` must know."""

    def check(name: str) -> str:
        try:
            lookup(name)
        except SpecError as error:
            raise ValueError(error.problems[0].message) from None
        return name

    return check


def block_or_name(value: object) -> str:
    """Return the tag of the alternative that `value` is written as."""
    return "<block>" if isinstance(value, (dict, BaseModel)) else "<name>"


Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**9)]
Several = Annotated[int, BeforeValidator(whole), Field(ge=2, le=10**9)]
Positive = Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=1e15, allow_inf_nan=False)]
Factor = Annotated[float, Field(ge=1, le=1e6)]
Share = Annotated[float, Field(gt=0, le=1)]
Switch = Discriminator(block_or_name)


class Record(BaseModel):
    """The base of all records: unknown keys are problems, and text is never taken for a number."""

    # Deferred, because only the outermost record needs its validator built, and building costs start-up time.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True, protected_namespaces=())


def one_rate(record: Any, *names: str) -> None:
    """Demand exactly one of the keys `names`."""
    given = [name for name in names if getattr(record, name) is not None]
    if not given:
        raise ValueError(f"gives no rate; add {' or '.join(names)}")
    if len(given) > 1:
        raise ValueError(f"gives its rate {len(given)} times, as {' and '.join(given)}; keep one")
