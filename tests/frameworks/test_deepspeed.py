"""The harness judges as DeepSpeed does, and DeepSpeed refuses what we say that it refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from frameworks.asking import Answer, Validator

pytestmark = pytest.mark.frameworks

Ask = Callable[..., Answer]

BATCH = {"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}
IN_FOUR = {"gradient_accumulation_steps": 8, "zero_optimization": {"stage": 1}}
OFFLOAD = {"stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": True}, "offload_param": {"device": "cpu"}}


@pytest.fixture
def ask(validator: Callable[[str], Validator]) -> Ask:
    deepspeed = validator("deepspeed")

    def asked(config: dict[str, Any], **rest: object) -> Answer:
        text = json.dumps({**BATCH, "bf16": {"enabled": True}, **config})
        return deepspeed.ask(**{"text": text, "world": 16, **rest})

    return asked


@pytest.mark.parametrize(
    ("config", "rest", "facts"),
    [
        ({}, {}, {"dp": 16, "zero_stage": 0}),
        ({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}, {}, {"zero_stage": 3}),
        ({"zero_optimization": OFFLOAD}, {}, {"zero_stage": 3}),
        ({"bf16": {"enabled": False}, "fp16": {"enabled": True}}, {}, {"dp": 16}),
        ({"sequence_parallel_size": 2, "data_parallel_size": 8, "train_batch_size": 32}, {}, {"sp": 2, "dp": 8}),
        (IN_FOUR, {"stages": 4, "layers": 10, "rank": 9}, {"parts": [0, 3, 6, 8, 10], "stage": 2, "dp_rank": 1}),
        (
            {**IN_FOUR, "train_batch_size": 32},
            {"stages": 4, "layers": 8, "tp": 2, "rank": 11},
            {"stage": 2, "dp_rank": 1, "tp_rank": 1, "micro_batches": 8},
        ),
    ],
)
def test_takes(ask: Ask, config: dict[str, Any], rest: dict[str, Any], facts: dict[str, Any]) -> None:
    answer = ask(config, **rest)
    assert answer.accepted, answer.message
    assert {key: answer.facts[key] for key in facts} == facts


@pytest.mark.parametrize(
    ("config", "rest", "says"),
    [
        ({"train_batch_size": 60}, {}, "60 != 2 * 2 * 16"),
        ({"train_batch_size": 256, "gradient_accumulation_steps": 18}, {"world": 7}, "256 != 2 * 18 * 7"),
        ({"zero_optimization": {"stag": 3}}, {}, "Extra inputs are not permitted"),
        ({"zero_optimization": {"stage": 4}}, {}, "Input should be 0, 1, 2, 3"),
        ({"zero_optimization": {"stage": 3, "mics_shard_size": 8}}, {}, "MiCS ZeRO-3 sharding has been removed"),
        ({"elasticity": {"enabled": True}}, {}, "Elastic training has been removed"),
        ({"fp16": {"enabled": True}}, {}, "bfloat16 and fp16 modes cannot be simultaneously enabled"),
        ({**IN_FOUR, "zero_optimization": {"stage": 2}}, {"stages": 4, "layers": 8}, "incompatible with pipeline"),
    ],
)
def test_refuses(ask: Ask, config: dict[str, Any], rest: dict[str, Any], says: str) -> None:
    answer = ask(config, **rest)
    assert not answer.accepted
    assert says in answer.message


def test_refuses_a_key_that_stands_twice(ask: Ask) -> None:
    assert "Duplicate keys" in ask({}, text='{"train_batch_size": 64, "train_batch_size": 32}').message


def test_reads_hostfiles(validator: Callable[[str], Validator]) -> None:
    deepspeed = validator("deepspeed")
    hosts = "# ours\nh1 slots=8 type=h100\nh2 slots=2\n"
    assert deepspeed.ask(hostfile=hosts, include="h1:0,1@h2").facts == {"hosts": {"h1": [0, 1], "h2": [0, 1]}}
    assert "multiple entries for h1" in deepspeed.ask(hostfile="h1 slots=8\nh1 slots=8\n").message
    assert "bad entry: h1 8" in deepspeed.ask(hostfile="h1 8\n").message


@pytest.mark.parametrize(
    "config",
    [
        {"zero_optimisation": {"stage": 3}},  # a key of the top level that it does not know
        {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 7}},  # no divisor of the world
    ],
)
def test_does_not_catch(ask: Ask, config: dict[str, Any]) -> None:
    assert ask(config).accepted


def test_automatic_tensor_parallelism_works_with_every_stage_of_zero(ask: Ask) -> None:
    """Older versions refused stage 3 in training."""
    for stage in (1, 2, 3):
        answer = ask({"zero_optimization": {"stage": stage}, "tensor_parallel": {"autotp_size": 2}}, heads=8)
        assert (answer.facts["tp"], answer.facts["dp"]) == (2, 8)


def test_automatic_tensor_parallelism_counts_batches_as_if_all_ranks_had_their_own(ask: Ask) -> None:
    """Two ranks share a batch, so that 64 sequences a step are really 32; what would be right is refused."""
    of_eight = {"tensor_parallel": {"autotp_size": 2}, "gradient_accumulation_steps": 4}
    assert "64 != 2 * 4 * 16" in ask(of_eight, heads=8).message


def test_automatic_tensor_parallelism_takes_heads_that_it_cannot_divide(ask: Ask) -> None:
    three = {"tensor_parallel": {"autotp_size": 3}, "train_batch_size": 48}
    assert ask(three, heads=8, world=12).accepted
    assert ask({"tensor_parallel": {"autotp_size": 4}}, heads=8, kv_heads=2).accepted


def test_lists_every_key(validator: Callable[[str], Validator]) -> None:
    keys = validator("deepspeed").ask(keys=True).facts
    assert {"zero_optimization", "train_batch_size", "tensor_parallel", "sequence_parallel_size"} <= set(
        keys["top_level"]
    )
    assert keys["models"]["zero_optimization"]["stage"]["default"] == 0
    assert keys["read_keys"]["activation_checkpointing"] == [
        "contiguous_memory_optimization",
        "cpu_checkpointing",
        "number_checkpoints",
        "partition_activations",
        "profile",
        "synchronize_checkpoint_boundary",
    ]
