"""Each check passes a sound plan, finds what was broken, and says what would be right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from planner.checks import CHECKS, Check, Context, run_checks
from planner.domain.plan import Stage, Strategy
from planner.schedules import SCHEDULES

Change = Callable[[Context], Context]


def plan(**fields: Any) -> Change:
    """Return the change of some of the plan's fields."""
    return lambda context: replace(context, plan=replace(context.plan, **fields))


def alike(context: Context) -> Context:
    """Return the context with the strategy of its first stage everywhere."""
    first, *others = context.plan.stages
    stages = (first, *(replace(other, strategy=first.strategy) for other in others))
    return replace(context, plan=replace(context.plan, stages=stages))


def stage(index: int, **fields: Any) -> Change:
    """Return the change of some fields of one stage."""

    def change(context: Context) -> Context:
        stages = list(context.plan.stages)
        stages[index] = replace(stages[index], **fields)
        return replace(context, plan=replace(context.plan, stages=tuple(stages)))

    return change


def chunks(*stages: tuple[tuple[int, int], ...]) -> Change:
    """Return the change of the layers of both stages to two chunks each."""

    def change(context: Context) -> Context:
        made = tuple(
            replace(old, first_layer=first, last_layer=last, later_chunks=later)
            for old, ((first, last), *rest) in zip(context.plan.stages, stages, strict=True)
            for later in (tuple(rest),)
        )
        return plan(stages=made, virtual_stages=2, schedule="interleaved")(context)

    return change


def tp(index: int, degree: int) -> Change:
    """Return the change of one stage's tensor degree."""
    return stage(index, strategy=Strategy(degrees=(("tp", degree),)))


def heads(count: int) -> Change:
    """Return the change of the number of heads of the body's layers."""

    def change(context: Context) -> Context:
        body: Any = context.model.body
        return replace(context, model=replace(context.model, body=replace(body, heads=count)))

    return change


def weights(index: int, gib: float, moment: str = "forward_backward") -> Change:
    """Return the change of one stage's weights in memory at its peak, 7 GiB of activations beside them."""

    def change(context: Context) -> Context:
        stages: list[Any] = list(context.stages or ())
        stages[index] = replace(
            stages[index], memory=(("weights", gib * 2**30), ("activations", 7 * 2**30)), moment=moment
        )
        return replace(context, stages=tuple(stages))

    return change


def job(**fields: Any) -> Change:
    """Return the change of some of the job's fields."""
    return lambda context: replace(context, job=replace(context.job, **fields))


