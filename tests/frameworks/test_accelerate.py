"""The harness judges as Accelerate does, and Accelerate refuses what we say that it refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from frameworks.asking import Answer, Validator

pytestmark = pytest.mark.frameworks

Ask = Callable[..., Answer]

BASE = {
    "compute_environment": "LOCAL_MACHINE",
    "mixed_precision": "bf16",
    "num_machines": 2,
    "num_processes": 16,
    "machine_rank": 0,
    "main_process_ip": "10.0.0.1",
    "main_process_port": 29500,
    "rdzv_backend": "static",
}
WRAPPED = {"fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "fsdp_transformer_layer_cls_to_wrap": "LlamaDecoderLayer"}
FSDP = {
    "distributed_type": "FSDP",
    "fsdp_config": {
        "fsdp_version": 2,
        "fsdp_reshard_after_forward": True,
        "fsdp_activation_checkpointing": True,
        **WRAPPED,
    },
}
ZERO = {"zero_stage": 3, "gradient_accumulation_steps": 4, "deepspeed_multinode_launcher": "standard"}
MEGATRON = {
    "megatron_lm_tp_degree": 2,
    "megatron_lm_pp_degree": 4,
    "megatron_lm_num_micro_batches": 8,
    "megatron_lm_context_parallel_size": 1,
}


def _degrees(**sizes: int) -> dict[str, Any]:
    """The block with all its keys: a launch wants every one of them."""
    whole = {"dp_replicate_size": 1, "dp_shard_size": 1, "tp_size": 1, "cp_size": 1, "sp_size": 1, **sizes}
    backends = {"cp_backend": "torch", "sp_backend": "deepspeed", "cp_comm_strategy": "allgather"}
    return {"parallelism_config": {f"parallelism_config_{key}": value for key, value in {**whole, **backends}.items()}}


@pytest.fixture
def ask(validator: Callable[[str], Validator]) -> Ask:
    accelerate = validator("accelerate")

    def asked(config: dict[str, Any], *, without: str = "", **rest: object) -> Answer:
        whole = {key: value for key, value in {**BASE, **config}.items() if key != without}
        return accelerate.ask(text=yaml.safe_dump(whole), **rest)

    return asked


@pytest.mark.parametrize(
    ("config", "facts"),
    [
        ({"distributed_type": "MULTI_GPU"}, {"world": 16, "processes_per_node": 8, "distributed_type": "MULTI_GPU"}),
        (FSDP, {"distributed_type": "FSDP", "mesh": None, "launcher": "multi_gpu_launcher"}),
        ({**FSDP, **_degrees(dp_shard_size=8, tp_size=2)}, {"mesh": {"dp_shard": 8, "tp": 2}}),
        (
            {**FSDP, **_degrees(dp_replicate_size=2, dp_shard_size=2, cp_size=4)},
            {"mesh": {"dp_replicate": 2, "dp_shard": 2, "cp": 4}},
        ),
        ({"distributed_type": "DEEPSPEED", "deepspeed_config": ZERO}, {"gradient_accumulation_steps": 4}),
        ({"distributed_type": "MEGATRON_LM", "megatron_lm_config": MEGATRON}, {"distributed_type": "MEGATRON_LM"}),
    ],
)
def test_takes(ask: Ask, config: dict[str, Any], facts: dict[str, Any]) -> None:
    answer = ask(config)
    assert answer.accepted, answer.message
    assert {key: answer.facts[key] for key in facts} == facts


def test_settings_reach_what_they_are_for(ask: Ask) -> None:
    sharded = ask(FSDP).facts["fsdp"]
    assert (sharded["fsdp_version"], sharded["reshard_after_forward"], sharded["activation_checkpointing"]) == (
        2,
        True,
        True,
    )
    assert ask({"distributed_type": "DEEPSPEED", "deepspeed_config": ZERO}).facts["deepspeed"]["zero_stage"] == 3
    megatron = ask({"distributed_type": "MEGATRON_LM", "megatron_lm_config": MEGATRON}).facts["megatron"]
    assert (megatron["tp_degree"], megatron["pp_degree"], megatron["num_micro_batches"]) == (2, 4, 8)


def test_flags_go_over_the_file(ask: Ask) -> None:
    assert ask(FSDP, argv=["--machine_rank", "1"]).facts["node_rank"] == 1


@pytest.mark.parametrize(
    ("config", "without", "says"),
    [
        ({**FSDP, "num_gpus": 4}, "", "unknown keys (['num_gpus'])"),
        ({}, "", "A `distributed_type` must be specified"),
        ({"distributed_type": "FSDP2"}, "", "not a valid DistributedType"),
        ({"distributed_type": "MULTI_GPU", "mixed_precision": "bf61"}, "", "Unknown mixed_precision mode: bf61"),
        (FSDP, "num_processes", "manually pass in `--num_processes`"),
        ({**FSDP, **_degrees(dp_shard_size=8)}, "", "total_size (8) does not match num_processes (16)"),
        ({**FSDP, **_degrees(dp_shard_size=4, cp_size=2, sp_size=2)}, "", "mutually exclusive"),
        ({**FSDP, **_degrees(dp_replicate_size=8, tp_size=2)}, "", "cannot be used with pure data parallelism"),
        ({**FSDP, **_degrees(tp_size=16)}, "", "no dimension for FSDP to shard across"),
        (
            {
                "distributed_type": "FSDP",
                "fsdp_config": {"fsdp_version": 2, **WRAPPED, "fsdp_auto_wrap_policy": "LAYERS"},
            },
            "",
            "Invalid auto wrap",
        ),
        (
            {"distributed_type": "FSDP", "fsdp_config": {"fsdp_version": 1}, **_degrees(dp_shard_size=8, cp_size=2)},
            "",
            "requires FSDP2",
        ),
    ],
)
def test_refuses(ask: Ask, config: dict[str, Any], without: str, says: str) -> None:
    answer = ask(config, without=without)
    assert not answer.accepted
    assert says in answer.message


def test_a_file_of_deepspeeds_own_leaves_no_room_for_its_settings(ask: Ask) -> None:
    own = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 3}}
    files = {"ds.json": json.dumps({**own, "bf16": {"enabled": True}})}
    block = {"deepspeed_config_file": "{folder}/ds.json", "deepspeed_multinode_launcher": "standard"}
    config = {"distributed_type": "DEEPSPEED", "deepspeed_config": block}
    assert "will be ignored" in ask(config, files=files).message  # mixed_precision is said in both
    assert ask(config, without="mixed_precision", files=files).facts["deepspeed"]["zero_stage"] == 3


def test_does_not_catch_keys_of_a_block_that_there_are_not(ask: Ask) -> None:
    misspelt = {"fsdp_config": {**FSDP["fsdp_config"], "fsdp_reshard_after_foreward": False}}  # type: ignore[dict-item]
    assert ask({**FSDP, **misspelt}).facts["fsdp"]["reshard_after_forward"]
    # Without the long beginning nothing is parallel, and nothing is said.
    assert ask({**FSDP, "parallelism_config": {"tp_size": 2}}).facts["parallelism"]["tp"] == 1


def test_does_not_catch_processes_that_the_machines_do_not_divide(ask: Ask) -> None:
    answer = ask({"distributed_type": "MULTI_GPU", "num_processes": 15})
    assert (answer.facts["world"], answer.facts["processes_per_node"]) == (15, 7)


def test_megatron_has_two_contexts_unless_told(ask: Ask) -> None:
    unsaid = {key: value for key, value in MEGATRON.items() if key != "megatron_lm_context_parallel_size"}
    said, silent = (
        ask({"distributed_type": "MEGATRON_LM", "megatron_lm_config": block}) for block in (MEGATRON, unsaid)
    )
    assert said.facts["megatron"]["context_parallel_size"] == 1
    assert silent.facts["megatron"]["context_parallel_size"] == 2


def test_lists_every_key(validator: Callable[[str], Validator]) -> None:
    keys = validator("accelerate").ask(keys=True).facts
    assert {"num_processes", "machine_rank", "fsdp_config", "parallelism_config"} <= set(keys["cluster_config"])
    assert set(MEGATRON) <= set(keys["blocks"]["megatron_lm_config"])
    assert {"parallelism_config_dp_shard_size", "parallelism_config_tp_size"} <= set(
        keys["blocks"]["parallelism_config"]
    )
    assert {"zero_stage", "deepspeed_config_file"} <= set(keys["blocks"]["deepspeed_config"])
