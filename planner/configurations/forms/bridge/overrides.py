"""Words behind run_recipe.py: options and ``KEY=VALUE``, by the rules of its parser and of Hydra."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from planner.configurations.forms.bridge.keys import COUNTS, INVERTED, KEYS, OPTIONS, SECTIONS, SEQUENCE, flag_of
from planner.configurations.shell import MAYBE, UNKNOWN, Text
from planner.domain.configuration import ERROR, WARNING, Finding, Setting, Spot
from planner.loader import scalar

UNKNOWN_KEY, BAD_VALUE, REPEATED = "MB001", "MB002", "MB003"
_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_NO_VALUE = re.compile(r"\x01?(-|[+~]{0,2}[A-Za-z_][\w.]*=)")
MOST = 10_000_000
"""Of anything that is counted; more would be a mistake."""
_NEAR = 0.86
"""[-] likeness from which a key is taken for a slip of the pen."""
_KNOWN = (*KEYS, *INVERTED, SEQUENCE)


@dataclass(slots=True)
class Reading:
    """What the words came to so far."""

    origin: str
    written: dict[str, Setting] = field(default_factory=dict)
    """By Bridge's key."""
    recipe: tuple[str, tuple[int, int]] | None = None
    """Its name, and where it stands."""
    options: set[str] = field(default_factory=set)
    """Keys that an option has set, which overrides replace."""
    opened: set[str] = field(default_factory=set)
    """Keys whose values are not known."""
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reasons: dict[tuple[int, int], str] = field(default_factory=dict)
    """(line, column) of what is not known -> why."""

    def find(self, code: str, severity: str, spot: tuple[int, int], key: str, message: str) -> None:
        """Note something that is wrong."""
        where = Spot(self.origin, *spot)
        self.findings.append(Finding(code=code, severity=severity, spot=where, key=key, message=message))


def read_words(words: Sequence[Text], reading: Reading) -> None:
    """Add what `words` say to `reading`."""
    index = 0
    while index < len(words):
        word = words[index]
        option, equals, _ = word.chars.removeprefix(MAYBE).partition("=")
        index += 1
        if not option.startswith("-"):
            match = _OVERRIDE.fullmatch(word.chars.removeprefix(MAYBE))
            if match:
                _override(match[1], match[2], word, reading)
            elif not word.is_known:
                reason = reading.reasons.get(word.spot, "it is not known what stands there")
                reading.notes.append(f"line {word.spot[0]}: more overrides may come from there, {reason}")
            continue
        value = word[word.chars.index("=") + 1 :] if equals else None
        if (
            value is None
            and index < len(words)
            and not re.match(r"\x01?(-|[+~]{0,2}[A-Za-z_][\w.]*=)", words[index].chars)
        ):
            value = words[index]
            index += 1
        if value is not None:
            _option(option, value, word, reading)


def _option(option: str, value: Text, word: Text, reading: Reading) -> None:
    """Keep what an option says."""
    if option in {"--recipe", "--model"}:
        if value.is_known and not word.chars.startswith(MAYBE):
            name = value.chars if option == "--recipe" else f"{value.chars}_pretrain_config"
            reading.recipe = name, word.spot
        return
    key = OPTIONS.get(option)
    if key is None or (key in reading.written and key not in reading.options):
        return  # an override wins, wherever it stands
    reading.options.add(key)
    maybe = MAYBE if word.chars.startswith(MAYBE) else ""
    _keep(key, option, maybe + value.chars, word, reading, value.spot)


def _override(key: str, text: str, word: Text, reading: Reading) -> None:
    """Keep what an override says, and tell where it is none that is known, or said before with another value."""
    section = key.partition(".")[0]
    if section not in SECTIONS:
        near = get_close_matches(section, SECTIONS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"they are {', '.join(SECTIONS[:8])}, ..."
        message = f"{key} is in no section of the configuration; {hint}"
        reading.find(UNKNOWN_KEY, ERROR, word.spot, key, message)
        return
    slip = get_close_matches(key, _KNOWN, n=1, cutoff=_NEAR) if key not in _KNOWN else []
    if slip:
        message = f"{key} is no field that is known, and unknown fields are refused; did you mean {slip[0]}?"
        reading.find(UNKNOWN_KEY, WARNING, word.spot, key, message)
    before = reading.written.get(key)
    maybe = MAYBE if word.chars.startswith(MAYBE) else ""
    value = _keep(key, key, maybe + text, word, reading, word.spot)
    if before is not None and before.value != value and key not in reading.opened:
        place = "an option" if key in reading.options else "another override"
        message = f"{key} is {before.value} at {before.spot} by {place}, and {value} here, which counts; keep only one"
        reading.find(REPEATED, WARNING, word.spot, key, message)
    reading.options.discard(key)


def _keep(key: str, name: str, text: str, word: Text, reading: Reading, at: tuple[int, int]) -> Any:
    """Keep a value, and tell where it is of a wrong kind."""
    value: Any = None
    reading.opened.discard(key)
    if UNKNOWN in text or MAYBE in text or "$" in text:
        places = [spot for char, spot in zip(word.chars, word.at, strict=True) if char == UNKNOWN]
        reason = next(
            (reading.reasons[spot] for spot in (*places, at) if spot in reading.reasons), "it is set elsewhere"
        )
        reading.notes.append(f"{Spot(reading.origin, *word.spot)}: {name} is left open, for {reason}")
        reading.opened.add(key)
    else:
        value = _value(text)
        if value is not None and (trouble := _trouble(key, value)):
            reading.find(BAD_VALUE, ERROR, word.spot, name, f"{name} should be {trouble}, not {text[:40]!r}")
            reading.opened.add(key)
            value = None
        flag = flag_of(key)
        if (
            value is not None
            and flag
            and flag.nargs is not None
            and flag.type != "switch"
            and not isinstance(value, list)
        ):
            value = [value]
    reading.written[key] = Setting(name=name, value=value, spot=Spot(reading.origin, *word.spot))
    return value


def _value(text: str) -> Any:
    """Return what a text means: a word of YAML, or a flat list of them."""
    if text in {"null", "None", ""}:
        return None
    if text.startswith("[") and text.endswith("]"):
        return [_value(part.strip().strip("'\"")) for part in text[1:-1].split(",") if part.strip()]
    try:
        return scalar(text)
    except ValueError:
        return text


def _trouble(key: str, value: Any) -> str:
    """Return what a value should be; empty where it is that."""
    flag = flag_of(key)
    if key in COUNTS:
        return "" if _counts(value, 1) else f"a whole number from 1 to {MOST:,}"
    if flag is None:
        return ""
    if flag.type == "switch":
        return "" if isinstance(value, bool) else "true or false"
    listed = value if isinstance(value, list) and _is_list(key) else [value]
    if flag.choices is not None:
        return "" if all(one in flag.choices for one in listed) else f"{', '.join(map(str, flag.choices))} or null"
    if flag.type == "int":
        return "" if all(_counts(one, 0) for one in listed) else f"a whole number up to {MOST:,}"
    return ""


def _is_list(key: str) -> bool:
    """Return whether a key takes several values."""
    flag = flag_of(key)
    return flag is not None and flag.type != "switch" and flag.nargs is not None


def _counts(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST
