"""``rocm-smi --showtopo`` and ``--showproductname``, as text or with ``--json``: links and names of a node's devices.

Layout of ROCm 5 to 6 (public issues ROCm/rocm_smi_lib 108, ROCm/rocm-systems 5763). A hop count of 1 is any way over
XGMI, 2 over PCI Express within a socket, 3 from one socket to another (AMD's MI200 optimization guide).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations

from planner.errors import SpecError
from planner.loader import parse
from planner.machines.base import Machine, Pair, Reader, Tie

_TITLE = re.compile(r"=+ *(Weight|Hops|Link Type) between two GPUs *=+", re.IGNORECASE)
_ROW = re.compile(r"GPU([0-9]+)((?:\s+[A-Za-z0-9/]+)+)\s*")
_NAME = re.compile(r"(?:GPU|DCU|HCU)\[([0-9]+)\]\s*:\s*Card Series:\s*(\S.*)", re.IGNORECASE)
_PAIR = re.compile(r"\(Topology\) (Link type|Hops) between DRM devices ([0-9]+) and ([0-9]+)", re.IGNORECASE)
_CARD = re.compile(r"card([0-9]{1,4})")

Table = dict[Pair, str]
"""Pair of devices, as the tool counts them -> word."""


def recognises(text: str) -> bool:
    """Tell whether a text is of the tool."""
    if text.lstrip()[:1] == "{":
        return bool(_PAIR.search(text) or re.search(r'"card[0-9]+"\s*:\s*\{[^{}]*"Card Series"', text, re.IGNORECASE))
    return any(map(_TITLE.fullmatch, map(str.strip, text.splitlines()))) or any(
        map(_NAME.fullmatch, map(str.strip, text.splitlines()))
    )


def read(text: str, origin: str) -> Machine:
    """Return the devices of a node.

    Raises:
        SpecError: blocks are cut off or contradict each other.

    """
    is_json = text.lstrip()[:1] == "{"
    names, kinds, hops = _of_json(text, origin) if is_json else _of_text(text, origin)
    numbers = sorted(set(names) | {number for pair in kinds for number in pair})
    if not numbers:
        raise SpecError.of(origin, "lists no devices; take it anew with rocm-smi --showtopo --showproductname")
    if kinds and (missing := [pair for pair in combinations(numbers, 2) if pair not in kinds]):
        a, b = missing[0]
        raise SpecError.of(
            origin, f"does not tell the link between GPU{a} and GPU{b}; the dump is cut off, take it anew"
        )
    if names and (nameless := [number for number in numbers if number not in names]):
        raise SpecError.of(origin, f"does not name GPU{nameless[0]}; the dump is cut off, take it anew")
    index = {number: position for position, number in enumerate(numbers)}
    return Machine(
        vendor="amd",
        num_devices=len(numbers),
        names=tuple(names[number] for number in numbers) if names else (),
        ties={(index[a], index[b]): _tie(kind, hops.get((a, b), ""), origin) for (a, b), kind in kinds.items()},
    )


def _tie(kind: str, hops: str, origin: str) -> Tie:
    if kind.upper() == "XGMI":
        return Tie("xgmi")
    if kind.upper() == "PCIE":
        return Tie("pcie", far=hops == "3")
    raise SpecError.of(origin, f"has a link of type {kind[:20]!r}; XGMI and PCIE are known")


def _of_text(text: str, origin: str) -> tuple[dict[int, str], Table, Table]:
    """Return names, link types and hops."""
    names: dict[int, str] = {}
    blocks: dict[str, list[tuple[int, int, list[str]]]] = {}
    block: list[tuple[int, int, list[str]]] = []
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if title := _TITLE.fullmatch(line):
            block = blocks.setdefault(title[1].lower(), [])
        elif line.startswith("=="):
            block = []
        elif name := _NAME.fullmatch(line):
            names[int(name[1][:6])] = name[2]
        elif (row := _ROW.fullmatch(line)) and not row[2].split()[0].startswith("GPU"):
            block.append((number, int(row[1][:6]), row[2].split()))
    return names, _table(blocks.get("link type", []), origin), _table(blocks.get("hops", []), origin)


def _table(rows: list[tuple[int, int, list[str]]], origin: str) -> Table:
    """Return the upper half of a matrix."""
    numbers = [number for _, number, _ in rows]
    found: Table = {}
    for line, number, words in rows:
        if len(words) != len(rows):
            message = f"has {len(words)} columns in a table of {len(rows)} rows; the dump is cut off, take it anew"
            raise SpecError.of(f"{origin}:{line} GPU{number}", message)
        found |= {(number, other): word for other, word in zip(numbers, words, strict=True) if other > number}
    return found


def _of_json(text: str, origin: str) -> tuple[dict[int, str], Table, Table]:
    """Return names, link types and hops."""
    value = parse(text, origin).value
    names: dict[int, str] = {}
    tables: dict[str, Table] = {"link type": {}, "hops": {}}
    if not isinstance(value, Mapping):
        raise SpecError.of(origin, "is no output of rocm-smi --json; take it anew")
    for key, inner in value.items():
        if not isinstance(inner, Mapping):
            continue
        if card := _CARD.fullmatch(key):
            names |= {int(card[1]): str(word) for title, word in inner.items() if title.lower() == "card series"}
        for title, word in inner.items():
            if match := _PAIR.fullmatch(title):
                a, b = sorted((int(match[2][:6]), int(match[3][:6])))
                tables[match[1].lower()][a, b] = str(word)
    return names, tables["link type"], tables["hops"]


ROCM_SMI = Reader(name="rocm-smi --showtopo --showproductname", recognises=recognises, read=read)
