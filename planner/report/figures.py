"""Numbers as people read them, with few digits and their unit."""

from __future__ import annotations

import math

from planner.units import GIB, Bytes, Seconds

_LARGE = ((1e12, "T"), (1e9, "B"), (1e6, "M"))
"""From where on a count is shortened, and by which letter."""
_WORDS = {"pipeline_bubble": "waiting for others"}
"""Identifier -> what says it better: what one stage waits for, beside the bubble, which is of all of them."""
_DAY = 86_400.0
"""[s]"""


def count(number: float) -> str:
    """Return a count with thousands apart, ``1,792``."""
    return f"{number:,.0f}"


def short(number: float) -> str:
    """Return a large count with three digits, ``405.9 B``."""
    for scale, letter in _LARGE:
        if abs(number) >= scale * 0.9995:
            return f"{_digits(number / scale)} {letter}"
    return count(number)


def seconds(time: Seconds) -> str:
    """Return a time with three digits, ``3.82 s`` or ``41.2 ms``; a bound that is not known is ``-``."""
    if not math.isfinite(time):
        return "-"
    if time == 0 or time >= 1:
        return f"{_digits(time)} s"
    scale, unit = (1e3, "ms") if time >= 1e-3 else (1e6, "us")
    return f"{_digits(time * scale)} {unit}"


def milliseconds(time: Seconds) -> str:
    """Return a time in milliseconds without its unit."""
    return _digits(time * 1e3)


def days(time: Seconds) -> str:
    """Return a long time in days, or in hours where it is short."""
    return f"{_digits(time / _DAY)} days" if time >= 2 * _DAY else f"{_digits(time / 3600)} hours"


def gib(size: Bytes) -> str:
    """Return a size in GiB without its unit, one digit behind the point."""
    return f"{size / GIB:,.1f}"


def percent(share: float) -> str:
    """Return a share, ``41.2%``; what would be rounded to all or nothing keeps a digit."""
    return f"{share:.1%}" if math.isfinite(share) else "-"


def rate(bandwidth: float) -> str:
    """Return a bandwidth [bytes/s] in units of 10^9 bytes."""
    return f"{_digits(bandwidth / 1e9)} GB/s"


def plural(number: int, noun: str) -> str:
    """Return a count with its noun, ``1 device`` or ``8 devices``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def words(name: str) -> str:
    """Return an identifier as words, ``step overhead``."""
    return _WORDS.get(name, name.replace("_", " "))


def _digits(number: float) -> str:
    """Return three digits or more, without a point where three stand before it."""
    size = abs(number)
    behind = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return f"{number:,.{behind}f}"
