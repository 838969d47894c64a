"""Layouts in one line."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.specs.layout import Layout, parse_layout


def test_every_key() -> None:
    """Every key of a layout has its field."""
    text = "tp=4,pp=2,vpp=3,dp=8,cp=2,ep=2,etp=1,zero=1,sp=1,mbs=1,gbs=512,seq=4096,"
    assert parse_layout(text + "cp_comm_type=a2a,recompute=full,schedule=1f1b,framework=x") == Layout(
        tp=4,
        pp=2,
        vpp=3,
        dp=8,
        cp=2,
        cp_comm_type="a2a",
        ep=2,
        etp=1,
        zero=1,
        sp=True,
        mbs=1,
        gbs=512,
        seq=4096,
        recompute="full",
        schedule="1f1b",
        framework="x",
    )


def test_missing_means_one_or_open() -> None:
    """What is not given is 1, or open where the default depends on more."""
    layout = parse_layout("pp=2")
    assert (layout.tp, layout.cp, layout.mbs) == (1, 1, 1)
    assert (layout.dp, layout.zero, layout.sp, layout.gbs, layout.seq) == (None, None, None, None, None)


def test_spaces_and_other_words() -> None:
    """Spaces may stand anywhere, and long names are understood."""
    assert parse_layout(" tp = 4  micro_batch=2, sp=off,") == Layout(tp=4, mbs=2, sp=False)


def test_axes_of_the_caller() -> None:
    """Axes without a field of their own are kept beside."""
    assert parse_layout("tp=2,xx=3", axes=("tp", "xx")).others == (("xx", 3),)


def test_all_problems_at_once() -> None:
    """Every mistake is told, with what would be right."""
    with pytest.raises(SpecError) as caught:
        parse_layout("tpp=4,tp=0,tp=2,zero=7,sp=maybe,recompute=ful,cp_comm_type=p3p,pp=x,schedule=")
    words = [
        "did you mean tp",
        "from 1 on",
        "gives tp twice",
        "0, 1, 2 or 3",
        "1 or 0",
        "selective",
        "p2p or a2a",
        "pp=x",
        "=NAME",
    ]
    assert len(caught.value.problems) == len(words)
    for problem, word in zip(caught.value.problems, words, strict=True):
        assert problem.place == "--layout"
        assert word in problem.message


def test_empty_layout() -> None:
    """An empty layout tells how one looks."""
    with pytest.raises(SpecError, match="tp=4,pp=2"):
        parse_layout("")
