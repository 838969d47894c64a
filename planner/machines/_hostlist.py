"""Slurm's short form of node names, ``node[01-03,07]``, to the names."""

from __future__ import annotations

import re
from itertools import product

from planner.errors import SpecError

MAX_NODES = 200_000
"""Nodes that are counted; no system has as many."""
_WORD = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_PIECE = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def hostlist(text: str, place: str) -> tuple[str, ...]:
    """Return the names that a hostlist stands for, in its order; numbers keep their leading zeros.

    Raises:
        SpecError: it is no hostlist, or stands for too many names.

    """
    names: list[str] = []
    text = text.strip()
    if _WORD.sub("", text).strip(",") or text.count("[") != text.count("]"):
        raise SpecError.of(place, f"{text[:60]!r} is no list of nodes; write names such as node[01-03,07]")
    for word in _WORD.findall(text):
        pieces = [_numbers(inside, place) if inside or not plain else [plain] for inside, plain in _PIECE.findall(word)]
        for parts in product(*pieces):
            names.append("".join(parts))
            if len(names) > MAX_NODES:
                raise SpecError.of(place, f"stands for more than {MAX_NODES:,} nodes; check its ranges")
    return tuple(names)


def _numbers(ranges: str, place: str) -> list[str]:
    """Return the numbers inside one pair of brackets."""
    found: list[str] = []
    for one in ranges.split(","):
        match = _RANGE.fullmatch(one.strip())
        if not match or (match[2] and int(match[2]) < int(match[1])):
            raise SpecError.of(place, f"[{ranges[:40]}] has {one[:20]!r}, which is no range of numbers such as 01-03")
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first >= MAX_NODES:
            raise SpecError.of(place, f"stands for more than {MAX_NODES:,} nodes; check its ranges")
        found += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return found
