"""docs/reference.md is complete: every command, option, JSON key and key of a file stands in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import transcripts
from planner.architectures import FAMILIES
from planner.cli import app
from planner.loader import load
from planner.schedules import SCHEDULES
from planner.specs.schema import KINDS, schema

PAGE = (transcripts.ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
WORDS = frozenset(re.findall(r"`([^`\s]+)`", PAGE))
"""What the page sets as code, one word each."""

PLAN = "planner plan 1x4:h100-sxm-80gb+1x4:a100-sxm-80gb model_specs/gpt2.json --no-references --global-batch 64"
RUNS = {
    "plan": (f"{PLAN} --format json", 0),
    "infeasible": ("planner plan 1x2:t4-16gb model_specs/llama-2-7b.json --no-references --format json", 3),
    "predict": (
        "planner predict 1x8:t4-16gb model_specs/llama-2-7b.json --layout tp=2,gbs=8 --precision fp16 --format json",
        0,
    ),
    "check": (f"{PLAN} -o - | planner check - --format json", 0),
    "accuracy": ("planner accuracy tests/accuracy/data/sample.csv --format json", 0),
    "calibrate": ("planner calibrate tests/accuracy/data/korthikanti2022_selective_recompute.csv --format json", 0),
    "explain": (f"{PLAN} -o - | planner explain - --why-not 'pp = 1' --format json", 0),
}
"""What is run -> (command, exit code); together they print every key."""


def commands(command: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    """Return each command with its options, groups of commands left out."""
    inner: dict[str, Any] = getattr(command, "commands", {})
    if not inner:
        options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
        yield name, [word for option in options for word in (*option.opts, *option.secondary_opts)]
    for title, one in inner.items():
        yield from commands(one, f"{name} {title}")


def keys(value: Any) -> Iterator[str]:
    """Return the keys of a document, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_commands_and_options_are_described() -> None:
    """Every command and every option stands in the reference."""
    found = dict(commands(typer.main.get_command(app), "planner"))
    assert [name for name in found if f"`{name}" not in PAGE] == []
    assert sorted({option for options in found.values() for option in options} - WORDS) == []


@pytest.mark.parametrize("name", RUNS)
def test_keys_of_real_runs_are_described(name: str, tmp_path: Path) -> None:
    """Every key that a command prints as JSON stands in the reference."""
    command, code = RUNS[name]
    done = transcripts.run(command, transcripts.scratch(tmp_path))
    assert done.code == code, done.stderr
    assert sorted(set(keys(json.loads(done.stdout))) - WORDS) == []


@pytest.mark.parametrize("kind", KINDS)
def test_keys_of_files_are_described(kind: str) -> None:
    """Every key that a schema allows stands in the reference."""
    found = schema(kind)
    blocks = [found, *found.get("$defs", {}).values()]
    assert sorted({key for block in blocks for key in block.get("properties", {})} - WORDS) == []


def test_families_and_schedules_are_described() -> None:
    """Every model family and every schedule stands in the reference."""
    assert sorted({*FAMILIES, *(schedule.name for schedule in SCHEDULES)} - WORDS) == []


def shown_figure(figure: object) -> str:
    """Return a constant as the table shows it."""
    if isinstance(figure, bool):
        return ("no", "yes")[figure]
    if isinstance(figure, list):
        return ", ".join(figure) or "-"
    return figure if isinstance(figure, str) else f"{figure:g}"


def test_constants_of_frameworks_are_those_of_the_catalogue() -> None:
    """The table in docs/costs.md holds the numbers of catalog/frameworks.yaml."""
    catalogue = transcripts.ROOT / "planner" / "catalog" / "frameworks.yaml"
    value: dict[str, dict[str, object]] = load(catalogue.read_text(encoding="utf-8"), "frameworks.yaml").value
    rows = {name: row for name, row in value.items() if "like" not in row}
    lines = (transcripts.ROOT / "docs" / "costs.md").read_text(encoding="utf-8").splitlines()
    assert f"| constant | {' | '.join(rows)} |" in lines
    keys_of_rows = [key for key in next(iter(rows.values())) if key not in {"source", "can"}]
    for key in keys_of_rows:
        shown = [shown_figure(row[key]) for row in rows.values()]
        assert f"| `{key}` | {' | '.join(shown)} |" in lines, f"{key} is not as in the catalogue"
    for name in value.keys() - rows.keys():
        own = [key for key in value[name] if key not in {"like", "source", "can"}]
        told = ", ".join(f"`{key}` {shown_figure(value[name][key])}" for key in own)
        assert f"`{name}` has those of `{value[name]['like']}`, but {told}." in lines
