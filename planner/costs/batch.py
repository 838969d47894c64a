"""Many values as one: frozen dataclasses of numbers become one of arrays, and the formulas price them all at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

Value = TypeVar("Value")


def structure(value: object) -> Hashable:
    """Return what values must have in common to be stacked: everything but their numbers, of which only zero counts."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value == 0
    if isinstance(value, tuple):
        return tuple(structure(item) for item in value)
    if is_dataclass(value):
        return (type(value), *(structure(getattr(value, field.name)) for field in fields(value)))
    return value if isinstance(value, Hashable) else id(value)


def stack(values: Sequence[Value]) -> Value:
    """Return one value whose numbers are (len(values),) arrays; numbers that are all equal stay what they are.

    All values must have the same `structure`.
    """
    stacked: Value = _stack(values)
    return stacked


def _stack(values: Sequence[Any]) -> Any:
    first = values[0]
    if all(value is first for value in values):
        return first
    if isinstance(first, (int, float)) and not isinstance(first, bool):
        import numpy as np

        return first if all(value == first for value in values) else np.array(values, dtype=float)
    if isinstance(first, tuple):
        return tuple(_stack(column) for column in zip(*values, strict=True))
    if is_dataclass(first):
        columns = {field.name: _stack([getattr(value, field.name) for value in values]) for field in fields(first)}
        return type(first)(**columns)  # type: ignore[misc]
    return first
