"""Megatron-LM's flags, from a table of all that its parser knows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

VALUE, TRUE, FALSE, EITHER = "value", "true", "false", "either"


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag as Megatron's parser knows it."""

    dest: str
    """Under which it is known inside Megatron, and to rules."""
    kind: str
    """``value`` takes values, ``true`` and ``false`` switch on and off, ``either`` has a twin with ``--no-``."""
    type: str
    """``int``, ``float`` or ``text`` of its values, ``switch`` if it has none."""
    nargs: int | str | None
    """Number of values, ``+`` or ``*`` for lists of any length; None: one value."""
    choices: tuple[Any, ...] | None
    default: Any


@cache
def flags() -> Mapping[str, Flag]:
    """Return every flag by its name, ``--no-`` twins included."""
    text = files("planner").joinpath("catalog", "megatron_flags.json").read_text(encoding="utf-8")
    found = {}
    for name, (dest, kind, type_, nargs, choices, default) in json.loads(text)["flags"].items():
        flag = Flag(dest, kind, type_, nargs, tuple(choices) if choices else None, default)
        found[name] = flag
        if kind == EITHER:
            found["--no-" + name[2:]] = Flag(dest, FALSE, type_, nargs, None, default)
    return found


@cache
def defaults() -> Mapping[str, Any]:
    """Return what Megatron takes where a flag is not written, by its inner name."""
    return {flag.dest: flag.default for flag in flags().values()}


@cache
def names() -> Mapping[str, str]:
    """Return the flag of every inner name."""
    return {flag.dest: name for name, flag in reversed(list(flags().items()))}
