"""What an unquoted word of YAML means to the planner."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

MAX_DIGITS = 40
"""Digits of a whole number that are read."""

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_OCTAL = re.compile(r"[-+]?0[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.?(nan|inf|infinity)\Z", re.IGNORECASE)
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


def scalar(text: str) -> bool | int | float | str | None:
    """Return what an unquoted word of YAML means: ``1e9`` is a float, and ``NO``, ``yes`` and ``12:30`` are strings.

    Raises:
        ValueError: the word is a trap (``010``, ``.nan``); the message says what to write.

    """
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text):
        return integer(text)
    if _OCTAL.match(text):
        raise ValueError(
            f"{text[:20]} may mean an octal number; write it without the leading 0, or in quotes if it is text"
        )
    if _FLOAT.match(text):
        return finite(text)
    if _NOT_FINITE.match(text):
        return finite(text)
    return text


def integer(text: str) -> int:
    """Return the whole number that `text` writes; ValueError if it is absurdly long."""
    if len(text) > MAX_DIGITS:
        raise ValueError(f"{text[:12]}... has {len(text)} digits; write a number of at most {MAX_DIGITS}")
    return int(text)


def finite(text: str) -> float:
    """Return the number that `text` writes; ValueError if it is infinite or not a number."""
    value = float(text) if _FLOAT.match(text) else math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is not a finite number; write a number, or quotes around it if it is text")
    return value
