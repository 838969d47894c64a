"""A kind of configuration of two keys, to test what is done with every kind."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations import Form, Rule, Setup
from planner.configurations.base import Complaint
from planner.domain.configuration import ERROR, WARNING, Configuration, Finding, Setting, Spot
from planner.errors import SpecError
from planner.specs.layout import Layout

LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "intermediate_size": 1536,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "name": "tiny",
}


def read(text: str, name: str) -> Configuration:
    """Read ``stub`` and lines of ``key=number``."""
    settings, findings = {}, []
    lines = text.splitlines()
    if not lines or lines[0] != "stub":
        raise SpecError.of(f"{name}:1", "is no stub")
    for number, line in enumerate(lines[1:], 2):
        key, _, value = line.partition("=")
        spot = Spot(name, number, 1)
        if key in {"tp", "pp", "dp", "world", "batch", "experts"}:
            settings[key] = Setting(name=f"-{key}", value=int(value), spot=spot)
        else:
            findings.append(Finding(code="ST001", severity=WARNING, spot=spot, key=key, message="is not known"))
    return Configuration(form="stub", origin=name, settings=settings, findings=tuple(findings))


def _world(configuration: Configuration) -> Iterator[Complaint]:
    world, tp = configuration.number("world"), configuration.number("tp", 1)
    if world % tp:
        yield "tp", f"{world} ranks do not divide over tp {tp}"


def _wide(configuration: Configuration) -> Iterator[Complaint]:
    if configuration.number("tp", 1) > 8:
        yield "tp", "is wider than a node"


def setup(configuration: Configuration) -> Setup:
    """Return tp, pp, dp and batch."""
    if "experts" in configuration:
        raise SpecError.of(configuration.origin, "experts cannot be planned yet")
    layout = Layout(
        tp=configuration.number("tp", 1),
        pp=configuration.number("pp", 1),
        dp=configuration.number("dp") or None,
        gbs=configuration.number("batch") or None,
        seq=4096,
    )
    return Setup(layout=layout, world=configuration.number("world") or None, model=LLAMA)


STUB = Form(
    name="stub",
    summary="for tests",
    framework="megatron",
    recognises=lambda text, _name: text.startswith("stub"),
    read=read,
    setup=setup,
    rules=(
        Rule(
            code="ST101",
            name="World divides",
            summary="world % tp = 0",
            why="Else ranks are left over.",
            source="this file",
            check=_world,
            severity=ERROR,
        ),
        Rule(
            code="ST102",
            name="Tensor groups stay in a node",
            summary="tp <= 8",
            why="Links between nodes are slow.",
            source="this file",
            check=_wide,
            severity=WARNING,
            since="2.0",
            until="3.0",
        ),
    ),
)
