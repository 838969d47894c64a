"""``nvidia-smi topo -m``: the matrix of how devices and network adapters of a node reach each other.

The layout is that of the legend which the tool prints, and of dumps in public issues (sgl-project/sglang 13973,
NVIDIA/go-gpuallocator 17, NVIDIA/nccl 707): rows and columns of devices, then of adapters, then columns of affinity.
"""

from __future__ import annotations

import re

from planner.errors import Problem, SpecError
from planner.machines.base import Machine, Pair, Reader, Tie

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_DEVICE = re.compile(r"GPU[0-9]+")
_HEADER = re.compile(r"^\s*GPU[0-9]+(\s+GPU[0-9]+)*(\s+(?!GPU[0-9])\S+)*\s*$")
_CODES = {"PIX": False, "PXB": False, "PHB": False, "NODE": False, "SYS": True, "SOC": True}
"""Code of a path over PCI Express -> whether it leaves the socket; SOC is what drivers before 384 wrote for SYS."""
_NVLINK = re.compile(r"NV([0-9]{1,3})")


def recognises(text: str) -> bool:
    """Tell whether a text is the matrix."""
    lines = [_ANSI.sub("", line) for line in text.splitlines()]
    return any(_HEADER.match(line) for line in lines) and any(
        re.match(r"\s*GPU[0-9]+\s+X\s", line + " ") for line in lines
    )


def read(text: str, origin: str) -> Machine:
    """Return the ties of a node's devices.

    Raises:
        SpecError: rows or columns are missing, unknown or contradict each other.

    """
    lines = [_ANSI.sub("", line) for line in text.splitlines()]
    header = next(number for number, line in enumerate(lines) if _HEADER.match(line))
    columns = _columns(lines[header])
    devices = [name for name in columns if _DEVICE.fullmatch(name)]
    rows: dict[str, tuple[int, list[str]]] = {}
    for number, line in enumerate(lines[header + 1 :], header + 2):
        name, *codes = line.split() or [""]
        if name in devices:
            rows[name] = (number, codes)
    if missing := [name for name in devices if name not in rows]:
        message = f"has no row for {', '.join(missing)}; the dump is cut off, take it anew with nvidia-smi topo -m"
        raise SpecError.of(f"{origin}:{header + 1}", message)
    ties, problems = _ties(devices, rows, origin, len(columns))
    if problems:
        raise SpecError(problems)
    return Machine(vendor="nvidia", num_devices=len(devices), ties=ties, adapters=len(columns) - len(devices))


def _columns(header: str) -> list[str]:
    """Return the names of the columns before those of affinity, ``CPU Affinity`` and after."""
    words = header.split()
    return words[: words.index("CPU")] if "CPU" in words else words


def _ties(
    devices: list[str], rows: dict[str, tuple[int, list[str]]], origin: str, width: int
) -> tuple[dict[Pair, Tie], list[Problem]]:
    ties: dict[Pair, Tie] = {}
    problems: list[Problem] = []
    for row, name in enumerate(devices):
        line, codes = rows[name]
        place = f"{origin}:{line} {name}"
        if len(codes) < width:
            problems.append(
                Problem(place, f"has {len(codes)} columns instead of {width}; the dump is cut off, take it anew")
            )
            continue
        for column, code in enumerate(codes[: len(devices)]):
            if column == row:
                continue
            tie = _tie(code)
            pair = (min(row, column), max(row, column))
            if tie is None:
                known = f"NV#, {', '.join(_CODES)}"
                problems.append(Problem(place, f"has {code[:20]!r} to {devices[column]}; the known codes are {known}"))
            elif ties.setdefault(pair, tie) != tie:
                problems.append(
                    Problem(place, f"has {code} to {devices[column]}, which says otherwise; take the dump anew")
                )
    return ties, problems


def _tie(code: str) -> Tie | None:
    if match := _NVLINK.fullmatch(code):
        return Tie("nvlink", int(match[1]))
    return Tie("pcie", far=_CODES[code]) if code in _CODES else None


NVIDIA_TOPO = Reader(name="nvidia-smi topo -m", recognises=recognises, read=read)
