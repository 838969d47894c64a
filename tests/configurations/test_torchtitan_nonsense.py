"""Nonsense in torchtitan's files is told or left alone; nothing hangs, and nothing but a SpecError is raised."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.configurations.engine import broken
from planner.configurations.forms.torchtitan import TORCHTITAN as FORM
from planner.configurations.forms.torchtitan.catalog import keys
from planner.domain.configuration import Configuration, Setting, Spot
from planner.errors import SpecError

TABLES = ("model", "training", "parallelism", "activation_checkpoint", "compile", "checkpoint")
KEYS = sorted(key for key in keys("0.2") if key.partition(".")[0] in TABLES and key.count(".") == 1)
NUMBERS = st.sampled_from([-(10**18), -2, -1, 0, 1, 2, 3, 4, 7, 8, 100, 10**9, 2**62])
TEXTS = st.sampled_from(
    ["", "8B", "llama3", "qwen3", "deepseek_v3", "16B", "1F1B", "DualPipeV", "selective", "²", "9" * 50]
)
PARTS = st.lists(st.lists(st.sampled_from(["tok_embeddings", "layers.0", "layers.9999", "layers.99999", "norm", "x"])))
VALUES = st.one_of(NUMBERS, TEXTS, st.booleans(), PARTS, st.sampled_from([1.5, [], [1], ["model"]]))
WORLDS = st.one_of(st.none(), NUMBERS)


def judged(found: Configuration, world: int | None) -> None:
    """Hold the configuration to every rule, and ask what it means."""
    if world is not None:
        found = replace(found, world=Setting(name="ranks", value=world, spot=Spot("x")))
    for version in ("0.2.2", "0.3.0", ""):
        this = replace(found, version=version)
        for one in broken(FORM, this):
            assert len(one.message) < 2000
        with contextlib.suppress(SpecError):
            layout = FORM.setup(this).layout
            assert min(layout.tp, layout.pp, layout.cp, layout.mbs, layout.seq or 0) >= 1


@given(values=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=12), world=WORLDS)
def test_any_values(values: dict[str, Any], world: int | None) -> None:
    """Of a wrong kind, negative, huge, contradictory."""
    lines = {key: json.dumps(value) for key, value in values.items()}
    text = "".join(
        f"[{table}]\n"
        + "".join(f"{key.partition('.')[2]} = {line}\n" for key, line in lines.items() if key.startswith(f"{table}."))
        for table in TABLES
    )
    judged(FORM.read(text, "x.toml"), world)
    recipe = "from torchtitan.models.llama3.config_registry import llama3_8b\ndef plan():\n    c = llama3_8b()\n"
    body = "".join(f"    c.{key} = {value!r}\n" for key, value in values.items() if not key.startswith("model."))
    judged(FORM.read(f"{recipe}{body}    return c\n", "x.py"), world)
    options = " ".join(f"--{key} '{value}'" for key, value in values.items())
    judged(FORM.read(f"torchrun --nproc-per-node 8 -m torchtitan.train --module llama3 {options}\n", "x.sh"), world)


@given(text=st.text(alphabet="[]=\"'#.\n ab1{},\\", max_size=60))
def test_any_text(text: str) -> None:
    """Broken TOML, Python and shell are refused or read."""
    for head, name in (("[model]\n", "x.toml"), ("def plan():\n    ", "x.py"), ("torchtitan.train ", "x.sh")):
        with contextlib.suppress(SpecError):
            judged(FORM.read(head + text, name), None)


@pytest.mark.parametrize(
    "body",
    [
        "    return f() + " + " + ".join("1" * 20_000),
        "    x = 'ab'\n" + "    x = f'{x}{x}'\n" * 60 + "    return f()",
        "    x = [1, 2]\n" + "    x = x + x\n" * 60 + "    return f()",
        "".join("    f()\n    g(); c = g()\n" for _ in range(20)) + "    return g()",
        "    return " + "(" * 150 + "1" + ")" * 150,
    ],
)
def test_a_module_cannot_make_the_reader_work_for_ever(body: str) -> None:
    """Expressions that double with every line, circles of functions, depths."""
    text = f"def f():\n{body}\n\n\ndef g():\n{body}\n"
    with pytest.raises(SpecError):
        FORM.read(text, "plan.py")
