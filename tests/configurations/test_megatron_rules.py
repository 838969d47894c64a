"""Every rule of Megatron-LM finds what breaks it, and is silent once that is mended or where nothing is known."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace

import pytest

from configurations.megatron_examples import BASE, EXAMPLES, VERSIONS, WORLD, merged
from planner.configurations.engine import broken
from planner.configurations.forms.megatron import MEGATRON
from planner.configurations.forms.megatron.rules import RULES
from planner.domain.configuration import SEVERITIES, Configuration, Finding, Setting, Spot
from planner.errors import SpecError

BY_THE_READER = {"MG001", "MG002", "MG003", "MG004", "MG005", "MG006"}


def configuration(changes: str, version: str = "", world: int | None = WORLD) -> Configuration:
    words, variables = merged(BASE, changes)
    read = MEGATRON.read("\n".join(words), "arguments.txt")
    assert read.findings == ()
    spot = Spot("arguments.txt")
    return replace(
        read,
        version=version,
        world=Setting(name="world size", value=world, spot=spot) if world else None,
        environment={name: Setting(name=name, value=value, spot=spot) for name, value in variables.items()},
    )


def found(changes: str, version: str = "", world: int | None = WORLD) -> list[Finding]:
    return list(broken(MEGATRON, configuration(changes, version, world)))


def codes(changes: str, version: str = "", world: int | None = WORLD) -> set[str]:
    return {one.code for one in found(changes, version, world)}


def test_the_base_breaks_nothing() -> None:
    """So that every finding in the examples is theirs."""
    assert found("") == []


def test_every_rule_has_an_example() -> None:
    """Apart from those of the reader, which its own tests show."""
    assert {rule.code for rule in RULES} - BY_THE_READER == set(EXAMPLES)


@pytest.mark.parametrize("code", EXAMPLES)
def test_a_rule_finds_what_breaks_it(code: str) -> None:
    """The broken example is found, the mended one is not."""
    wrong, right = EXAMPLES[code]
    version = VERSIONS.get(code, "")
    assert code in codes(wrong, version)
    assert code not in codes(right, version)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_tells_its_story(rule: object) -> None:
    """A code in its hundred, a title, a formula, a reason and a source, in sentences."""
    one = next(known for known in RULES if known is rule)
    assert re.fullmatch(r"MG[0-7]\d\d", one.code)
    assert one.severity in SEVERITIES
    assert not one.name.endswith(".")
    assert one.why.endswith(".")
    assert one.summary
    assert re.search(r"NVIDIA|POSIX|20\d\d", one.source)


def test_codes_are_used_once() -> None:
    """A code means one rule for ever."""
    listed = [rule.code for rule in RULES]
    assert len(listed) == len(set(listed))
    assert listed == sorted(listed, key=lambda code: code[:3])


@pytest.mark.parametrize("code", EXAMPLES)
def test_without_ranks_nothing_is_said_of_them(code: str) -> None:
    """Where the ranks are not known, a mended example breaks nothing, and what needs them is silent."""
    assert code not in codes(EXAMPLES[code][1], VERSIONS.get(code, ""), world=None)
    if code in {"MG101", "MG102", "MG107", "MG110", "MG221", "MG222", "MG226", "MG227", "MG302", "MG306"}:
        assert code not in codes(EXAMPLES[code][0], VERSIONS.get(code, ""), world=None)


@pytest.mark.parametrize("code", EXAMPLES)
def test_nothing_is_guessed_of_what_is_open(code: str) -> None:
    """With every value left open, no rule finds anything: a script whose variables come from elsewhere is not wrong."""
    words, _ = merged(BASE, EXAMPLES[code][0])
    text = "".join(f"{word} " if word.startswith("--") else "$ELSEWHERE " for word in words)
    read = MEGATRON.read(f"torchrun pretrain_gpt.py {text}", "run.sh")
    known = {one.code for one in broken(MEGATRON, read) if one.severity == "error"}
    switches_only = {"MG304", "MG405", "MG407", "MG502", "MG605", "MG606", "MG607", "MG614", "MG601", "MG616", "MG705"}
    switches_only |= {
        "MG514",
        "MG602",
        "MG648",
        "MG649",
        "MG706",
        "MG707",
        "MG710",
        "MG715",
        "MG716",
        "MG712",
        "MG512",
        "MG515",
    }
    assert known <= switches_only


@pytest.mark.parametrize("number", ["0", "-1", "7", "999999999999999999"])
@pytest.mark.parametrize("code", EXAMPLES)
def test_any_number_is_judged_at_once(code: str, number: str) -> None:
    """Every number of an example replaced: nothing fails, and nothing counts up to it."""
    words, _ = merged(BASE, EXAMPLES[code][0])
    text = "\n".join(number if word.isdecimal() else word for word in words)
    read = MEGATRON.read(text, "arguments.txt")
    for world in (None, 16, int(number)):
        ranks = Setting(name="world size", value=world, spot=Spot("arguments.txt")) if world else None
        judged = replace(read, world=ranks, version=VERSIONS.get(code, ""))
        broken(MEGATRON, judged)
        with suppress(SpecError):
            MEGATRON.setup(judged)


@pytest.mark.parametrize("code", EXAMPLES)
def test_messages_are_sentences(code: str) -> None:
    """They begin with what is wrong, name no inner keys, and say what to do."""
    for one in found(EXAMPLES[code][0], VERSIONS.get(code, "")):
        assert not one.message.endswith(".")
        assert "None" not in one.message
        inner = set(re.findall(r"\b[a-z]+_[a-z]+_[a-z]+\b", one.message))
        assert inner <= {"mla_up_proj", "gdn_norm_out", "fused_group_mlp"}
        assert len(one.message) < 400
