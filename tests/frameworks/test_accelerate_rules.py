"""Accelerate takes what is written for it, and refuses just what our rules say that it refuses."""

# ruff: noqa: S311 (problems are drawn, not secrets)

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import uniform
from configurations import cases
from frameworks.asking import BrokenError, Validator
from planner.checks import refusals
from planner.configurations.forms.accelerate import ACCELERATE as FORM
from planner.configurations.forms.accelerate.keys import VERSION
from planner.domain.configuration import ERROR
from planner.errors import CannotExpress
from planner.export.frameworks.accelerate import ACCELERATE, settings
from planner.loader import dump_yaml
from planner.specs.catalog import framework
from planner.specs.plan import PlanFile

pytestmark = pytest.mark.frameworks

SEEDS = 320
LATER = {"AC103", "AC106"}
"""Rules that torchrun and pdsh hold to, which the driver does not start."""

MESH = "parallelism_config.parallelism_config"
FSDP = "fsdp_config.fsdp"
CHANGES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("num_processes", (None, 1, 3, 6, 8, -1, 0)),
    ("num_machines", (1, 2, 3)),
    ("distributed_type", (None, "FSDP", "MULTI_GPU", "DEEPSPEED", "NO", "FSDP2", "MEGATRON_LM")),
    ("mixed_precision", (None, "no", "bf16", "fp16", "bf8")),
    ("unknown", (1,)),
    (f"{FSDP}_unknown", (2,)),
    (f"{FSDP}_version", (1, 2, 3, "2")),
    (f"{FSDP}_reshard_after_forward", ("FULL_SHARD", True, "true", False, "x")),
    (f"{FSDP}_sharding_strategy", ("FULL_SHARD", "SHARD_GRAD_OP", "FULL", 1, 9)),
    (f"{FSDP}_auto_wrap_policy", (None, "NO_WRAP", "TRANSFORMER", "SIZE_BASED_WRAP")),
    (f"{FSDP}_state_dict_type", ("LOCAL_STATE_DICT", "FULL_STATE_DICT", "X")),
    (f"{FSDP}_activation_checkpointing_offload", (True,)),
    (f"{FSDP}_activation_checkpointing", (True, False, "maybe")),
    (f"{FSDP}_sync_module_states", (False,)),
    (f"{FSDP}_forward_prefetch", (True,)),
    (f"{FSDP}_offload_params", (True,)),
    (f"{MESH}_dp_replicate_size", (0, 1, 2, 4, -1)),
    (f"{MESH}_dp_shard_size", (0, 1, 2, 4)),
    (f"{MESH}_tp_size", (1, 2, 4)),
    (f"{MESH}_cp_size", (1, 2, 4)),
    (f"{MESH}_sp_size", (1, 2)),
    (f"{MESH}_cp_backend", ("ring",)),
    (f"{MESH}_sp_attn_implementation", ("eager", "sdpa")),
    (f"{MESH}_sp_seq_length_is_variable", (False,)),
    ("parallelism_config", (None,)),
    ("fp16", (True,)),
    ("dynamo_backend", ("INDUCTOR",)),
    ("deepspeed_config", ({"zero_stage": 3}, {"zero_stage": 2, "gradient_accumulation_steps": 4}, {"zero_stage": 5})),
    ("megatron_lm_config", ({"megatron_lm_tp_degree": 2},)),
    ("rdzv_backend", ("c10d",)),
)
"""Key -> values that may be right or wrong there; None removes it."""


def drawn(seeds: range) -> Iterator[tuple[int, PlanFile]]:
    """Yield the random plans that Accelerate can say."""
    for seed in seeds:
        file = uniform.drawn(seed, "p2p", tensor=True)
        if not refusals(file.plan, framework("accelerate"), file.cluster):
            try:
                ACCELERATE.parts(file)
            except CannotExpress:
                continue
            yield seed, file


