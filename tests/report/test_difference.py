"""What two plans differ in: nothing that is decided is left out, and the page stays within its columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

import builders
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.plan import SEARCHED, Plan, Stage, Strategy
from planner.report.difference import Side, decided, difference_line, difference_text, in_words
from planner.specs.catalog import optimizer

UNSHOWN = {
    "gap": "how long is searched; what was found is told",
    "time_limit": "as gap",
    "constraints": "what the search may choose; what it chose is told",
    "target": "what must be able to run it, as constraints; an imported plan asks for nothing",
    "total_tokens": "how many steps are made, of which each stays the same",
    "summary": "of an optimizer, which is a row of the catalogue: its name says what the row holds",
    "master_bytes": "as summary",
    "state_bytes": "as summary",
    "update_bytes": "as summary",
    "gradient_bytes": "as summary",
    "source": "as summary",
}
"""Fields that two plans may differ in without a word, and why."""

STRATEGY = Strategy(degrees=(("tp", 2), ("cp", 2)))
STAGES = (
    Stage(
        group="old", first_layer=0, last_layer=3, later_chunks=((8, 11),), strategy=STRATEGY, num_recomputed=2, split=2
    ),
    Stage(group="new", first_layer=4, last_layer=7, later_chunks=((12, 15),), strategy=STRATEGY, num_recomputed=2),
)
KIND = Plan(
    stages=STAGES,
    schedule=SEARCHED,
    num_replicas=2,
    micro_batch=1,
    num_microbatches=8,
    zero_stage=1,
    virtual_stages=2,
    microbatch_group=4,
    short_replicas=1,
    order=("0F0,0B0", "0F0,0B0"),
)
PLAN = replace(KIND, other_pipelines=(replace(KIND, num_microbatches=4),))
"""Two kinds of two unlike stages, of which every field says something."""
JOB = builders.job(optimizer=optimizer("adam-bf16-pure"))


def side(plan: Plan = PLAN, job: Job = JOB, cluster: Cluster | None = None) -> Side:
    return Side(plan=plan, cluster=cluster or builders.cluster(), model=builders.model(), job=job, prediction=None)


def changed(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield (place, the value with one thing changed) for every single thing in it."""
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            for where, other in changed(getattr(value, field.name), f"{place}.{field.name}"):
                yield where, replace(value, **{field.name: other})
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            for where, other in changed(item, f"{place}[{index}]"):
                yield where, (*value[:index], other, *value[index + 1 :])
    elif isinstance(value, bool):
        yield place, not value
    elif isinstance(value, (int, float)):
        yield place, value + 1
    elif isinstance(value, str):
        yield place, f"{value}x"


def shown(place: str) -> bool:
    return place.rpartition(".")[2] not in UNSHOWN


PLANS = [*changed(PLAN, "plan")]
JOBS = [item for item in changed(JOB, "job") if shown(item[0])]


@pytest.mark.parametrize(("place", "plan"), PLANS, ids=[place for place, _ in PLANS])
def test_no_field_of_a_plan_is_forgotten(place: str, plan: Plan) -> None:
    """Whatever is changed in a plan, of whichever stage or kind of pipeline, is a difference."""
    assert decided(side(), side(plan)), f"{place} is decided, and planner/report/choices.py has no row of it"


@pytest.mark.parametrize(("place", "job"), JOBS, ids=[place for place, _ in JOBS])
def test_no_field_of_a_job_is_forgotten(place: str, job: Job) -> None:
    """As of a plan, but for what is asked of the search alone."""
    assert decided(side(), side(job=job)), f"{place} is decided, and planner/report/choices.py has no row of it"


def test_every_field_is_walked_over() -> None:
    """A field that the sample leaves empty would be passed over in silence."""
    walked = " ".join(place for place, _ in [*changed(PLAN, "plan"), *changed(JOB, "job")])
    missing = {
        field.name
        for kind in (Plan, Stage, Strategy, Job)
        for field in fields(kind)
        if f".{field.name}" not in walked and field.name not in UNSHOWN
    }
    assert not missing


def test_a_row_says_which_stages_differ() -> None:
    """The same values in another order are another plan: with tp 4, 4, 2 as with 4, 2, 2 both degrees are used."""

    def with_degrees(*degrees: int) -> Side:
        stages = tuple(replace(STAGES[1], strategy=Strategy(degrees=(("tp", tp),))) for tp in degrees)
        return side(replace(KIND, stages=stages))

    assert in_words(decided(with_degrees(4, 4, 2), with_degrees(4, 2, 2))).endswith("tp 2 x 4, 2 -> 4, 2 x 2")


def test_chunks_cut_otherwise_are_a_difference() -> None:
    """8 layers in chunks of 4 and 4, or of 5 and 3."""
    other = (replace(STAGES[0], last_layer=4, later_chunks=((9, 11),)), STAGES[1])
    assert in_words(decided(side(KIND), side(replace(KIND, stages=other)))) == "layers 2 x 8 -> 5+3, 8"


def test_a_group_of_its_default_is_none_of_its_own() -> None:
    """0 micro-batches a group are as many as there are stages."""
    one, two = (side(replace(KIND, microbatch_group=number)) for number in (0, 2))
    assert not decided(one, two)
    assert difference_line(one, two) == "the decision is the same"


def test_long_cells_are_broken_behind_commas() -> None:
    """Of stages that all differ from their neighbours, on 80 columns; no word is cut, no run taken apart."""
    stages = tuple(replace(STAGES[1], num_recomputed=number % 3) for number in range(16))
    other = tuple(replace(STAGES[1], num_recomputed=(number + 1) % 3) for number in range(16))
    one, two = (replace(KIND, stages=found) for found in (stages, other))
    names = (f"{'nested/' * 9}a.yaml", "b.yaml")
    head, *rows = difference_text(names, side(one), side(two), 80).splitlines()[1:]
    assert max(map(len, [head, *rows])) <= 80
    assert head.split() == ["...ed/nested/nested/a.yaml", "b.yaml"]
    second = head.index("b.yaml")
    (told,) = decided(side(one), side(two))
    for cells, whole in (
        ([row[13:second].strip() for row in rows], told.before),
        ([row[second:].strip() for row in rows], told.after),
    ):
        assert " ".join(cells).strip() == whole
        assert all(cell.endswith((",", whole[-4:])) for cell in filter(None, cells))
