"""Layouts that a user names in one line, such as ``tp=4,pp=2,dp=8,mbs=1,gbs=512,seq=4096``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from planner.domain.plan import CP_COMM_TYPES
from planner.errors import Problem, SpecError

PLACE = "--layout"
"""Where a layout stands, for messages."""
_SAME = {
    "micro_batch": "mbs",
    "micro_batch_size": "mbs",
    "global_batch": "gbs",
    "global_batch_size": "gbs",
    "sequence": "seq",
    "sequence_length": "seq",
    "seq_len": "seq",
    "zero_stage": "zero",
    "sequence_parallel": "sp",
    "microbatch_group_size_per_vp_stage": "vpp_group",
}
"""Other words for a key -> key."""
_SWITCH = {**dict.fromkeys(("1", "true", "on", "yes"), True), **dict.fromkeys(("0", "false", "off", "no"), False)}
_CHOICES = {"recompute": ("none", "selective", "full"), "cp_comm_type": CP_COMM_TYPES}
_COUNTS = ("tp", "pp", "vpp", "vpp_group", "dp", "cp", "ep", "etp", "mbs", "gbs", "seq")
_WORDS = ("recompute", "schedule", "framework", "cp_comm_type")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A layout as named: what is None was not given, and its default depends on cluster, job or framework."""

    tp: int = 1
    pp: int = 1
    vpp: int = 1
    """Virtual stages: chunks of layers of each stage."""
    vpp_group: int | None = None
    """Micro-batches that pass a chunk before any passes the next one; by default one a stage."""
    dp: int | None = None
    """By default what the devices leave."""
    cp: int = 1
    cp_comm_type: str | None = None
    """How context ranks exchange."""
    ep: int = 1
    etp: int | None = None
    """By default tp, as in Megatron."""
    zero: int | None = None
    sp: bool | None = None
    """Whether norms and residuals are cut along the sequence by the tensor axis."""
    mbs: int = 1
    """[samples] of one micro-batch."""
    gbs: int | None = None
    """[samples] of one step."""
    seq: int | None = None
    """[tokens] of one sample."""
    recompute: str | None = None
    schedule: str | None = None
    framework: str | None = None
    chunk_layers: tuple[tuple[int, ...], ...] = ()
    """Layers of every chunk of every stage; empty: as the framework cuts them by itself."""
    recompute_layers: int | None = None
    """Layers of each stage that are fully recomputed; None: all of them where `recompute` is ``full``, else none."""
    stage_tp: tuple[int, ...] = ()
    """Tensor degree of every stage, where they are unlike; empty: `tp`."""
    stage_split: tuple[int, ...] = ()
    """Copies of every stage over which a micro-batch is divided; empty: none is."""
    stage_recompute: tuple[int, ...] = ()
    """Layers of every stage that are fully recomputed; empty: `recompute_layers`."""
    stage_devices: tuple[str, ...] = ()
    """Kind of device of every stage, in the words of whoever wrote it; empty: not said."""
    others: tuple[tuple[str, int], ...] = ()
    """(axis, degree) of axes that have no field here."""


def parse_layout(text: str, axes: tuple[str, ...] = (), place: str = PLACE) -> Layout:
    """Return the layout that `text` names, ``key=value`` with commas or spaces between.

    Args:
        text: as the user wrote it.
        axes: names of further axes that have a degree.
        place: where it stands, for messages.

    Raises:
        SpecError: with every problem of the text.

    """
    extra = tuple(axis for axis in axes if axis not in Layout.__dataclass_fields__)
    values: dict[str, Any] = {}
    problems: list[Problem] = []
    for part in re.split(r"[,\s]+", re.sub(r"\s*=\s*", "=", text.strip()).strip(",")):
        key, _, value = part.partition("=")
        key = _SAME.get(key.lower(), key.lower())
        if key in values:
            problems.append(Problem(place, f"gives {key} twice; keep one"))
            continue
        values[key], trouble = _value(key, value, extra)
        problems += [Problem(place, trouble)] if trouble else []
    if problems:
        raise SpecError(problems)
    others = tuple((axis, values.pop(axis)) for axis in extra if axis in values)
    return Layout(**values, others=others)


def _value(key: str, text: str, extra: tuple[str, ...]) -> tuple[Any, str]:
    """Return the value of a key, and what is wrong with it, empty if nothing is."""
    word = text.lower()
    if key in (*_COUNTS, *extra):
        good = re.fullmatch(r"[0-9]{1,9}", text) is not None and int(text) >= 1
        return (int(text), "") if good else (None, f"{key}={text} should be a whole number from 1 on, such as {key}=2")
    if key == "zero":
        return (int(text), "") if text in {"0", "1", "2", "3"} else (None, f"zero={text} should be 0, 1, 2 or 3")
    if key == "sp":
        return (_SWITCH[word], "") if word in _SWITCH else (None, f"sp={text} should be 1 or 0")
    if key in _CHOICES:
        known = " or ".join((", ".join(_CHOICES[key][:-1]), _CHOICES[key][-1]))
        return (word, "") if word in _CHOICES[key] else (None, f"{key}={text} should be {known}")
    if key in _WORDS:
        return (text, "") if text else (None, f"{key}= lacks its value; write {key}=NAME")
    return None, _unknown(key, extra)


def _unknown(key: str, extra: tuple[str, ...]) -> str:
    """Return the message about a key that is none."""
    if not key:
        return 'lacks keys; write something like "tp=4,pp=2,dp=8,mbs=1,gbs=512,seq=4096"'
    from planner.specs.problems import nearest

    return f"unknown key {key}{nearest(key, (*_COUNTS, *extra, 'zero', 'sp', *_WORDS))}"
