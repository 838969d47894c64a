"""Sentences about Megatron-LM's flags and inner names, in the words of somebody who writes overrides of a recipe."""

from __future__ import annotations

import re
from functools import cache

from planner.configurations.forms.bridge.keys import INVERTED, KEYS
from planner.configurations.megatron.flags import FALSE, flags
from planner.configurations.megatron.words import Words

_INNER = re.compile(r"(?<![\w.'/-])[a-z0-9]+(?:_[a-z0-9]+)+(?![\w.=])")


@cache
def _keys() -> dict[str, str]:
    """Return the key to write for every inner name."""
    return {inner: key for key, inner in reversed([*KEYS.items(), *INVERTED.items()])}


def key_of(inner: str) -> str:
    """Return the key of one of Megatron's inner names; the name itself where there is none."""
    return _keys().get(inner, inner)


def _key(flag: str) -> str:
    return _keys().get(flags()[flag].dest, "")


def _switch(flag: str) -> bool:
    return (flags()[flag].kind != FALSE) != (_key(flag) in INVERTED)


WORDS = Words(key=_key, pair="{key}={value}", quoted="'{key}={value}'", switch=_switch)


def in_words(message: str) -> str:
    """Return a message with keys and ``KEY=VALUE`` for flags and their values."""
    return _INNER.sub(lambda match: key_of(match[0]), WORDS.of(message))
