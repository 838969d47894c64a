"""Many values as one: frozen dataclasses of numbers become one of arrays, and the formulas price them all at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

Value = TypeVar("Value")
NUMBERS = frozenset({int, float})
"""Types of what is stacked; a bool is none of them."""
WORDS = frozenset({str, bool, type(None)})
"""Types that must be the same."""


def structure(value: object) -> Hashable:
    """Return what values must have in common to be stacked: everything but their numbers, of which only zero counts."""
    kind: Any = type(value)
    if kind in NUMBERS:
        return value == 0
    row = _row(kind)
    items: Any = row(value) if row else value
    if row or kind is tuple:
        # Numbers and words are most of what there is: no call for each of them.
        return (
            kind,
            *[
                item == 0 if type(item) in NUMBERS else item if type(item) in WORDS else structure(item)
                for item in items
            ],
        )
    return value if isinstance(value, Hashable) else id(value)


def stack(values: Sequence[Value]) -> Value:
    """Return one value whose numbers are (len(values),) arrays; numbers that are all equal stay what they are.

    All values must have the same `structure`.
    """
    stacked: Value = _stack(values)
    return stacked


def _stack(values: Sequence[Any]) -> Any:
    first = values[0]
    kind: Any = type(first)
    if kind in NUMBERS:
        import numpy as np

        return first if values.count(first) == len(values) else np.array(values, dtype=float)
    if all(value is first for value in values):
        return first
    if kind is tuple:
        return tuple(_stack(column) for column in zip(*values, strict=True))
    if (row := _row(kind)) is not None:
        return kind(**dict(zip(_names(kind), map(_stack, zip(*map(row, values), strict=True)), strict=True)))
    return first


@cache
def _row(kind: type) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return what reads all fields of a dataclass at once; None of another type."""
    if not is_dataclass(kind):
        return None
    names = _names(kind)
    getter = attrgetter(*names)
    return getter if len(names) > 1 else lambda value: (getter(value),)


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