def mutated(seed: int, file: PlanFile) -> str:
    """Return the configuration of a plan with one or two other values."""
    draw, found = random.Random(seed), settings(file)
    for _ in range(draw.choice((1, 1, 2))):
        key, values = draw.choice(CHANGES)
        block, _, name = key.rpartition(".")
        at = found.setdefault(block, {}) if block else found
        value = draw.choice(values)
        at.pop(name, None)
        if value is not None:
            at[name] = value
    return dump_yaml(found)


def refused_by_it(validator: Validator, **request: object) -> str:
    """Return why the framework refuses, empty if it does not; an error of its code over a wrong value counts, too."""
    try:
        answer = validator.ask(**request)
    except BrokenError as error:
        return str(error)
    return "" if answer.accepted else answer.message


def refused_by_us(text: str) -> set[str]:
    """Return the codes of rules by which Accelerate itself should refuse."""
    caught = {rule.code for rule in FORM.rules if rule.caught} - LATER
    told = cases.findings(FORM, text, "accelerate.yaml", version=VERSION)
    # AC101 is a warning, since --num_processes may stand in the command.
    return {one.code for one in told if one.code in caught and (one.severity == ERROR or one.code == "AC101")}


@pytest.mark.parametrize("first", range(0, SEEDS, 80))
def test_accelerate_takes_what_is_written_for_it(validator: Callable[[str], Validator], first: int) -> None:
    """And makes of it what the plan says."""
    accelerate = validator("accelerate")
    taken = 0
    for seed, file in drawn(range(first, first + 80)):
        plan, strategy = file.plan, file.plan.stages[0].strategy
        answer = accelerate.ask(text=ACCELERATE.parts(file)[0].text)
        assert answer.accepted, (seed, answer.message)
        facts, sharded = answer.facts, plan.zero_stage > 0 and plan.num_replicas * strategy.degree("cp") > 1
        assert facts["world"] == plan.num_devices
        assert facts["mixed_precision"] == {"fp32": "no"}.get(file.job.precision, file.job.precision)
        if sharded:
            assert facts["distributed_type"] == "FSDP"
            assert facts["fsdp"]["reshard_after_forward"] == (plan.zero_stage == 3)
            assert facts["fsdp"]["activation_checkpointing"] == bool(plan.stages[0].num_recomputed)
            assert facts["parallelism"] == {
                "dp_replicate": 1,
                "dp_shard": plan.num_replicas,
                "tp": strategy.degree("tp"),
                "cp": strategy.degree("cp"),
                "sp": 1,
            }
        taken += 1
    assert taken > 30


@pytest.mark.parametrize("first", range(0, 2 * SEEDS, 80))
def test_accelerate_refuses_what_breaks_its_rules(validator: Callable[[str], Validator], first: int) -> None:
    """And nothing else."""
    accelerate = validator("accelerate")
    wrong = []
    for seed, file in drawn(range(first, first + 80)):
        text = mutated(seed, file)
        message, codes = refused_by_it(accelerate, text=text), refused_by_us(text)
        if bool(message) != bool(codes):
            wrong.append((seed, sorted(codes), message[-200:], text))
    assert not wrong


@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        ("mixed_precision: no", False),
        ("mixed_precision: 'no'", True),
        ("dynamo_backend: NO", False),
        ("dynamo_backend: 'NO'", True),
        ("dynamo_config: {dynamo_backend: inductor}", True),
    ],
)
def test_no_needs_quotes(validator: Callable[[str], Validator], line: str, accepted: bool) -> None:
    """AC005: where text is meant, Accelerate fails over a truth value."""
    rest = "" if "mixed" in line else "mixed_precision: bf16\n"
    text = f"distributed_type: MULTI_GPU\nnum_processes: 2\n{rest}{line}\n"
    assert (refused_by_it(validator("accelerate"), text=text) == "") == accepted
    assert (refused_by_us(text) == set()) == accepted
