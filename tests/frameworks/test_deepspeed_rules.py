"""DeepSpeed takes what is written for it, and refuses just what our rules say that it refuses."""

# ruff: noqa: S311 (problems are drawn, not secrets)

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import uniform
from configurations import cases
from frameworks.asking import BrokenError, Validator
from planner.configurations.forms.deepspeed import DEEPSPEED as FORM
from planner.configurations.forms.deepspeed.keys import VERSION
from planner.domain.configuration import ERROR
from planner.export.frameworks.deepspeed import DEEPSPEED
from planner.specs.plan import PlanFile

pytestmark = pytest.mark.frameworks

EXPORTS = 160
MUTANTS = 400
LATER = {"DS101", "DS104", "DS603", "DS610", "DS615", "DS616", "DS620", "DS704", "DS707"}
"""Rules that DeepSpeed holds to when it makes a pipeline, an optimizer, or checkpoints, which the driver leaves out."""

ZERO = "zero_optimization"
CHANGES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("train_batch_size", (None, 1, 7, 36, 64, 0, -4)),
    ("train_micro_batch_size_per_gpu", (None, 0, 2, 3, -1)),
    ("gradient_accumulation_steps", (None, 0, 1, 5)),
    ("bf16.enabled", (True, "yes", "maybe", 1)),
    ("fp16.enabled", (True,)),
    ("fp16.loss_scale", (-1, 0, 5, "abc")),
    ("fp16.loss_scale_window", (0, -2)),
    ("fp16.min_loss_scale", (0,)),
    (ZERO, (None, True, False, 2)),
    (f"{ZERO}.stage", (0, 1, 2, 3, 4, "2", -1)),
    (f"{ZERO}.reduce_buket_size", (1,)),
    (f"{ZERO}.reduce_bucket_size", (5e8, "5e8", 1.5, 0, -1, "x")),
    (f"{ZERO}.zero_hpz_partition_size", (2, -1)),
    (f"{ZERO}.offload_optimizer", ({"device": "cpu"}, {"device": "disk"}, {"devices": "cpu"})),
    (f"{ZERO}.offload_optimizer.ratio", (0.5, 2)),
    (f"{ZERO}.offload_param", ({"device": "cpu"}, None)),
    (f"{ZERO}.cpu_offload", (True, False)),
    (f"{ZERO}.compute_grad_norm", (False,)),
    (f"{ZERO}.elastic_checkpoint", (True,)),
    (f"{ZERO}.mics_shard_size", (4,)),
    ("gradient_allreduce_op", ("sum", "SUM", "max")),
    ("compile", ({"deepcompile": True}, {"deepcompiles": True})),
    ("elasticity", ({"enabled": True},)),
    ("communication_data_type", ("fp8", "fp32", "FP16", None)),
    ("sequence_parallel_size", (2,)),
    ("data_parallel_size", (2, 4)),
    ("bf16.bf16_master_weights_and_grads", (True,)),
    ("bf16.bf16_optimizer_states", (True,)),
    ("managed_gradient_accumulation", (False,)),
    ("data_types", ({"param_dtype": "bf16"}, {"param_dtype": "fp16"})),
    ("ours", (1,)),
    ("bfloat16", ({"enabled": True},)),
    ("optimizer", ({"type": "AdamW", "params": {"lr": 1e-4, "max_grad_norm": 1.0}},)),
    ("checkpoint", ({"tag_validation": "FOO"}, {"tag_validation": "fail"})),
    ("hybrid_engine", ({"enabled": False, "foo": 1},)),
    ("expert_parallel", ({"enabled": False, "foo": 1},)),
)
"""Key -> values that may be right or wrong there; None removes it."""


def drawn(seed: int) -> PlanFile:
    return uniform.drawn(seed, "a2a", tensor=False)


