"""What Megatron-Bridge is told is what the plan says, in words that a shell leaves alone."""

# ruff: noqa: S311 (plans are drawn, not secrets)

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

import builders
from export.random_plans import plan_file, unlike
from planner.configurations.engine import broken
from planner.configurations.forms.bridge import BRIDGE as FORM
from planner.domain.configuration import Setting, Spot
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import CannotExpress
from planner.export import startable, target
from planner.pipeline.layout import plan_from_layout
from planner.pipeline.written import parts
from planner.specs.model import model_from_record
from planner.specs.plan import PlanFile

SEEDS = range(200)
ALONE = builders.cluster(builders.group("chips", nodes=4, per_node=4))


def drawn(seed: int) -> PlanFile | None:
    """Return the file of a random plan that Megatron may run, or nearly; None where the draw does not fit."""
    draw = random.Random(seed)
    pp, vpp = draw.choice((1, 2, 4)), draw.choice((1, 1, 2))
    tp = draw.choice((1, 2, 4))
    cp = draw.choice((1, 1, 2)) if tp < 4 else 1
    dp = 16 // (pp * tp * cp)
    vpp = 1 if pp == 1 else vpp
    chunks = [draw.randint(1, 3) for _ in range(pp * vpp)] if draw.random() < 0.5 else [2] * (pp * vpp)
    bounds = [(sum(chunks[:at]), sum(chunks[: at + 1]) - 1) for at in range(len(chunks))]
    policy = draw.choice(("none", "selective", "full", "one"))
    strategy = Strategy(
        degrees=tuple((name, size) for name, size in (("tp", tp), ("cp", cp)) if size > 1),
        sequence_parallel=tp > 1,
        cp_comm_type="a2a" if cp > 1 and draw.random() < 0.5 else "p2p",
    )
    stages = []
    for index in range(pp):
        (first, last), *later = bounds[index::pp]
        held = sum(end - begin + 1 for begin, end in bounds[index::pp])
        stages.append(
            Stage(
                group="chips",
                first_layer=first,
                last_layer=last,
                later_chunks=tuple(later),
                strategy=strategy,
                recompute="selective" if policy == "selective" else "none",
                num_recomputed={"full": held, "one": vpp}.get(policy, 0),
            )
        )
    plan = Plan(
        stages=tuple(stages),
        schedule="interleaved" if vpp > 1 else "1f1b",
        num_replicas=dp,
        micro_batch=draw.choice((1, 2)),
        num_microbatches=2 * pp,
        zero_stage=draw.choice((0, 1) if pp > 1 else (0, 1, 2, 3)),
        virtual_stages=vpp,
    )
    return plan_file(builders.planning(ALONE, builders.model(sum(chunks), tied=draw.random() < 0.4)), plan, "megatron")


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_written_is_read_again(seed: int) -> None:
    """Its rules accept it, and it means the plan that it was written from, and its model."""
    file = drawn(seed)
    assert file is not None
    try:
        (part,) = parts(target("megatron-bridge"), file)
    except CannotExpress:
        assert file.plan.zero_stage > 1
        return
    configuration = FORM.read(part.text, "overrides.txt")
    world = Setting(name="ranks", value=file.plan.num_devices, spot=Spot("overrides.txt"))
    configuration = replace(configuration, world=world)
    assert broken(FORM, configuration) == ()
    meant = FORM.setup(configuration)
    assert meant.assumed == ()
    assert meant.precision == "bf16"
    assert meant.model is not None
    assert model_from_record({"name": "small", **meant.model}, "small").parameters == file.model.parameters
    plan, _ = plan_from_layout(meant.layout, file.cluster, file.model, file.job)
    assert plan == file.plan


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_no_shell_changes_a_word(seed: int) -> None:
    """``$(planner export ... --only overrides)`` is what stands there."""
    file = drawn(seed)
    assert file is not None
    try:
        (part,) = parts(target("megatron-bridge"), file)
    except CannotExpress:
        return
    for word in part.text.split("\n")[:-1]:
        assert re.fullmatch(r"[a-z_.0-9]+=[A-Za-z0-9_.|+-]+", word)


def test_the_program_runs_the_recipe_without_a_model() -> None:
    """All of the model and of the plan is in the overrides."""
    file, sharded = (next(one for one in map(drawn, SEEDS) if one and one.plan.zero_stage == zero) for zero in (1, 3))
    program = startable("megatron-bridge").program
    assert program is not None
    found = program(file)
    assert found.command[:5] == (
        "scripts/training/run_recipe.py",
        "--recipe",
        "vanilla_gpt_pretrain_config",
        "--mode",
        "pretrain",
    )
    assert found.environment == (("CUDA_DEVICE_MAX_CONNECTIONS", "1"),)
    assert f"model.num_layers={file.model.num_layers}" in found.command
    assert program(sharded).environment == (("CUDA_DEVICE_MAX_CONNECTIONS", "8"),)


def test_unlike_stages_are_refused() -> None:
    """Stock Megatron has one tensor degree and one data degree for all stages."""
    refused = 0
    for seed in range(100):
        file = unlike(seed, "megatron")
        if file is None or len({(stage.strategy, stage.split) for stage in file.plan.stages}) == 1:
            continue
        with pytest.raises(CannotExpress):
            parts(target("megatron-bridge"), file)
        refused += 1
    assert refused > 5
