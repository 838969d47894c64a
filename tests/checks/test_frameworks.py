"""Who can run a plan, and what the others refuse it for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.checks import Context, refusals, runs_on
from planner.domain.framework import Capability, Framework
from planner.domain.plan import Strategy

ABLE = Capability(
    schedules=("1f1b", "gpipe"),
    zero_stages=(0, 1, 2, 3),
    zero_stages_pipeline=(0, 1),
    tensor_parallel=True,
    cp_comm_types=("p2p", "a2a"),
    cp_comm_types_pipeline=("p2p", "a2a"),
    cp_zero_stages=(0, 1, 2, 3),
    tp_zero_stages=(0, 1, 2, 3),
    sequence_parallel=True,
    uneven_layers=True,
    uneven_tensor_parallel=True,
    uneven_recompute=True,
    partial_recompute=True,
    mixed_devices=True,
    several_vendors=True,
    uneven_data_parallel=True,
    uneven_replicas=True,
    version="1",
    source="none",
)


def framework(name: str, **fields: Any) -> Framework:
    """Return a framework of which only the capability matters."""
    empty: dict[str, Any] = {"int": 0, "float": 0.0, "bool": False, "str": "", "tuple[str, ...]": ()}
    values = {key: empty[kind] for key, kind in Framework.__annotations__.items() if key not in {"name", "can"}}
    return Framework(name=name, can=replace(ABLE, **fields), **values)


REFUSED = (
    ({"schedules": ("gpipe",)}, "schedule 1f1b (only gpipe)"),
    ({"zero_stages_pipeline": (0,)}, "ZeRO stage 1 with pipeline stages (only 0)"),
    ({"zero_stages_pipeline": ()}, "a pipeline (2 stages)"),
    ({"tensor_parallel": False}, "tensor parallelism"),
    ({"cp_comm_types": ()}, "context parallelism"),
    ({"cp_comm_types_pipeline": ()}, "context parallelism by a2a with pipeline stages"),
    ({"cp_comm_types_pipeline": ("p2p",)}, "context parallelism by a2a with pipeline stages (only p2p)"),
    ({"cp_zero_stages": (2, 3)}, "context parallelism with ZeRO stage 1 (only 2, 3)"),
    ({"tp_zero_stages": (2, 3)}, "tensor parallelism with ZeRO stage 1 (only 2, 3)"),
    ({"uneven_layers": False}, "stages with unlike numbers of layers"),
    ({"sequence_parallel": False}, "sequence parallelism of the tensor axis"),
    ({"uneven_tensor_parallel": False}, "stages with unlike tensor degrees"),
    ({"uneven_recompute": False}, "stages that recompute unlike numbers of layers"),
    ({"partial_recompute": False}, "stages that recompute some of their layers in full and others not"),
    ({"mixed_devices": False}, "unlike devices"),
)


@pytest.fixture
def demanding(sound: Context) -> Context:
    """The sound plan, cut by context too and with two of the first stage's layers recomputed: it needs everything."""
    first, second = (
        replace(
            stage,
            strategy=replace(
                stage.strategy,
                degrees=(*stage.strategy.degrees, ("cp", 2)),
                cp_comm_type="a2a",
                sequence_parallel=True,
            ),
        )
        for stage in sound.plan.stages
    )
    return replace(sound, plan=replace(sound.plan, stages=(replace(first, num_recomputed=2), second)))


@pytest.mark.parametrize(("lacking", "reason"), REFUSED)
def test_each_missing_capability_is_one_reason(demanding: Context, lacking: dict[str, Any], reason: str) -> None:
    """The able framework refuses nothing; one that lacks a capability says which."""
    assert refusals(demanding.plan, framework("able"), demanding.cluster) == ()
    lame = framework("lame", **lacking)
    assert refusals(demanding.plan, lame, demanding.cluster) == (f"lame cannot run {reason}",)
    assert runs_on(demanding.plan, (framework("able"), lame), demanding.cluster) == ("able",)


def test_groups_of_micro_batches_are_megatrons(demanding: Context) -> None:
    """Schedules by the name of `interleaved` have them elsewhere too, but of as many as there are stages."""
    plan = replace(demanding.plan, schedule="interleaved", virtual_stages=2, microbatch_group=5)
    megatron, other = (framework(name, schedules=("interleaved",)) for name in ("megatron", "other"))
    assert refusals(plan, megatron, demanding.cluster) == ()
    reason = "other cannot run micro-batches in groups of 5 (only of as many as there are stages)"
    assert refusals(plan, other, demanding.cluster) == (reason,)


def test_stages_with_unlike_contexts_run_nowhere(demanding: Context) -> None:
    """No framework hands over from stages that cut samples to stages that do not, however able it is."""
    first, second = demanding.plan.stages
    mixed = replace(demanding.plan, stages=(first, replace(second, strategy=Strategy(degrees=(("tp", 2),)))))
    reason = "able cannot run stages with unlike context degrees"
    assert refusals(mixed, framework("able"), demanding.cluster) == (reason,)


def test_context_ranks_share_weights(sound: Context) -> None:
    """One replica of four context ranks shards its optimizer over them, so that the ZeRO stage matters."""
    (stage, _) = sound.plan.stages
    alone = replace(sound.plan, stages=(stage,), num_replicas=1, zero_stage=3)
    old = framework("old", zero_stages=(0, 1))
    assert refusals(alone, old, sound.cluster) == ()
    cut = replace(alone, stages=(replace(stage, strategy=Strategy(degrees=(("cp", 4),))),))
    assert refusals(cut, old, sound.cluster) == ("old cannot run ZeRO stage 3",)


