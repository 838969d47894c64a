"""``scontrol show node``, with or without ``-o``: the devices of each node that Slurm would use.

Fields as in Slurm 20.11 to 25.05: ``Gres=gpu:h100:8(S:0-1)``, ``State=IDLE+DRAIN``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from planner.errors import Problem, SpecError
from planner.machines.base import Devices, Node, Nodes, Reader, unfinished

_NODE = re.compile(r"(?m)^[ \t]*NodeName=(\S+)")
_FIELD = re.compile(r"(?:^|\s)(Gres|State|Arch|CPUTot)=(\S*)")
_GPU = re.compile(r"gpu(?::([^:(]+))?(?::([0-9]{1,4}))?(?:\([^()]*\))?")
_SLICE = re.compile(r".*[_-]?[0-9]+g\.[0-9]+gb.*", re.IGNORECASE)
"""Type of a MIG slice, as in ``a100_1g.5gb``."""
_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "POWERED_DOWN", "MAINT", "UNKNOWN", "FUTURE", "ERROR", "INVAL")
_FLAGS = str.maketrans("", "", "*~#!%$@^-")
"""What may stand behind a state."""


def recognises(text: str) -> bool:
    """Tell whether a text lists nodes."""
    return bool(_NODE.search(text)) and "PartitionName=" not in text[:200]


def read(text: str, origin: str) -> Nodes:
    """Return the nodes that have devices and are up.

    Raises:
        SpecError: a record is cut off, or no node has devices that are up.

    """
    nodes: list[Node] = []
    problems: list[Problem] = []
    left: Counter[str] = Counter()
    for line, name, record in _records(text):
        fields = dict(_FIELD.findall(record))
        place = f"{origin}:{line} {name}"
        if missing := [key for key in ("Gres", "State") if key not in fields]:
            message = f"has no {' and no '.join(missing)}; the list is cut off, take it anew with scontrol -o show node"
            problems.append(Problem(place, message))
            continue
        devices, wrong = _devices(fields["Gres"])
        problems += [Problem(place, message) for message in wrong]
        state = next((one for one in _UNUSABLE if one in fields["State"].translate(_FLAGS).split("+")), "")
        if not devices or state:
            left[state.lower() if devices else "without devices"] += 1
        elif not wrong:
            nodes.append(Node(name=name, devices=devices))
    if problems:
        raise SpecError(problems)
    notes = [f"nodes that are {why} are left out: {count}" for why, count in left.items() if why != "without devices"]
    if not nodes:
        raise SpecError.of(origin, f"has no node with devices that is up ({'; '.join(notes) or 'no Gres=gpu:...'})")
    return Nodes(nodes=tuple(nodes), notes=(*notes, *unfinished(text)))


def _records(text: str) -> Iterator[tuple[int, str, str]]:
    """Return line, name and text of each node."""
    starts = list(_NODE.finditer(text))
    ends = [one.start() for one in starts[1:]] + [len(text)]
    line, before = 1, 0
    for match, end in zip(starts, ends, strict=True):
        line += text.count("\n", before, match.start(1))
        before = match.start(1)
        yield line, match[1], text[match.start() : end]


def _devices(gres: str) -> tuple[tuple[Devices, ...], list[str]]:
    """Return the devices of a list of generic resources, and what is wrong with it."""
    found: list[Devices] = []
    wrong: list[str] = []
    for one in re.split(r",(?![^(]*\))", gres):
        if not re.match(r"gpu(?![^:(])", one):
            continue
        match = _GPU.fullmatch(one)
        if not match:
            wrong.append(f"has {one[:40]!r} in Gres, which is not read; it should look like gpu:h100:8")
            continue
        kind, count = match[1] or "", match[2]
        if kind.isdecimal() and count is None:
            kind, count = "", kind[:4]
        if _SLICE.fullmatch(kind):
            wrong.append(f"has MIG slices ({kind[:40]}), which are not planned; turn MIG off, or leave the node out")
        elif int(count or 1):
            found.append(Devices(name=kind, count=int(count or 1)))
    return tuple(found), wrong


SLURM_NODES = Reader(name="scontrol -o show node", recognises=recognises, read=read)
