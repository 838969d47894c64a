"""Constraints on the search, from what a user writes to ``subject operator value``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from planner.domain.job import ANY_SCHEDULE, REPLICAS, Constraint
from planner.domain.plan import CP_COMM_TYPES, SEARCHED
from planner.errors import SpecError
from planner.parallelism import AXES
from planner.recompute import RECOMPUTE_POLICIES
from planner.schedules import SCHEDULES

_AXES = tuple(axis.name for axis in AXES)
_COUNTS = ("pp", "vpp", "dp", "split", "micro_batch", "devices")
_WORDS = {
    "recompute": tuple(policy.name for policy in RECOMPUTE_POLICIES),
    "schedule": (*(schedule.name for schedule in SCHEDULES), ANY_SCHEDULE, SEARCHED),
    "cp_comm_type": CP_COMM_TYPES,
    "replicas": REPLICAS,
}
_LATER = {
    "ep": "expert parallelism",
    "etp": "expert parallelism",
}
"""Subjects that users know, and what they would need -> so that they are refused with the reason."""
_SAME = {
    "mbs": "micro_batch",
    "micro_batch_size": "micro_batch",
    "zero_stage": "zero",
    "num_stages": "pp",
    "virtual_stages": "vpp",
    "stages": "pp",
    "num_replicas": "dp",
    "num_devices": "devices",
    "gpus": "devices",
}
"""Other words for a subject -> subject."""
_MEANING = {("recompute", "never"): "none", ("recompute", "off"): "none", ("recompute", "always"): "full"}
_OPERATORS = {
    "==": "=",
    ":": "=",
    "=": "=",
    "<=": "<=",
    "≤": "<=",
    ">=": ">=",
    "≥": ">=",
    "!=": "!=",
    "≠": "!=",
    "<": "<",
    ">": ">",
}
_PHRASES = (
    (re.compile(r"(?:use\s+)?at\s+most\s+(\S+)\s+(?:devices|gpus)", re.IGNORECASE), "devices", "<="),
    (re.compile(r"(?:use\s+)?at\s+least\s+(\S+)\s+(?:devices|gpus)", re.IGNORECASE), "devices", ">="),
    (re.compile(r"use\s+(?:exactly\s+)?(\S+)\s+(?:devices|gpus)", re.IGNORECASE), "devices", "="),
)
_GROUP = re.compile(
    r"group\s+(?P<name>\S+?)\s*(?:(?P<operator><=|>=|==|!=|[=<>:≤≥≠])|\s)\s*(?P<value>\S+)", re.IGNORECASE
)
_PLAIN = re.compile(r"(?P<subject>[A-Za-z_]+)\s*(?:(?P<operator><=|>=|==|!=|[=<>:≤≥≠])|\s)\s*(?P<value>\S+)")
_EXAMPLES = '"tp <= 8", "recompute: never", "group v100 unused" or "use at most 64 devices"'


def parse_constraint(
    text: str, place: str = "", *, axes: tuple[str, ...] = _AXES, groups: Iterable[str] | None = None
) -> Constraint:
    """Return the constraint that `text` writes, such as ``tp <= 8`` or ``group v100 unused``.

    Args:
        text: as the user wrote it.
        place: where it stands, for messages.
        axes: names of the axes that may be limited.
        groups: names of the cluster's groups, of which a beginning is enough; None if any name will do.

    Raises:
        SpecError: it is no constraint.

    """
    written = " ".join(text.split())
    try:
        subject, operator, value = _split(written, axes, None if groups is None else tuple(groups))
    except ValueError as error:
        raise SpecError.of(place, f"{written[:80]!r}: {error}") from None
    return Constraint(subject=subject, operator=operator, value=value, text=written)


def _split(text: str, axes: tuple[str, ...], groups: tuple[str, ...] | None) -> tuple[str, str, str]:
    """Return subject, operator and value in their normal form; ValueError says what is wrong."""
    for pattern, subject, operator in _PHRASES:
        if match := pattern.fullmatch(text):
            return _counted(subject, operator, match[1], 1)
    if match := _GROUP.fullmatch(text):
        return _group(match["name"], _operator(match), match["value"], groups)
    match = _PLAIN.fullmatch(text)
    if not match:
        raise ValueError(f"is not a constraint; write something like {_EXAMPLES}")
    subject = match["subject"].lower()
    subject = _SAME.get(subject, subject)
    if subject in _WORDS:
        return _word(subject, _operator(match), match["value"].lower())
    if subject == "zero":
        return _counted(subject, _operator(match), match["value"], 0, 3)
    if subject in (*axes, *_COUNTS):
        return _counted(subject, _operator(match), match["value"], 1)
    if subject in _LATER:
        raise ValueError(f"{subject} needs {_LATER[subject]}, which comes in a later version; leave it out")
    raise ValueError(_unknown(subject, (*axes, *_COUNTS, "zero", *_WORDS, "group NAME")))


def _operator(match: re.Match[str]) -> str:
    return _OPERATORS[match["operator"] or "="]


def _unknown(word: str, known: tuple[str, ...]) -> str:
    from planner.specs.problems import nearest

    return f"nothing called {word} can be limited{nearest(word, known)}"


def _counted(subject: str, operator: str, value: str, low: int, high: int = 10**9) -> tuple[str, str, str]:
    """Return a limit on a whole number, ``<`` and ``>`` turned into ``<=`` and ``>=``."""
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise ValueError(f"{subject} is limited by a whole number such as {subject} <= 2, not by {value}")
    number = int(value) + {"<": -1, ">": 1}.get(operator, 0)
    if not low <= number <= high:
        bounds = f"from {low} to {high}" if high < 10**9 else f"at least {low}"
        raise ValueError(f"{subject} is {bounds}; `{subject} {operator} {value}` cannot hold or says nothing")
    return subject, {"<": "<=", ">": ">="}.get(operator, operator), str(number)


def _word(subject: str, operator: str, value: str) -> tuple[str, str, str]:
    """Return a choice of a word."""
    from planner.specs.problems import nearest

    value = _MEANING.get((subject, value), value)
    if operator not in {"=", "!="}:
        raise ValueError(f"{subject} has no order; write {subject} = {value} or {subject} != {value}")
    if _WORDS[subject] and value not in _WORDS[subject]:
        raise ValueError(
            f"{subject} is {', '.join(_WORDS[subject][:-1])} or {_WORDS[subject][-1]}{nearest(value, _WORDS[subject])}"
        )
    if value == ANY_SCHEDULE and subject == "schedule" and operator != "=":
        raise ValueError(f"write {subject} = {value}, or the name of a schedule")
    return subject, operator, value


def _group(name: str, operator: str, value: str, groups: tuple[str, ...] | None) -> tuple[str, str, str]:
    """Return a limit on the devices of a group."""
    subject = f"group {name if groups is None else _resolved(name, groups)}"
    if value.lower() == "unused" or (value == "0" and operator in {"=", "<="}):
        if operator not in {"=", "<=", "!="}:
            raise ValueError(f"write {subject} unused")
        return (subject, ">=", "1") if operator == "!=" else (subject, "=", "unused")
    return _counted(subject, operator, value, 1)


def _resolved(name: str, groups: tuple[str, ...]) -> str:
    """Return the group that `name` means: its name, or the beginning of one name only."""
    from planner.specs.problems import nearest

    if name in groups:
        return name
    begins = [group for group in groups if group.lower().startswith(name.lower())]
    if len(begins) == 1:
        return begins[0]
    if begins:
        raise ValueError(f"several groups begin with {name}: {', '.join(begins)}; write one of them")
    raise ValueError(f"no group is called {name}{nearest(name, groups)}")
