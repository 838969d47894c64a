"""An order that somebody edited: each trouble has its place and its remedy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.checks import Context, run_checks
from planner.schedules import rows, schedule

GOOD = rows(schedule("zb-h1").passes(2, 3))
"""0F0,0F1,0I0,0W0,0F2,0I1,0W1,0I2,0W2 and 1F0,1I0,1F1,1I1,1W0,1F2,1I2,1W1,1W2."""


def found(sound: Context, order: tuple[str, ...], **fields: object) -> list[str]:
    """Return what the check finds in a plan of two stages and three micro-batches with an order."""
    plan = replace(sound.plan, schedule="search", order=order, num_microbatches=3)
    changed = replace(sound, plan=replace(plan, **fields))  # type: ignore[arg-type]
    return [f"{one.place}: {one.message}" for one in run_checks(changed, names=("order",))]


def test_orders_of_named_schedules_are_good(sound: Context) -> None:
    assert found(sound, GOOD) == []
    assert found(sound, rows(schedule("1f1b").passes(2, 3))) == []
    assert found(sound, rows(schedule("zbv").passes(2, 3)), virtual_stages=2) == []


@pytest.mark.parametrize(
    ("rank", "old", "new", "message"),
    [
        (0, "0W0,", "", "order[0]: lacks 0W0; every micro-batch needs F, and either B or both I and W"),
        (
            1,
            "1F2,1I2,1W1,1W2",
            "1W1",
            "order[1]: lacks 1F2, 1B2; every micro-batch needs F, and either B or both I and W",
        ),
        (0, "0F2", "1F2", "order[0]: has 1F2; stage 0 runs virtual stages 0 on micro-batches 0 to 2"),
        (0, "0F2", "0F2,0F3", "order[0]: has 0F3; stage 0 runs virtual stages 0 on micro-batches 0 to 2"),
        (0, "0F2", "0F2,0F2", "order[0]: has 0F2 more than once; keep one of each"),
        (0, "0W0", "0W0,0B0", "order[0]: has 0B0 and a part of the same; keep either B or both I and W"),
        (0, "0I0,0W0", "0W0,0I0", "order[0]: has 0W0 too early; F comes before B and I, and I before W"),
        (
            0,
            "0F0,0F1,0I0",
            "0F0,0I0,0F1",
            "",
        ),
    ],
)
def test_what_is_wrong_in_a_row(sound: Context, rank: int, old: str, new: str, message: str) -> None:
    order = tuple(row.replace(old, new) if number == rank else row for number, row in enumerate(GOOD))
    assert order != GOOD
    problems = found(sound, order)
    assert message in problems if message else not problems


def test_ranks_that_wait_for_one_another_are_named(sound: Context) -> None:
    """Stage 0 goes back on micro-batch 0 before it gives on 1, and stage 1 forward on 1 before it goes back on 0."""
    order = ("0F0,0B0,0F1,0B1,0F2,0B2", "1F0,1F1,1B0,1B1,1F2,1B2")
    (problem,) = found(sound, order)
    assert problem == (
        "order: never ends: stage 0 waits for the input of 0B0; stage 1 waits for the input of 1F1; let each of them"
        " come later in its row"
    )


def test_rows_and_schedule_must_match(sound: Context) -> None:
    assert found(sound, GOOD[:1]) == ["order: has 1 rows; must be 2, the passes of each stage"]
    assert found(sound, ()) == ["order: has 0 rows; must be 2, the passes of each stage"]
    assert found(sound, GOOD, schedule="1f1b") == [
        "order: is given, and schedule 1f1b has its own; leave it out, or write search"
    ]
    assert found(sound, ("0F0,x", "1F0")) == ["order: cannot be read: 'x' is no pass"]


def test_nonsense_is_found_and_does_not_fail(sound: Context) -> None:
    """Whatever stands in a row, every check says what it has to say."""
    for order in (("x", "y"), ("", ""), ("9F9", "9W9"), ("0F0",) * 2, GOOD[::-1]):
        plan = replace(sound.plan, schedule="search", order=order, num_microbatches=3, virtual_stages=2)
        assert run_checks(replace(sound, plan=plan))
