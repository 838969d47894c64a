"""Sentences about Megatron-LM's flags and inner names, in the words of somebody who writes overrides of a recipe."""

from __future__ import annotations

import re
from functools import cache

from planner.configurations.forms.bridge.keys import INVERTED, KEYS
from planner.configurations.megatron.flags import FALSE, VALUE, flags

_FLAG = re.compile(
    r"(?P<verb>\b(?:add|write|keep) )?(?<![\w-])(?P<flag>--[a-z0-9][a-z0-9-]*)(?![\w-])"
    r"(?: (?P<quoted>'[^']*')| (?P<list>\d+(?:, (?:\d+|\.\.\.))+)| (?P<value>[a-z0-9_+]+)(?![\w.]))?"
)
_INNER = re.compile(r"(?<![\w.'/-])[a-z0-9]+(?:_[a-z0-9]+)+(?![\w.=])")


@cache
def _keys() -> dict[str, str]:
    """Return the key to write for every inner name."""
    return {inner: key for key, inner in reversed([*KEYS.items(), *INVERTED.items()])}


def key_of(inner: str) -> str:
    """Return the key of one of Megatron's inner names; the name itself where there is none."""
    return _keys().get(inner, inner)


def in_words(message: str) -> str:
    """Return a message with keys and ``KEY=VALUE`` for flags and their values."""
    return _INNER.sub(lambda match: key_of(match[0]), _FLAG.sub(_said, message))


def _said(match: re.Match[str]) -> str:
    """Return what stands for a flag and what follows it."""
    flag = flags().get(match["flag"])
    key = _keys().get(flag.dest) if flag else None
    if flag is None or key is None:
        return match[0]
    verb, quoted, listed, value = match["verb"] or "", match["quoted"], match["list"], match["value"]
    rest = match[0][match.end("flag") - match.start() :]
    if flag.kind != VALUE:
        on = (flag.kind != FALSE) != (key in INVERTED)
        return f"{verb}{key}{f'={on}'.lower() if verb or not on else ''}{rest}"
    if quoted:
        return f"{verb}'{key}={quoted[1:-1]}'"
    if listed:
        return f"{verb}{key} of {listed}"
    if value and (value.isdecimal() or value in (flag.choices or ())):
        return f"{verb}{key}={value}"
    return f"{verb}{key}{rest}"
