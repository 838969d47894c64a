"""Arguments of Megatron-LM, by the rules of its parser (argparse without abbreviations): the last of a flag counts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from planner.configurations.forms.megatron.flags import FALSE, VALUE, Flag, flags
from planner.configurations.shell import MAYBE, Text
from planner.domain.configuration import ERROR, WARNING, Finding, Setting, Spot

UNKNOWN_FLAG, BAD_VALUE, REPEATED, STRAY = "MG001", "MG002", "MG003", "MG004"
RENAMED = {
    "--use-flash-attn": "--attention-backend flash",
    "--use-custom-fsdp": "--use-megatron-fsdp",
    "--no-query-key-layer-scaling": "nothing, which is the default now",
    "--DDP-impl": "nothing, only one is left",
    "--no-contiguous-buffers-in-local-ddp": "nothing, which is the default now",
    "--num-layers-per-stage": "--num-layers-per-virtual-pipeline-stage",
    "--partition-activations": "--distribute-saved-activations",
    "--use-cpu-initialization-only": "--use-cpu-initialization",
}
"""Flags of older versions or forks -> what says the same today."""
_NEGATIVE = re.compile(r"-\d+$|-\d*\.\d+$")
_NEAR = 0.84
"""[-] likeness from which an unknown flag is a slip, and not somebody's own."""


@dataclass(slots=True)
class Reading:
    """What the arguments came to so far."""

    origin: str
    settings: dict[str, Setting] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reasons: dict[tuple[int, int], str] = field(default_factory=dict)
    """(line, column) of what is not known -> why."""

    def find(self, code: str, severity: str, spot: tuple[int, int], key: str, message: str) -> None:
        """Note something that is wrong."""
        where = Spot(self.origin, *spot)
        self.findings.append(Finding(code=code, severity=severity, spot=where, key=key, message=message))

    def leave_open(self, dest: str, name: str, spot: tuple[int, int], reason: str) -> None:
        """Keep a setting whose value is not known."""
        self.settings[dest] = Setting(name=name, value=None, spot=Spot(self.origin, *spot))
        self.notes.append(f"line {spot[0]}: {name} is left open, {reason}")


def read_arguments(words: Sequence[Text], reading: Reading) -> None:
    """Add the settings of `words`, the arguments behind the program, to `reading`."""
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        perhaps = word.chars.startswith(MAYBE)
        name, equals, _ = word.chars.removeprefix(MAYBE).partition("=")
        if not name.startswith("--") or name == "--":
            _stray(word, reading)
            continue
        values = [word[len(name) + perhaps + 1 :]] if equals else []
        flag = flags().get(name)
        while not equals and index < len(words) and _is_value(words[index]) and _takes_more(flag, len(values)):
            values.append(words[index])
            index += 1
        if flag is None:
            _unknown(name, word.spot, reading)
        elif perhaps or any(MAYBE in value.chars for value in values):
            reading.leave_open(flag.dest, name, word.spot, "for it stands under a condition that was not evaluated")
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
    """Tell what a word that belongs to no flag is."""
    if not word.is_known:
        reason = reading.reasons.get(word.spot, "")
        reading.notes.append(f"line {word.spot[0]}: more arguments may come from there, {reason}")
        return
    shown = word.chars.removeprefix(MAYBE)[:40]
    near = flags().get("-" + shown if shown.startswith("-") else "--" + shown)
    hint = f"; write --{shown.lstrip('-')}" if near else "; remove it, or write the flag that it belongs to before it"
    message = f"{shown!r} belongs to no flag, and Megatron's parser refuses what it does not know{hint}"
    reading.find(STRAY, ERROR, word.spot, shown, message)


def _unknown(name: str, spot: tuple[int, int], reading: Reading) -> None:
    """Tell what an unknown flag may be meant to be: a slip, or a flag of a fork."""
    known = flags()
    dashed = "--" + name[2:].replace("_", "-")
    longer = [flag for flag in known if flag.startswith(name)]
    near = get_close_matches(dashed, known, n=1, cutoff=_NEAR)
    if name in RENAMED:
        message = f"{name} is a flag of older versions; write {RENAMED[name]}"
    elif dashed in known:
        message = f"{name} is unknown, for Megatron's flags have hyphens; write {dashed}"
    elif longer:
        listed = " or ".join(longer[:3])
        message = f"{name} is unknown, and Megatron accepts no abbreviations; write {listed}"
    elif near:
        message = f"{name} is unknown; did you mean {near[0]}?"
    else:
        message = (
            f"{name} is no flag of Megatron-LM 0.19; if it is not one of your fork or of your own"
            " extra_args_provider, the parser stops with `unrecognized arguments`"
        )
    sure = bool(near or longer or dashed in known) and name not in RENAMED
    reading.find(UNKNOWN_FLAG, ERROR if sure else WARNING, spot, name, message)


def _set(flag: Flag, name: str, word: Text, values: list[Text], reading: Reading) -> None:
    """Keep what a flag says."""
    unknown = next((value for value in values if not value.is_known), None)
    if unknown is not None:
        at = unknown.at[next(i for i, char in enumerate(unknown.chars) if char == "\x00")]
        reading.leave_open(flag.dest, name, word.spot, reading.reasons.get(at, "for its value cannot be told"))
        return
    value, trouble = _value(flag, name, [one.chars for one in values])
    if trouble:
        reading.find(BAD_VALUE, ERROR, word.spot, name, trouble)
    before = reading.settings.get(flag.dest)
    if before and before.value is not None and before.value != value and not trouble:
        message = f"{name} is {_shown(value)} here and {before.name} {_shown(before.value)} at {before.spot}; the last one counts, so keep only one"
        reading.find(REPEATED, WARNING, word.spot, name, message)
    reading.settings[flag.dest] = Setting(name=name, value=value, spot=Spot(reading.origin, *word.spot))


def _shown(value: Any) -> str:
    return {True: "on", False: "off"}.get(value, str(value)[:40]) if isinstance(value, bool) else str(value)[:40]


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
