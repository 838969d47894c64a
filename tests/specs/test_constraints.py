"""Constraints: the ways to write one, and what is refused."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.specs.constraints import parse_constraint


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("tp <= 8", ("tp", "<=", "8")),
        ("tp=8", ("tp", "=", "8")),
        ("pp == 4", ("pp", "=", "4")),
        ("pp < 4", ("pp", "<=", "3")),
        ("dp > 1", ("dp", ">=", "2")),
        ("pp != 2", ("pp", "!=", "2")),
        ("mbs <= 2", ("micro_batch", "<=", "2")),
        ("vpp <= 1", ("vpp", "<=", "1")),
        ("virtual_stages = 4", ("vpp", "=", "4")),
        ("schedule != interleaved", ("schedule", "!=", "interleaved")),
        ("zero = 0", ("zero", "=", "0")),
        ("zero_stage <= 1", ("zero", "<=", "1")),
        ("recompute: never", ("recompute", "=", "none")),
        ("recompute: selective", ("recompute", "=", "selective")),
        ("recompute != full", ("recompute", "!=", "full")),
        ("cp <= 4", ("cp", "<=", "4")),
        ("cp_comm_type: a2a", ("cp_comm_type", "=", "a2a")),
        ("schedule: 1f1b", ("schedule", "=", "1f1b")),
        ("group v100 unused", ("group v100", "=", "unused")),
        ("group v100: unused", ("group v100", "=", "unused")),
        ("group v100 <= 16", ("group v100", "<=", "16")),
        ("use at most 64 devices", ("devices", "<=", "64")),
        ("devices <= 64", ("devices", "<=", "64")),
        ("  TP  <=   8 ", ("tp", "<=", "8")),
    ],
)
def test_normal_form(text: str, normal: tuple[str, str, str]) -> None:
    """What a user writes becomes subject, operator and value."""
    found = parse_constraint(text)
    assert (found.subject, found.operator, found.value) == normal
    assert found.text == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not a constraint; write something like"),
        ("make it fast please", "is not a constraint"),
        ("tpp = 2", "did you mean tp"),
        ("tp <= many", "whole number"),
        ("tp <= 0", "tp is at least 1"),
        ("tp < 1", "tp is at least 1"),
        ("tp = -1", "whole number"),
        ("zero = 4", "zero is from 0 to 3"),
        ("recompute = ful", "did you mean full"),
        ("recompute <= full", "has no order"),
        ("use at most x devices", "whole number"),
        ("group a >= unused", "write group a unused"),
    ],
)
def test_refusals(text: str, words: str) -> None:
    """What is no constraint is refused with what would be one."""
    with pytest.raises(SpecError) as caught:
        parse_constraint(text, "job.yaml:3 constraints[0]")
    assert caught.value.problems[0].place == "job.yaml:3 constraints[0]"
    assert words in str(caught.value)


def test_groups_by_their_beginning() -> None:
    """The beginning of one group's name is enough, of several not."""
    groups = ("v100-sxm-32gb", "a100-sxm-80gb", "a100-pcie-80gb")
    assert parse_constraint("group V100 unused", groups=groups).subject == "group v100-sxm-32gb"
    with pytest.raises(SpecError, match="several groups begin with a100"):
        parse_constraint("group a100 unused", groups=groups)
    with pytest.raises(SpecError, match="no group is called t4"):
        parse_constraint("group t4 unused", groups=groups)


def test_axes_of_the_caller() -> None:
    """An axis that only the caller knows may be limited."""
    assert parse_constraint("xx <= 2", axes=("xx",)).subject == "xx"
