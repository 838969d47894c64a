"""Overrides of a recipe of Megatron-Bridge as people write them: a list, or the command that runs the recipe."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from planner.configurations.forms.bridge.keys import COUNTS, KEYS, OPTIONS, SECTIONS, SEQUENCE, SWITCHES, inner
from planner.configurations.forms.bridge.recipes import known
from planner.domain.configuration import ERROR, WARNING, Configuration, Finding, Setting, Spot
from planner.errors import SpecError
from planner.loader import scalar

FORM = "megatron-bridge"
UNKNOWN, BAD_VALUE, REPEATED = "MB001", "MB002", "MB003"
_OWN = re.compile(r"(?<![\w.])(model|train|ddp|dataset|dist|comm_overlap)\.[a-z_0-9]+=")
_WORD = re.compile(r"""(?:[^\s'"\\]|'[^']*'|"[^"]*"|\\.)+""")
_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_][\w.]*)=(.*)", re.DOTALL)
_COUNT = re.compile(r"--(nnodes|nproc[-_]per[-_]node)(=|$)")
MOST = 10_000_000
"""Of anything that is counted; more would be a mistake."""
_NEAR = 0.86
"""[-] likeness from which a key is taken for a slip of the pen."""


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    spot: Spot


@dataclass(slots=True)
class _Reading:
    """What the words came to so far."""

    written: dict[str, Setting] = field(default_factory=dict)
    options: set[str] = field(default_factory=set)
    """Keys that an option has set, which overrides replace."""
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def find(self, code: str, severity: str, word: _Word, key: str, message: str) -> None:
        """Note something that is wrong."""
        self.findings.append(Finding(code=code, severity=severity, spot=word.spot, key=key, message=message))


def recognises(text: str, name: str) -> bool:
    """Return whether a text runs a recipe, or is a list of overrides."""
    if name.endswith((".py", ".yaml", ".yml", ".json", ".toml")):
        return False
    return bool(re.search(r"\brun_recipe\.py\b", text)) or len(_OWN.findall(text)) > 1


def read(text: str, name: str) -> Configuration:
    """Return what a text says, under Megatron-LM's inner names where a key has one.

    Raises:
        SpecError: it has no override.
    """
    words = list(_words(text, name))
    reading = _Reading()
    program = next((i + 1 for i, word in enumerate(words) if word.text.endswith("run_recipe.py")), None)
    recipe = _read(words[program or 0 :], reading)
    if not reading.written and recipe is None:
        raise SpecError.of(name, "has no override; write lines such as model.tensor_model_parallel_size=2")
    usual, whole = known(recipe.text) if recipe else ({}, True)
    if recipe and not whole:
        reading.notes.append(f"{recipe.text} has settings of its own that are not known: rules about them are left out")
    settings = {}
    for key, setting in reading.written.items():
        at, value = inner(key, setting.value)
        settings[at] = Setting(name=setting.name, value=value, spot=setting.spot)
    if recipe:
        settings["recipe"] = Setting(name="--recipe", value=recipe.text, spot=recipe.spot)
    return Configuration(
        form=FORM,
        origin=name,
        settings=settings,
        defaults=usual,
        world=_world(words[: program or 0]),
        findings=tuple(reading.findings),
        notes=tuple(reading.notes),
    )


def _words(text: str, name: str) -> Iterator[_Word]:
    """Yield the words of a text, comments and the ends of continued lines left out."""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        for match in _WORD.finditer(re.sub(r"(^|\s)#.*$", "", line)):
            try:
                parts = shlex.split(match[0])
            except ValueError:
                parts = [match[0]]
            yield from (_Word(part, Spot(name, number, match.start() + 1)) for part in parts if part.strip("\\"))


def _read(words: list[_Word], reading: _Reading) -> _Word | None:
    """Add what the words behind the program say, and return the name of the recipe."""
    recipe: _Word | None = None
    index = 0
    while index < len(words):
        word = words[index]
        option, equals, value = word.text.partition("=")
        index += 1
        if not word.text.startswith("-"):
            match = _OVERRIDE.fullmatch(word.text)
            if match:
                _override(match[1], match[2], word, reading)
            continue
        follows = words[index] if not equals and index < len(words) and not words[index].text.startswith("-") else None
        given = value if equals else follows.text if follows and "=" not in follows.text else None
        index += not equals and given is not None
        if option in {"--recipe", "--model"} and given is not None:
            recipe = _Word(given if option == "--recipe" else f"{given}_pretrain_config", word.spot)
        elif option in OPTIONS and given is not None:
            _option(option, given, word, reading)
    return recipe


def _option(option: str, text: str, word: _Word, reading: _Reading) -> None:
    key = OPTIONS[option]
    if key in reading.written and key not in reading.options:
        return  # an override wins, wherever it stands
    reading.options.add(key)
    _keep(key, f"{option}", text, word, reading)


def _override(key: str, text: str, word: _Word, reading: _Reading) -> None:
    """Keep what an override says, and tell where it is none that is known, or said before with another value."""
    section = key.partition(".")[0]
    if section not in SECTIONS:
        near = get_close_matches(section, SECTIONS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"they are {', '.join(SECTIONS[:8])}, ..."
        reading.find(UNKNOWN, ERROR, word, key, f"{key} is in no section of the configuration; {hint}")
        return
    slip = get_close_matches(key, (*KEYS, SEQUENCE), n=1, cutoff=_NEAR)
    if key not in KEYS and key != SEQUENCE and key not in SWITCHES and slip:
        message = f"{key} is no field that is known, and unknown fields are refused; did you mean {slip[0]}?"
        reading.find(UNKNOWN, WARNING, word, key, message)
    before = reading.written.get(key)
    value = _keep(key, key, text, word, reading)
    if before is not None and before.value != value:
        place = "an option" if key in reading.options else "another override"
        message = f"{key} is {before.value} at {before.spot} by {place}, and {value} here, which counts; keep only one"
        reading.find(REPEATED, WARNING, word, key, message)
    reading.options.discard(key)


def _keep(key: str, name: str, text: str, word: _Word, reading: _Reading) -> Any:
    """Keep a value, and tell where it is of a wrong kind."""
    value: Any = None
    try:
        value = None if text in {"null", "None", ""} else scalar(text)
    except ValueError:
        value = text
    if "$" in text:
        reading.notes.append(f"{word.spot}: {name} is left open, for {text} is set elsewhere")
        value = None
    elif key in COUNTS and value is not None and not _counts(value):
        message = f"{name} should be a whole number from 1 to {MOST:,}, not {text[:40]!r}"
        reading.find(BAD_VALUE, ERROR, word, name, message)
        value = None
    elif key in SWITCHES and value is not None and not isinstance(value, bool):
        reading.find(BAD_VALUE, ERROR, word, name, f"{name} should be true or false, not {text[:40]!r}")
        value = None
    reading.written[key] = Setting(name=name, value=value, spot=word.spot)
    return value


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST


def _world(words: list[_Word]) -> Setting | None:
    """Return the ranks that torchrun starts; None where it is not said in numbers."""
    found: dict[str, int] = {}
    spot = None
    for index, word in enumerate(words):
        match = _COUNT.match(word.text)
        after = words[index + 1].text if index + 1 < len(words) else ""
        given = word.text.partition("=")[2] if match and match[2] else after
        if match and re.fullmatch(r"[0-9]{1,6}", given):
            found[match[1].replace("_", "-")] = int(given)
            spot = spot or word.spot
    if "nproc-per-node" not in found or spot is None:
        return None
    return Setting(name="torchrun", value=found.get("nnodes", 1) * found["nproc-per-node"], spot=spot)
