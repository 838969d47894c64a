"""Arguments of Megatron-LM, by the rules of its parser (argparse without abbreviations): the last of a flag counts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from planner.configurations.megatron.flags import FALSE, VALUE, Flag, flags
from planner.configurations.shell import MAYBE, Text
from planner.domain.configuration import ERROR, WARNING, Finding, Setting, Spot

UNKNOWN_FLAG, BAD_VALUE, REPEATED, STRAY = "MG001", "MG002", "MG003", "MG004"
CONDITION = "they stand under a condition that was not evaluated"
RENAMED = {
    "--use-custom-fsdp": "write --use-megatron-fsdp",
    "--standalone-embedding-stage": "write --account-for-embedding-in-pipeline-split",
    "--distribute-checkpointed-activations": "write --distribute-saved-activations",
    "--moe-extended-tp": "write --expert-tensor-parallel-size",
    "--DDP-impl": "remove it, one implementation is left",
    "--no-contiguous-buffers-in-local-ddp": "remove it, one implementation is left",
    "--no-query-key-layer-scaling": "remove it, nothing is scaled unless --apply-query-key-layer-scaling is given",
    "--pipeline-model-parallel-split-rank": "remove it, encoders have no stages of their own any more",
    "--encoder-tensor-model-parallel-size": "remove it, encoders have no degrees of their own any more",
    "--encoder-pipeline-model-parallel-size": "remove it, encoders have no degrees of their own any more",
    "--use-legacy-models": "remove it, only core models are left",
}
"""Flags of versions before core 0.19 -> what to do."""
_SECRET = re.compile("key|token-|secret|password|credential|api|url")
"""Names of flags whose values are not shown."""
_NEGATIVE = re.compile(r"-\d+$|-\d*\.\d+$")
NEAR = 0.84
"""[-] likeness from which an unknown flag reminds of a known one."""
MANY = 50
"""Findings from which on no likenesses are looked for, which takes milliseconds each."""
SHORT = 10
"""Characters of an abbreviation from which one is meant."""


@dataclass(slots=True)
class Reading:
    """What the arguments came to so far."""

    origin: str
    settings: dict[str, Setting] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reasons: dict[tuple[int, int], str] = field(default_factory=dict)
    """(line, column) of what is not known -> why."""
    left_open: dict[str, list[str]] = field(default_factory=dict)
    """Why values are not known -> flags and their lines."""

    def find(self, code: str, severity: str, spot: tuple[int, int], key: str, message: str) -> None:
        """Note something that is wrong."""
        where = Spot(self.origin, *spot)
        self.findings.append(Finding(code=code, severity=severity, spot=where, key=key, message=message))

    def leave_open(self, dest: str, name: str, spot: tuple[int, int], reason: str) -> None:
        """Keep a setting whose value is not known."""
        self.settings[dest] = Setting(name=name, value=None, spot=Spot(self.origin, *spot))
        self.left_open.setdefault(reason, []).append(f"{name} (line {spot[0]})")

    def sentences(self) -> tuple[str, ...]:
        """Return the notes, those on flags that are left open by their reason."""
        opened = (f"left open, for {reason}: {_some(which)}" for reason, which in self.left_open.items())
        return tuple(dict.fromkeys((*opened, *self.notes)))


def _some(which: list[str], most: int = 6) -> str:
    more = f" and {len(which) - most} more" if len(which) > most else ""
    return ", ".join(which[:most]) + more


def read_arguments(words: Sequence[Text], reading: Reading) -> None:
    """Add the settings of `words`, the arguments behind the program, to `reading`."""
    index, strayed = 0, False
    while index < len(words):
        word = words[index]
        index += 1
        perhaps = word.chars.startswith(MAYBE)
        name, equals, _ = word.chars.removeprefix(MAYBE).partition("=")
        if not name.startswith("--") or name == "--":
            if not strayed:
                _stray(word, reading)
            strayed = True
            continue
        strayed = False
        values = [word[len(name) + perhaps + 1 :]] if equals else []
        flag = flags().get(name)
        while not equals and index < len(words) and _is_value(words[index]) and _takes_more(flag, len(values)):
            values.append(words[index])
            index += 1
        if flag is None:
            _unknown(name, word.spot, reading)
        elif perhaps or any(MAYBE in value.chars for value in values):
            reading.leave_open(flag.dest, name, word.spot, CONDITION)
        else:
            _set(flag, name, word, values, reading)


def _is_value(word: Text) -> bool:
    chars = word.chars.removeprefix(MAYBE)
    return not chars.startswith("-") or bool(_NEGATIVE.match(chars)) or " " in chars or chars == "-"


def _takes_more(flag: Flag | None, held: int) -> bool:
    """Return whether a flag with `held` values takes the next word too; of an unknown one all are taken."""
    if flag is None:
        return True
    if flag.kind != VALUE:
        return False
    return flag.nargs in {"+", "*"} or held < (flag.nargs if isinstance(flag.nargs, int) else 1)


def _stray(word: Text, reading: Reading) -> None:
    """Tell what a word that belongs to no flag is; it is not shown unless it is a flag, for it may be secret."""
    if not word.is_known or word.chars.startswith(MAYBE):
        reason = reading.reasons.get(word.spot, "it is not known what stands there")
        reading.notes.append(f"line {word.spot[0]}: more arguments may come from there, {reason}")
        return
    shown = word.chars.removeprefix(MAYBE)
    dashed = "--" + shown.lstrip("-\u2010\u2011\u2012\u2013\u2014\u2212")
    if shown != dashed and dashed.partition("=")[0] in flags():
        message = (
            f"{shown.partition('=')[0]} has other dashes than Megatron's parser knows; write {dashed.partition('=')[0]}"
        )
    else:
        message = (
            "this word belongs to no flag, and the parser stops with `unrecognized arguments`; remove it, write its"
            " flag"
            ' before it, or, if it is part of a value with blanks, expand its array in quotes: "${ARGS[@]}"'
        )
    reading.find(STRAY, ERROR, word.spot, "", message)


def _unknown(name: str, spot: tuple[int, int], reading: Reading) -> None:
    """Tell what an unknown flag may be meant to be: a slip, or a flag of a fork."""
    known = flags()
    dashed = "--" + name[2:].replace("_", "-")
    longer = [flag for flag in known if flag.startswith(name)] if len(name) >= SHORT else []
    near = get_close_matches(dashed, known, n=1, cutoff=NEAR) if len(reading.findings) < MANY else []
    twin = next((flag for flag in (f"--no-{name[2:]}", name.replace("--no-", "--", 1)) if flag in known), "")
    sure = False
    if twin:
        sure, message = True, f"{name} is unknown, and only {twin} is a flag: remove it, or write that"
    elif name in RENAMED:
        message = f"{name} is a flag of older versions; {RENAMED[name]}"
    elif dashed in known:
        sure, message = True, f"{name} is unknown, for Megatron's flags have hyphens; write {dashed}"
    elif longer:
        sure = True
        message = f"{name} is unknown, and Megatron accepts no abbreviations; write {' or '.join(longer[:3])}"
    elif near:
        sure = True
        message = f"{name} is unknown; did you mean {near[0]}?"
    else:
        message = (
            f"{name} is no flag of Megatron-LM 0.19; if it is not one of your fork or of your own"
            " extra_args_provider, the parser stops with `unrecognized arguments`"
        )
    reading.find(UNKNOWN_FLAG, ERROR if sure else WARNING, spot, name, message)


def _set(flag: Flag, name: str, word: Text, values: list[Text], reading: Reading) -> None:
    """Keep what a flag says."""
    unknown = next((value for value in values if not value.is_known), None)
    if unknown is not None:
        at = unknown.at[next(i for i, char in enumerate(unknown.chars) if char == "\x00")]
        reading.leave_open(flag.dest, name, word.spot, reading.reasons.get(at, "the value cannot be told"))
        return
    value, trouble = _value(flag, name, [one.chars for one in values])
    if trouble:
        reading.find(BAD_VALUE, ERROR, word.spot, name, trouble)
    before = reading.settings.get(flag.dest)
    if before and before.value is not None and before.value != value and not trouble:
        message = (
            f"{name} is {_shown(name, value)} here, and {before.name} is {_shown(name, before.value)} at {before.spot};"
            " the last one counts, so keep only one"
        )
        reading.find(REPEATED, WARNING, word.spot, name, message)
    reading.settings[flag.dest] = Setting(name=name, value=value, spot=Spot(reading.origin, *word.spot))


def _shown(name: str, value: Any) -> str:
    """Return a value for a message, unless it may be secret."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "another" if _SECRET.search(name) else str(value)[:40]


def _value(flag: Flag, name: str, words: list[str]) -> tuple[Any, str]:
    """Return the value of a flag, None where it is none, and what is wrong with it."""
    if flag.kind != VALUE:
        return (flag.kind != FALSE, "") if not words else (None, f"{name} is a switch and takes no value; remove it")
    wanted = flag.nargs if isinstance(flag.nargs, int) else 1
    if len(words) < wanted and flag.nargs != "*":
        number = "a value" if wanted == 1 else f"{wanted} values"
        return (
            None,
            f"{name} needs {number}, and {'none follows' if not words else f'{len(words)} follow'}{_choices(flag)}",
        )
    found = [_typed(flag, text) for text in words]
    wrong = next((text for text, (_, good) in zip(words, found, strict=True) if not good), None)
    if wrong is not None:
        kind = {"int": "a whole number", "float": "a number", "text": "text"}[flag.type]
        right = _choices(flag).removeprefix("; it is ") or kind
        return None, f"{name} should be {right}, not {wrong[:40]!r}"
    values = [value for value, _ in found]
    return (values[0] if flag.nargs is None else values), ""


def _choices(flag: Flag) -> str:
    return f"; it is {', '.join(map(str, flag.choices[:-1]))} or {flag.choices[-1]}" if flag.choices else ""


def _typed(flag: Flag, text: str) -> tuple[Any, bool]:
    """Return a value of a flag's type, and whether it is one that the parser takes."""
    value: Any = text
    try:
        if flag.type == "int":
            value = int(text) if len(text) <= 20 else math.nan
        elif flag.type == "float":
            value = float(text)
    except ValueError:
        return None, False
    good = value == value and (flag.choices is None or value in flag.choices)  # noqa: PLR0124 (not a number)
    return value, good