TRIPLES: tuple[tuple[str, Change, str, Change], ...] = (
    (
        "layers",
        stage(1, first_layer=6),
        "stages[1].first_layer: is 6, which leaves out layers; must be 5",
        stage(0, last_layer=5),
    ),
    (
        "layers",
        stage(0, last_layer=5),
        "stages[1].first_layer: is 5, which repeats layers; must be 6",
        stage(1, first_layer=6),
    ),
    (
        "layers",
        stage(1, last_layer=6),
        "stages[1].last_layer: is 6; must be 7, the last of the model's 8 layers",
        stage(1, last_layer=7),
    ),
    (
        "layers",
        stage(1, first_layer=8),
        "stages[1].last_layer: is 7; must be at least first_layer, which is 8",
        stage(1, first_layer=5),
    ),
    (
        "layers",
        chunks(((0, 1), (4, 5)), ((2, 3), (7, 7))),
        "stages[1].chunks[1]: is 7, which leaves out layers; must be 6",
        chunks(((0, 1), (4, 5)), ((2, 3), (6, 7))),
    ),
    (
        "layers",
        chunks(((0, 1), (4, 5)), ((2, 7),)),
        "stages[1].chunks: are 1; must be 2, the virtual stages of the plan",
        chunks(((0, 1), (4, 5)), ((2, 3), (6, 7))),
    ),
    (
        "layers",
        lambda context: plan(schedule="zbv")(chunks(((0, 1), (4, 5)), ((2, 3), (6, 7)))(context)),
        "stages[1].chunks[1]: is 6, which leaves out layers; must be 4",
        lambda context: plan(schedule="zbv")(chunks(((0, 1), (6, 7)), ((2, 3), (4, 5)))(context)),
    ),
    ("batch", plan(num_replicas=0), "num_replicas: is 0; must be at least 1", plan(num_replicas=2)),
    (
        "batch",
        plan(num_replicas=4),
        (
            "num_microbatches: micro_batch 1 x num_microbatches 6 x num_replicas 4 = 24, not the global batch of 12; "
            "num_microbatches must be 3"
        ),
        plan(num_microbatches=3),
    ),
    (
        "batch",
        plan(micro_batch=4),
        (
            "num_microbatches: micro_batch 4 x num_microbatches 6 x num_replicas 2 = 48, not the global batch of 12; "
            "micro_batch x num_replicas must divide 12"
        ),
        plan(micro_batch=6, num_microbatches=1),
    ),
    (
        "schedule",
        plan(schedule="zigzag"),
        f"schedule: is zigzag, which is not known; known are {', '.join(listed.name for listed in SCHEDULES)}, search",
        plan(schedule="gpipe"),
    ),
    (
        "schedule",
        plan(virtual_stages=2),
        (
            "virtual_stages: is 2; schedule 1f1b has one chunk a stage; any other number have interleaved,"
            " breadth-first, interleaved-zb"
        ),
        plan(schedule="interleaved"),
    ),
    (
        "schedule",
        plan(schedule="interleaved"),
        "virtual_stages: is 1; schedule interleaved needs 2 or more chunks a stage",
        plan(virtual_stages=4),
    ),
    (
        "schedule",
        plan(schedule="interleaved", virtual_stages=2, num_microbatches=7),
        "schedule: is interleaved, which needs micro-batches in groups of 2, one a stage; 7 are no whole groups",
        plan(num_microbatches=8),
    ),
    (
        "schedule",
        plan(schedule="zbv"),
        (
            "virtual_stages: is 1; schedule zbv has 2 chunks a stage; any other number have interleaved,"
            " breadth-first, interleaved-zb"
        ),
        plan(virtual_stages=2),
    ),
    (
        "schedule",
        plan(microbatch_group=4),
        "microbatch_group: is 4; must be 0 with schedule 1f1b; groups have interleaved",
        plan(schedule="interleaved", virtual_stages=2),
    ),
    (
        "schedule",
        plan(schedule="dualpipe", num_microbatches=5),
        "schedule: is dualpipe, which needs an even number of micro-batches, 4 or more; 5 do not do",
        plan(schedule="zb-h1"),
    ),
    (
        "schedule",
        plan(schedule="chimera", short_replicas=1),
        "short_replicas: is 1; must be 0 with chimera, which has as many from either end",
        lambda context: plan(short_replicas=0)(alike(context)),
    ),
    (
        "schedule",
        plan(schedule="pipedream", short_replicas=1),
        "short_replicas: is 1; must be 0 with pipedream, where replicas meet after each micro-batch",
        plan(schedule="pipedream-2bw"),
    ),
    (
        "schedule",
        lambda context: plan(schedule="spectrain", other_pipelines=(context.plan,))(context),
        "schedule: is spectrain, where replicas meet after each micro-batch; unlike ones meet once a step",
        plan(schedule="xpipe"),
    ),
    (
        "schedule",
        plan(schedule="xpipe", num_microbatches=1),
        "schedule: is xpipe, which needs 2 micro-batches or more, one a stage; there are 1",
        plan(num_microbatches=2),
    ),
    (
        "schedule",
        lambda context: plan(schedule="chimera")(stage(1, recompute="selective")(alike(context))),
        (
            "stages[1]: are cut or recomputed otherwise than those of stages[0]; must be alike with chimera, where both"
            " hold the same layers"
        ),
        stage(1, recompute="none"),
    ),
    ("schedule", plan(virtual_stages=0), "virtual_stages: is 0; must be at least 1", plan(virtual_stages=1)),
    ("schedule", plan(zero_stage=4), "zero_stage: is 4; must be 0 to 3", plan(zero_stage=3)),
    (
        "schedule",
        stage(0, recompute="all"),
        "stages[0].recompute: is all; must be one of none, selective, op (num_recomputed layers are recomputed in full)",  # noqa: E501
        stage(0, recompute="selective"),
    ),
    (
        "schedule",
        stage(1, num_recomputed=4),
        "stages[1].num_recomputed: is 4; must be 0 to 3, the stage's layers",
        stage(1, num_recomputed=3),
    ),
    (
        "degrees",
        heads(6),
        "stages[0].strategy.tp: tp=4 does not divide 6 attention heads; the largest degree below that is possible is 2",
        tp(0, 2),
    ),
    ("degrees", tp(1, 0), "stages[1].strategy.tp: is 0; must be at least 1", tp(1, 1)),
    (
        "degrees",
        stage(0, strategy=Strategy(degrees=(("xp", 2),))),
        "stages[0].strategy: has no axis called xp; known are tp, cp",
        tp(0, 2),
    ),
    (
        "degrees",
        stage(0, strategy=Strategy(degrees=(("cp", 3),))),
        (
            "stages[0].strategy.cp: cp=3 needs a sequence that 6 divides (two pieces a rank), not 1,024 tokens; "
            "the largest degree below that is possible is 2"
        ),
        stage(0, strategy=Strategy(degrees=(("cp", 2),))),
    ),
    (
        "degrees",
        stage(0, strategy=Strategy(degrees=(("tp", 2), ("cp", 4)), cp_comm_type="a2a")),
        (
            "stages[0].strategy.cp: cp=4 with a2a does not divide the 6 attention heads that a rank has; "
            "the largest degree below that is possible is 2"
        ),
        stage(0, strategy=Strategy(degrees=(("tp", 2), ("cp", 4)))),
    ),
    (
        "degrees",
        stage(0, strategy=Strategy(degrees=(("cp", 2),), cp_comm_type="p3p")),
        "stages[0].strategy.cp_comm_type: is p3p; known are p2p, a2a",
        stage(0, strategy=Strategy(degrees=(("cp", 2),))),
    ),
    (
        "degrees",
        stage(0, strategy=Strategy(degrees=(("tp", 2), ("tp", 2)))),
        "stages[0].strategy: names tp twice; once is enough",
        tp(0, 4),
    ),
    (
        "devices",
        stage(1, group="none"),
        "stages[1].group: is none, which the cluster does not have; it has new, old",
        stage(1, group="old"),
    ),
    (
        "devices",
        tp(1, 4),
        "stages[1].strategy.tp: is 4; must be at most 2, the devices of a node of group old",
        tp(1, 1),
    ),
    (
        "devices",
        plan(num_replicas=3),
        "stages: the stages use 12 devices of group new; it has 8",
        plan(num_replicas=1),
    ),
    (
        "precision",
        job(precision="nvfp4"),
        "stages[1].group: is old, whose old-16gb has no nvfp4, the precision of the job",
        job(precision="bf16"),
    ),
    (
        "memory",
        weights(1, 9.0),
        (
            "stages[1]: needs 16.00 GiB on each old-16gb, 4.00 GiB more than the 12.00 GiB that 25% head-room leaves; "
            "the largest part is weights with 9.00 GiB"
        ),
        job(headroom=0.0),
    ),
    (
        "memory",
        weights(0, 80.0, "optimizer_step"),
        (
            "stages[0]: needs 87.00 GiB at optimizer step on each new-80gb, 27.00 GiB more than the 60.00 GiB that "
            "25% head-room leaves; the largest part is weights with 80.00 GiB"
        ),
        weights(0, 1.0),
    ),
)
"""(check, what breaks it, the problem, what mends it)"""


