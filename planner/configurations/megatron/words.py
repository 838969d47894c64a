"""Sentences about Megatron-LM's flags in the words of a form that writes them otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from planner.configurations.megatron.flags import VALUE, flags

_FLAG = re.compile(
    r"(?P<verb>\b(?:add|write|keep) )?(?<![\w-])(?P<flag>--[a-z0-9][a-z0-9-]*)(?![\w-])"
    r"(?: (?P<quoted>'[^']*')| (?P<list>\d+(?:, (?:\d+|\.\.\.))+)| (?P<value>[a-z0-9_+]+)(?![\w.]))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How a form writes Megatron's flags."""

    key: Callable[[str], str]
    """Flag -> key; empty where it has none."""
    pair: str
    """A key and its value, as ``{key}={value}``."""
    quoted: str
    """The same of a value that has to be quoted."""
    switch: Callable[[str], bool]
    """Flag without a value -> what its key is set to."""

    def of(self, message: str) -> str:
        """Return a message with keys for flags, and pairs for flags and their values or for switches to be set."""
        return _FLAG.sub(self._said, message)

    def _said(self, match: re.Match[str]) -> str:
        flag, name = flags().get(match["flag"]), match["flag"]
        key = self.key(name) if flag else ""
        if flag is None or not key:
            return match[0]
        verb, quoted, listed, value = match["verb"] or "", match["quoted"], match["list"], match["value"]
        rest = match[0][match.end("flag") - match.start() :]
        if flag.kind != VALUE:
            on = self.switch(name)
            return verb + (self.pair.format(key=key, value=str(on).lower()) if verb or not on else key) + rest
        if quoted:
            return verb + self.quoted.format(key=key, value=quoted[1:-1])
        if listed:
            return f"{verb}{key} of {listed}"
        if value and (value.isdecimal() or value in (flag.choices or ())):
            return verb + self.pair.format(key=key, value=value)
        return f"{verb}{key}{rest}"