def mutated(seed: int) -> tuple[str, int]:
    """Return the configuration of a random plan with one or two other values, and its world."""
    draw, file = random.Random(seed), drawn(seed)
    found: dict[str, Any] = json.loads(DEEPSPEED.parts(file)[0].text)
    for _ in range(draw.choice((1, 1, 2))):
        key, values = draw.choice(CHANGES)
        *path, last = key.split(".")
        at = found
        for part in path:
            at[part] = at[part] if isinstance(at.get(part), dict) else {}
            at = at[part]
        value = draw.choice(values)
        at.pop(last, None)
        if value is not None:
            at[last] = value
    return json.dumps(found), file.plan.num_devices


def refused_by_it(validator: Validator, **request: object) -> str:
    """Return why the framework refuses, empty if it does not; an error of its code over a wrong value counts, too."""
    try:
        answer = validator.ask(**request)
    except BrokenError as error:
        return str(error)
    return "" if answer.accepted else answer.message


def refused_by_us(text: str, world: int) -> set[str]:
    """Return the codes of rules by which DeepSpeed itself should refuse."""
    caught = {rule.code for rule in FORM.rules if rule.caught} - LATER
    told = cases.findings(FORM, text, "ds_config.json", world=world, version=VERSION)
    return {one.code for one in told if one.severity == ERROR and one.code in caught}


@pytest.mark.parametrize("first", range(0, EXPORTS, 40))
def test_deepspeed_takes_what_is_written_for_it(validator: Callable[[str], Validator], first: int) -> None:
    """And makes of it what the plan says."""
    deepspeed = validator("deepspeed")
    for seed in range(first, first + 40):
        file = drawn(seed)
        plan, stage = file.plan, file.plan.stages[0]
        answer = deepspeed.ask(text=DEEPSPEED.parts(file)[0].text, world=plan.num_devices)
        assert answer.accepted, (seed, answer.message)
        facts = answer.facts
        assert (facts["dp"], facts["sp"], facts["zero_stage"]) == (
            plan.num_replicas,
            stage.strategy.degree("cp"),
            plan.zero_stage,
        )
        assert facts["train_batch_size"] == plan.global_batch
        assert facts["train_micro_batch_size_per_gpu"] == plan.micro_batch
        assert facts["gradient_accumulation_steps"] == plan.num_microbatches


@pytest.mark.parametrize("first", range(0, MUTANTS, 50))
def test_deepspeed_refuses_what_breaks_its_rules(validator: Callable[[str], Validator], first: int) -> None:
    """And nothing else."""
    deepspeed = validator("deepspeed")
    wrong = []
    for seed in range(first, first + 50):
        text, world = mutated(seed)
        message, codes = refused_by_it(deepspeed, text=text, world=world), refused_by_us(text, world)
        if bool(message) != bool(codes):
            wrong.append((seed, sorted(codes), message[-200:], text))
    assert not wrong


@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_pipelines_have_zero_0_or_1(validator: Callable[[str], Validator], stages: int, zero: int) -> None:
    """DS101."""
    text = json.dumps(
        {
            "train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": 16,
            "train_batch_size": 16 * 8 // stages,
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": zero},
            "pipeline": {"stages": stages},
        }
    )
    answer = validator("deepspeed").ask(text=text, world=8, stages=stages, layers=8)
    told = cases.errors(cases.findings(FORM, text, "ds_config.json", world=8))
    assert told == ([] if answer.accepted else ["DS101"])
    assert answer.accepted == (zero < 2)


@pytest.mark.parametrize("zero", [0, 2, 3])
@pytest.mark.parametrize("batch", [32, 64])
def test_autotp_counts_every_rank(validator: Callable[[str], Validator], zero: int, batch: int) -> None:
    """DS307; and ZeRO 3 is taken by this version."""
    text = json.dumps(
        {
            "train_batch_size": batch,
            "train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": 2,
            "bf16": {"enabled": True},
            "zero_optimization": {"stage": zero},
            "tensor_parallel": {"autotp_size": 2},
        }
    )
    answer = validator("deepspeed").ask(text=text, world=8, heads=4)
    told = cases.findings(FORM, text, "ds_config.json", world=8, version=VERSION)
    assert answer.accepted == (batch == 64)
    assert ("DS307" in {one.code for one in told}) == (not answer.accepted)
    assert not cases.errors(told)