@pytest.mark.parametrize(("name", "spoil", "problem", "mend"), TRIPLES, ids=[f"{t[0]}-{t[2][:40]}" for t in TRIPLES])
def test_sound_broken_sound(sound: Context, name: str, spoil: Change, problem: str, mend: Change) -> None:
    """Sound passes, broken is named with its remedy, and the remedy is sound again."""
    check = next(check for check in CHECKS if check.name == name)
    assert check.check(sound) == ()
    broken = spoil(sound)
    assert problem in [str(found) for found in check.check(broken)]
    assert check.check(mend(broken)) == ()


def test_a_plan_without_stages_is_one_problem(sound: Context) -> None:
    """Only the layers are missing; no other check has anything to say."""
    problems = run_checks(replace(plan(stages=())(sound), stages=()))
    assert [str(problem) for problem in problems] == ["stages: there is no stage; one or more must run layers 0 to 7"]


def test_tensor_groups_stay_inside_nodes(sound: Context) -> None:
    """Two nodes of 4 devices hold tensor groups of 3 + 1 and 3 + 1, but not 3, 3 and 2, though 8 devices are enough."""

    def context(*degrees: int) -> Context:
        stages = tuple(
            Stage(group="new", first_layer=0, last_layer=0, strategy=Strategy(degrees=(("tp", degree),)))
            for degree in degrees
        )
        nodes = tuple(replace(group, num_nodes=2, devices_per_node=4) for group in sound.cluster.groups)
        cluster = replace(sound.cluster, groups=nodes)
        return replace(sound, plan=replace(sound.plan, stages=stages, num_replicas=1), cluster=cluster)

    check = next(check for check in CHECKS if check.name == "devices")
    assert check.check(context(3, 3, 1, 1)) == ()
    (problem,) = check.check(context(3, 3, 2))
    assert str(problem) == (
        "stages: the replicas of stages on group new (2 of 3 and 1 of 2 devices) must each stay inside one node; "
        "2 nodes of 4 devices cannot hold them"
    )
    assert check.check(context(3, 2, 1)) == ()


