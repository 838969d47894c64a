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
    uneven_layers=True,
    uneven_tensor_parallel=True,
    uneven_recompute=True,
    partial_recompute=True,
    mixed_devices=True,
    version="1",
    source="none",
)


def framework(name: str, **fields: Any) -> Framework:
    """Return a framework of which only the capability matters."""
    numbers = {
        key: 0
        for key, kind in Framework.__annotations__.items()
        if kind in {"int", "float"} and key not in {"name", "source"}
    }
    values: dict[str, Any] = {**numbers, "gathered_logits": False, "weights_in_master": False, "source": "none"}
    return Framework(name=name, can=replace(ABLE, **fields), **values)


REFUSED = (
    ({"schedules": ("gpipe",)}, "schedule 1f1b (only gpipe)"),
    ({"zero_stages_pipeline": (0,)}, "ZeRO stage 1 with pipeline stages (only 0)"),
    ({"zero_stages_pipeline": ()}, "a pipeline (2 stages)"),
    ({"tensor_parallel": False}, "tensor parallelism"),
    ({"uneven_layers": False}, "stages with unlike numbers of layers"),
    ({"uneven_tensor_parallel": False}, "stages with unlike tensor degrees"),
    ({"uneven_recompute": False}, "stages that recompute unlike numbers of layers"),
    ({"partial_recompute": False}, "stages that recompute some of their layers in full and others not"),
    ({"mixed_devices": False}, "unlike devices"),
)


@pytest.fixture
def demanding(sound: Context) -> Context:
    """The sound plan, with two of the first stage's layers recomputed: it needs every capability."""
    first, second = sound.plan.stages
    return replace(sound, plan=replace(sound.plan, stages=(replace(first, num_recomputed=2), second)))


@pytest.mark.parametrize(("lacking", "reason"), REFUSED)
def test_each_missing_capability_is_one_reason(demanding: Context, lacking: dict[str, Any], reason: str) -> None:
    """The able framework refuses nothing; one that lacks a capability says which."""
    assert refusals(demanding.plan, framework("able"), demanding.cluster) == ()
    lame = framework("lame", **lacking)
    assert refusals(demanding.plan, lame, demanding.cluster) == (f"lame cannot run {reason}",)
    assert runs_on(demanding.plan, (framework("able"), lame), demanding.cluster) == ("able",)


def test_one_stage_needs_no_pipeline(sound: Context) -> None:
    """With a single stage, schedule and unlike stages do not matter, and the other ZeRO stages apply."""
    plain = framework("plain", schedules=(), zero_stages_pipeline=(), uneven_layers=False, mixed_devices=False)
    alone = replace(sound.plan, stages=sound.plan.stages[:1], zero_stage=3)
    assert refusals(alone, plain, sound.cluster) == ()
    assert refusals(alone, framework("old", zero_stages=(0,)), sound.cluster) == ("old cannot run ZeRO stage 3",)


def test_recomputing_everything_is_even(sound: Context) -> None:
    """Stages of 5 and 3 layers that recompute 5 and 3 are one setting, not two."""
    plain = framework("plain", uneven_recompute=False, partial_recompute=False)
    stages = tuple(replace(stage, num_recomputed=stage.num_layers) for stage in sound.plan.stages)
    assert refusals(replace(sound.plan, stages=stages), plain, sound.cluster) == ()


def test_unknown_groups_count_as_unlike_devices(sound: Context) -> None:
    """A plan for another cluster is judged, not crashed upon."""
    stages = tuple(
        replace(stage, group=name, strategy=Strategy()) for stage, name in zip(sound.plan.stages, "ab", strict=True)
    )
    same = framework("same", mixed_devices=False)
    assert refusals(replace(sound.plan, stages=stages), same, sound.cluster) == ("same cannot run unlike devices",)
