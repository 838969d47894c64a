"""A job as it is written: keys, units and what each field alone may hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from planner.domain.precision import PRECISIONS
from planner.specs import catalog
from planner.specs.problems import nearest, shown
from planner.specs.record import Amount, Count, Positive, Record, Text, known, whole

Framework = Annotated[
    str, AfterValidator(known(catalog.framework)), AfterValidator(lambda name: catalog.framework(name).name)
]
Tokens = Annotated[int, BeforeValidator(whole), Field(ge=1, le=10**15)]
USUAL_OPTIMIZER = "framework"
"""The optimizer recipe that is usual with the framework."""


def _precision(name: str) -> str:
    """Return the name of a precision, or say which there are."""
    if name not in PRECISIONS:
        raise ValueError(f"should be a precision, not {shown(name)}{nearest(name, PRECISIONS)}")
    return name


def _optimizer(name: str) -> str:
    """Return the name of an optimizer recipe as the catalogue has it."""
    if catalog.simple(name) == USUAL_OPTIMIZER:
        return USUAL_OPTIMIZER
    return catalog.optimizer(known(catalog.optimizer)(name)).name


Precision = Annotated[str, AfterValidator(_precision), Field(json_schema_extra={"enum": list(PRECISIONS)})]


class JobRecord(Record):
    """The training job and the demands on the plan; what is left out gets its default, which is printed."""

    global_batch: Annotated[Count, Field(le=10**6)] | None = Field(None, description="[samples] of one optimizer step.")
    global_batch_tokens: Tokens | None = Field(None, description="[tokens] of one step, instead of global_batch.")
    sequence_length: Count | None = Field(None, description="[tokens] of one sample.")
    precision: Precision | None = Field(None, description="Of the matrix products.")
    framework: Framework | None = Field(None, description="Profile of costs and memory.")
    optimizer: Annotated[str, AfterValidator(_optimizer)] | None = Field(
        None, description="Optimizer recipe; framework, the default, is the usual one of the profile."
    )
    target: Framework | None = Field(None, alias="for", description="Framework that must be able to run the plan.")
    headroom: Annotated[float, Field(ge=0, lt=1)] | None = Field(None, description="[-] share of memory left free.")
    gap: Annotated[float, Field(ge=0, lt=1)] | None = Field(None, description="[-] wanted distance from the bound.")
    time_limit_s: Amount | None = Field(None, description="[s] of search; 0 for no limit.")
    total_tokens: Positive | None = Field(None, description="[tokens] of the whole training.")
    constraints: list[Text] = Field([], description='Such as "tp <= 8".')

    @model_validator(mode="after")
    def has_one_batch(self) -> JobRecord:
        """Refuse two sizes of a batch."""
        if self.global_batch is not None and self.global_batch_tokens is not None:
            raise ValueError("gives both global_batch and global_batch_tokens; keep one")
        return self