def test_what_nobody_shares_is_never_copied(sound: Context) -> None:
    """A framework that cannot copy what tensor ranks cut runs them all the same, where there is but one replica."""
    (stage, _) = sound.plan.stages
    cut = replace(stage, strategy=Strategy(degrees=(("tp", 2),)))
    titan = framework("titan", tp_zero_stages=(2, 3))
    copied = replace(sound.plan, stages=(cut,), num_replicas=2, zero_stage=0)
    assert refusals(copied, titan, sound.cluster) == (
        "titan cannot run tensor parallelism with ZeRO stage 0 (only 2, 3)",
    )
    assert refusals(replace(copied, zero_stage=2), titan, sound.cluster) == ()
    assert refusals(replace(copied, num_replicas=1), titan, sound.cluster) == ()


def test_one_stage_needs_no_pipeline(sound: Context) -> None:
    """With a single stage, schedule and unlike stages do not matter, and the other ZeRO stages apply."""
    plain = framework("plain", schedules=(), zero_stages_pipeline=(), uneven_layers=False, mixed_devices=False)
    alone = replace(sound.plan, stages=sound.plan.stages[:1], zero_stage=3)
    assert refusals(alone, plain, sound.cluster) == ()
    assert refusals(alone, framework("old", zero_stages=(0,)), sound.cluster) == ("old cannot run ZeRO stage 3",)


@pytest.mark.parametrize(
    ("schedule", "runs"),
    [("1f1b", True), ("zb-h1", True), ("gpipe", False), ("pipedream", False), ("spectrain", False)],
)
def test_one_stage_runs_another_schedule_where_that_is_the_same(sound: Context, schedule: str, runs: bool) -> None:
    """Not where it holds all micro-batches, or updates its weights after each."""
    alone = replace(sound.plan, stages=sound.plan.stages[:1], num_microbatches=4, zero_stage=0, schedule=schedule)
    reason = f"plain cannot run schedule {schedule} (only 1f1b)"
    plain = framework("plain", zero_stages=(0,), zero_stages_pipeline=(), schedules=("1f1b",))
    assert refusals(alone, plain, sound.cluster) == (() if runs else (reason,))


def test_recomputing_everything_is_even(sound: Context) -> None:
    """Stages of 5 and 3 layers that recompute 5 and 3 are one setting, not two."""
    plain = framework("plain", uneven_recompute=False, partial_recompute=False)
    stages = tuple(replace(stage, num_recomputed=stage.num_layers) for stage in sound.plan.stages)
    assert refusals(replace(sound.plan, stages=stages), plain, sound.cluster) == ()


def test_selective_recompute_stands_alone(sound: Context) -> None:
    """One policy holds for all layers, or some are recomputed in full and the others not at all."""
    first, second = sound.plan.stages
    reason = "able cannot run selective recompute beside full recompute or none"
    full = replace(first, recompute="none", num_recomputed=first.num_layers)
    for stages, reasons in (
        ((replace(first, recompute="selective"), replace(second, recompute="none")), (reason,)),
        ((full, replace(second, recompute="selective")), (reason,)),
        ((full, replace(second, recompute="none")), ()),
        (tuple(replace(stage, recompute="selective") for stage in sound.plan.stages), ()),
    ):
        plan = replace(sound.plan, stages=stages)
        assert refusals(plan, framework("able"), sound.cluster) == reasons


def test_unlike_shares_of_the_batch_are_of_two_kinds(sound: Context) -> None:
    """Stages that divide micro-batches, and replicas that work on fewer."""
    first, second = sound.plan.stages
    split = replace(sound.plan, stages=(replace(first, split=2), second))
    short = replace(sound.plan, short_replicas=1)
    divides = ("lame cannot run stages that divide micro-batches unlike ways",)
    shares = ("lame cannot run replicas with unlike shares of the batch",)
    for fields, wanted in (
        ({}, ((), ())),
        ({"uneven_data_parallel": False}, (divides, ())),
        ({"uneven_replicas": False}, ((), shares)),
    ):
        lame = framework("lame", **fields)
        assert (refusals(split, lame, sound.cluster), refusals(short, lame, sound.cluster)) == wanted


def test_several_vendors_need_a_framework_that_joins_them(sound: Context) -> None:
    """One communication library for all, unless the framework joins several."""
    vendors = ("nvidia", "amd")
    groups = tuple(
        replace(group, device=replace(group.device, vendor=vendor))
        for group, vendor in zip(sound.cluster.groups, vendors, strict=True)
    )
    mixed = replace(sound.cluster, groups=groups)
    reasons = ("plain cannot run devices of several vendors (amd, nvidia)",)
    assert refusals(sound.plan, framework("plain", several_vendors=False), mixed) == reasons
    assert refusals(sound.plan, framework("able"), mixed) == ()


def test_unknown_groups_count_as_unlike_devices(sound: Context) -> None:
    """A plan for another cluster is judged, not crashed upon."""
    stages = tuple(
        replace(stage, group=name, strategy=Strategy()) for stage, name in zip(sound.plan.stages, "ab", strict=True)
    )
    same = framework("same", mixed_devices=False)
    assert refusals(replace(sound.plan, stages=stages), same, sound.cluster) == ("same cannot run unlike devices",)