@pytest.mark.parametrize(
    ("stages", "words"),
    [
        (((2, 4), (2, 4)), ""),
        (((2, 3), (2, 1), (2, 3), (1, 2)), ""),
        (((2, 3), (2, 3), (2, 2)), "(2 of 6 and 1 of 4 devices) must each stay inside one node"),
        (((4, 4),), ""),
        (((8, 2),), ""),
        (((1, 12),), "takes 12 devices, tp=1 of them side by side"),
        (((3, 8),), "takes 24 devices, tp=3 of them side by side"),
        (((8, 2), (1, 1)), "the stages use 17 devices of group new; it has 16"),
        (((16, 1),), "is 16; must be at most 8"),
    ],
)
def test_replicas_are_inside_a_node_or_on_whole_nodes(
    sound: Context, stages: tuple[tuple[int, int], ...], words: str
) -> None:
    """Stages of tp x cp devices on two nodes of 8: 6 + 2 twice, or 16 on both; not 6 + 6 + 4, nor 12."""
    group = replace(sound.cluster.groups[0], num_nodes=2, devices_per_node=8)
    cut = tuple(
        Stage(group="new", first_layer=0, last_layer=0, strategy=Strategy(degrees=(("tp", tp), ("cp", cp))))
        for tp, cp in stages
    )
    plan = replace(sound.plan, stages=cut, num_replicas=1)
    context = replace(sound, cluster=replace(sound.cluster, groups=(group,)), plan=plan)
    check = next(check for check in CHECKS if check.name == "devices")
    problems = [str(problem) for problem in check.check(context)]
    assert any(words in problem for problem in problems) if words else not problems


def test_all_problems_are_found_at_once(sound: Context) -> None:
    """A plan that is wrong in four ways has four problems."""
    broken = plan(zero_stage=7, num_replicas=0)(stage(1, last_layer=6, group="none")(sound))
    places = [problem.place for problem in run_checks(broken)]
    assert places == ["stages[1].last_layer", "num_replicas", "zero_stage", "stages[1].group"]


NONSENSE = (
    Stage(group="", first_layer=-5, last_layer=-9, strategy=Strategy(degrees=(("tp", 0), ("", -1))), num_recomputed=-1),
    Stage(group="new", first_layer=10**9, last_layer=0, strategy=Strategy(degrees=(("tp", 10**6),)), recompute=""),
    Stage(group="old", first_layer=0, last_layer=0, strategy=Strategy(degrees=(("tp", -2), ("xp", 3)))),
)


@pytest.mark.parametrize("schedule", ["", *(listed.name for listed in SCHEDULES)])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_nonsense_never_crashes(sound: Context, check: Check, schedule: str) -> None:
    """Whatever stands in a plan, a check answers, without memory and without groups as well."""
    nonsense: dict[str, Any] = {"num_replicas": -1, "micro_batch": 0, "num_microbatches": -8, "zero_stage": -1}
    broken = plan(stages=NONSENSE, schedule=schedule, **nonsense)(sound)
    empty = replace(broken, cluster=replace(broken.cluster, groups=()), stages=None)
    for context in (broken, empty, job(headroom=2.0, global_batch=0, sequence=0)(broken)):
        assert all(problem.place and problem.message for problem in check.check(context))


def test_unknown_memory_is_not_judged(sound: Context) -> None:
    """Without the costs of the stages there is nothing to say about memory."""
    assert run_checks(replace(sound, stages=None)) == ()
