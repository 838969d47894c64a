"""What is a slip of the pen, and what a name of somebody's own."""

from __future__ import annotations

import pytest

from planner.specs.problems import is_slip, near_words

KNOWN = (
    "--batch-size",
    "--patch-dim",
    "--overlap-param-gather",
    "--lr-warmup-iters",
    "--train-data-path",
    "zero_stage",
)


@pytest.mark.parametrize(
    ("word", "right", "wanted"),
    [
        ("--overlap-param-gater", "--overlap-param-gather", True),
        ("--overlap-parma-gather", "--overlap-param-gather", True),
        ("--overlap_param-gather", "--overlap-param-gather", True),
        ("--overlapparam-gather", "--overlap-param-gather", True),
        ("zero_optimisation", "zero_optimization", True),
        ("--patch-size", "--batch-size", False),
        ("--hatch-size", "--batch-size", True),
        ("--lr-warmup-tokens", "--lr-warmup-iters", False),
        ("--train-data", "--train-data-path", False),
        ("--data-path2", "--data-path", False),
        ("--opd-type", "--rope-type", False),
    ],
)
def test_slips(word: str, right: str, *, wanted: bool) -> None:
    """One letter of one part, which is no part of a known word."""
    assert is_slip(word, right, KNOWN) is wanted


def test_long_texts_are_slips_of_nothing() -> None:
    """Likeness takes the product of both lengths."""
    assert near_words("x" * 101, ("x" * 100,)) == []
    assert near_words("x" * 100, ("x" * 99,)) == ["x" * 99]
    assert not is_slip("x" * 101, "x" * 100)
