"""Accelerate's YAML: read with its places, held to Accelerate's rules, understood."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from configurations import cases
from planner.configurations import FORMS, Setup
from planner.configurations.engine import recognise
from planner.configurations.forms.accelerate import ACCELERATE as FORM
from planner.configurations.forms.accelerate.keys import TABLES
from planner.domain.configuration import Finding
from planner.errors import SpecError
from planner.loader import dump_yaml

MESH = "parallelism_config__parallelism_config"
GOOD: dict[str, Any] = {
    "compute_environment": "LOCAL_MACHINE",
    "distributed_type": "FSDP",
    "mixed_precision": "bf16",
    "num_machines": 2,
    "num_processes": 8,
    "machine_rank": 0,
    "main_process_ip": "node-0",
    "main_process_port": 29500,
    "fsdp_config": {
        "fsdp_version": 2,
        "fsdp_reshard_after_forward": True,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_activation_checkpointing": True,
    },
}
"""Two nodes of four GPUs, as `accelerate config` asks for them."""
MULTI = {"distributed_type": "MULTI_GPU", "fsdp_config": None}
DEEPSPEED = {"distributed_type": "DEEPSPEED", "fsdp_config": None, "num_machines": 1}
MEGATRON = {
    "distributed_type": "MEGATRON_LM",
    "fsdp_config": None,
    "megatron_lm_config": {
        "megatron_lm_tp_degree": 2,
        "megatron_lm_pp_degree": 2,
        "megatron_lm_num_micro_batches": 16,
        "megatron_lm_context_parallel_size": 1,
        "megatron_lm_recompute_granularity": "selective",
    },
}


def changed(**changes: Any) -> dict[str, Any]:
    """Return a good configuration with other values; None removes a key, and ``__`` separates levels."""
    found: dict[str, Any] = json.loads(json.dumps(GOOD))
    for key, value in changes.items():
        *blocks, name = key.split("__")
        at = found
        for block in blocks:
            at = at.setdefault(block, {})
        if value is None:
            at.pop(name, None)
        else:
            at[name] = deepcopy(value)
    return found


def made(**changes: Any) -> str:
    return dump_yaml(changed(**changes))


def found(text: str) -> tuple[Finding, ...]:
    return cases.findings(FORM, text, "accelerate.yaml")


def setup(text: str) -> Setup:
    return FORM.setup(FORM.read(text, "accelerate.yaml"))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        MULTI,
        DEEPSPEED,
        MEGATRON,
        {f"{MESH}_dp_shard_size": 4, f"{MESH}_tp_size": 2},
        {f"{MESH}_dp_shard_size": 4, f"{MESH}_dp_replicate_size": 2},
        {f"{MESH}_dp_shard_size": 1},
        {**DEEPSPEED, f"{MESH}_sp_size": 4},
    ],
    ids=str,
)
def test_a_good_configuration_breaks_no_rule(changes: dict[str, Any]) -> None:
    """Of every type."""
    assert found(made(**changes)) == ()


@pytest.mark.parametrize("name", ["accelerate.yaml", "fsdp.yml", "<stdin>", "config"])
def test_it_is_recognised_by_its_keys(name: str) -> None:
    """Whatever its name; as JSON, too."""
    assert recognise(FORMS, made(), name) is FORM
    assert recognise(FORMS, json.dumps(changed()), name) is FORM


@pytest.mark.parametrize("text", ["name: x", '{"zero_optimization": {}}', "", "distributed_type", "num_processes: 8"])
def test_other_files_are_not_taken_for_it(text: str) -> None:
    """Text with one of its words."""
    assert recognise(FORMS, text, "x.yaml") is not FORM


def test_places_are_lines_of_the_text() -> None:
    """Of keys in blocks, too."""
    text = "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 2\n  reshard_after_forward: false\n"
    configuration = FORM.read(text, "a.yaml")
    assert str(configuration.spot("fsdp_config.fsdp_version")) == "a.yaml:4"
    # accelerate launch puts the prefix before short keys.
    assert str(configuration.spot("fsdp_config.fsdp_reshard_after_forward")) == "a.yaml:5"
    assert configuration.world
    assert configuration.world.value == 8


@pytest.mark.parametrize("text", ["- 1", "a: [", "", "x"])
def test_what_is_no_mapping_cannot_be_read(text: str) -> None:
    """One message."""
    with pytest.raises(SpecError):
        FORM.read(text, "accelerate.yaml")


@pytest.mark.parametrize("word", ["no", "No", "NO", "off"])
def test_no_without_quotes_is_false(word: str) -> None:
    """PyYAML, which Accelerate reads with, takes it for a truth value; in quotes it is right."""
    text = f"distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: {word}  # fp32\n"
    told = cases.of(found(text), "AC005")
    assert str(told.spot) == "accelerate.yaml:3:18"
    assert told.message == (
        f"mixed_precision: {word} is false to the reader of Accelerate, and no text; write mixed_precision: '{word}'"
    )
    assert found(text.replace(word, "'no'")) == ()


def test_duplicate_keys_are_told_with_their_place() -> None:
    """Accelerate keeps the last without a word."""
    told = cases.of(found("distributed_type: MULTI_GPU\nnum_processes: 8\nnum_processes: 4\n"), "AC004")
    assert (told.spot.line, told.key) == (3, "num_processes")


def test_two_nodes_with_shards_of_four_need_replicas() -> None:
    """NVIDIA/Model-Optimizer pull request 1302: dp_replicate is not inferred."""
    told = cases.of(found(made(**{f"{MESH}_dp_shard_size": 4})), "AC111")
    assert told.message == (
        "degrees 4 (dp_shard) = 4 are not the 8 processes, and none is inferred; write dp_shard_size 8 or"
        " dp_replicate_size 2"
    )


def test_a_tensor_axis_alone_leaves_fsdp_nothing() -> None:
    """huggingface/accelerate issue 3798: a KeyError of the mesh."""
    told = cases.of(found(made(**{f"{MESH}_tp_size": 8})), "AC117")
    assert told.message.startswith("FSDP has nothing to shard over beside tp_size 8; lower tp_size")
    told = cases.of(found(made(num_processes=16, **{f"{MESH}_tp_size": 8})), "AC117")
    assert "write dp_shard_size 2" in told.message


CASES: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "AC001": [("num_procesess", {"num_procesess": 8}, "refuses the file; did you mean num_processes")],
    "AC002": [
        (
            "fsdp_config.fsdp_reshard_after_foward",
            {"fsdp_config__fsdp_reshard_after_foward": True},
            "did you mean fsdp_reshard_after_forward?",
        )
    ],
    "AC003": [("deepspeed_config.xyz", {**DEEPSPEED, "deepspeed_config__xyz": 1}, "remove it")],
    "AC006": [("", {"distributed_type": None}, "write MULTI_GPU, FSDP or DEEPSPEED")],
    "AC007": [("deepspeed_config", {"deepspeed_config__zero_stage": 3}, "not read with distributed_type FSDP")],
    "AC008": [
        (
            "fsdp_config.fsdp_sharding_strategy",
            {"fsdp_config__fsdp_sharding_strategy": "FULL_SHARD"},
            "fsdp_reshard_after_forward takes its place",
        )
    ],
    "AC009": [
        ("fp16", {"fp16": True}, "mixed_precision: fp16"),
        ("dynamo_backend", {"dynamo_backend": "NO"}, "old key"),
    ],
    "AC010": [
        ("distributed_type", {"distributed_type": "TPU"}, "not 'TPU'"),
        ("num_processes", {"num_processes": "many"}, "a whole number"),
        ("fsdp_config.fsdp_version", {"fsdp_config__fsdp_version": 3}, "1 or 2, not 3"),
        (
            "parallelism_config.parallelism_config_cp_comm_strategy",
            {f"{MESH}_cp_comm_strategy": "ring"},
            "allgather or alltoall",
        ),
    ],
    "AC101": [
        ("num_processes", {"num_processes": None}, "write the GPUs of all machines"),
    ],
    "AC109": [("num_processes", {"num_processes": 0}, "at least 1")],
    "AC102": [("num_processes", {"num_machines": 3}, "2 are never started; write 6 or 9")],
    "AC103": [("machine_rank", {"machine_rank": 2}, "from 0 to 1, not 2")],
    "AC104": [
        ("num_machines", {"main_process_ip": None}, "a host called None"),
        ("num_machines", {"main_process_port": None}, "29500 is taken"),
    ],
    "AC105": [("rdzv_backend", {"rdzv_backend": "c10d"}, "write static")],
    "AC106": [("num_machines", {**DEEPSPEED, "num_machines": 2}, "needs deepspeed_hostfile")],
    "AC107": [("distributed_type", {"distributed_type": "NO", "fsdp_config": None}, "starts one process, not 8")],
    "AC108": [("gpu_ids", {"gpu_ids": "0,1"}, "names 2 GPUs for 4 processes a machine")],
    "AC111": [("parallelism_config", {f"{MESH}_dp_shard_size": 3}, "write dp_shard_size 8")],
    "AC112": [
        (
            "parallelism_config.parallelism_config_sp_size",
            {**DEEPSPEED, f"{MESH}_sp_size": 3},
            "does not divide 8 processes; start 6 or 9",
        )
    ],
    "AC113": [
        (
            "parallelism_config.parallelism_config_dp_replicate_size",
            {f"{MESH}_dp_replicate_size": 4, f"{MESH}_tp_size": 2},
            "write dp_replicate_size 1 and dp_shard_size 4",
        )
    ],
    "AC114": [
        (
            "parallelism_config.parallelism_config_sp_size",
            {f"{MESH}_cp_size": 2, f"{MESH}_sp_size": 2},
            "exclude each other",
        )
    ],
    "AC115": [
        (
            "parallelism_config.parallelism_config_cp_size",
            {**DEEPSPEED, f"{MESH}_cp_size": 2, f"{MESH}_dp_shard_size": 4},
            "under DEEPSPEED sp_size cuts the sequence",
        ),
        (
            "parallelism_config.parallelism_config_cp_size",
            {"fsdp_config__fsdp_version": 1, f"{MESH}_cp_size": 2, f"{MESH}_dp_shard_size": 4},
            "not FSDP version 1",
        ),
    ],
    "AC116": [
        (
            "parallelism_config.parallelism_config_sp_size",
            {f"{MESH}_sp_size": 2, f"{MESH}_dp_shard_size": 4},
            "needs distributed_type DEEPSPEED, not FSDP; under FSDP version 2 cp_size cuts the sequence",
        )
    ],
    "AC117": [
        (
            "parallelism_config.parallelism_config_dp_replicate_size",
            {f"{MESH}_dp_replicate_size": 8},
            "nothing to shard over beside dp_replicate_size 8; write dp_shard_size 8, or use MULTI_GPU",
        )
    ],
    "AC118": [
        (
            "parallelism_config.parallelism_config_dp_shard_size",
            {f"{MESH}_dp_shard_size": -1},
            "dp_shard_size should be at least 1, not -1: no degree is inferred",
        )
    ],
    "AC119": [
        (
            "parallelism_config",
            {"fsdp_config__fsdp_version": 1, f"{MESH}_dp_shard_size": 8},
            "write fsdp_version: 2",
        )
    ],
    "AC120": [
        ("megatron_lm_config", {**MEGATRON, "num_processes": 6, "num_machines": 1}, "do not divide by 2 (tp) x 2 (pp)")
    ],
    "AC121": [
        (
            "megatron_lm_config",
            {**MEGATRON, "megatron_lm_config__megatron_lm_context_parallel_size": None},
            "the plugin takes 2, not 1",
        )
    ],
    "AC122": [
        (
            "megatron_lm_config.megatron_lm_sequence_parallelism",
            {
                **MEGATRON,
                "megatron_lm_config__megatron_lm_tp_degree": 1,
                "megatron_lm_config__megatron_lm_sequence_parallelism": True,
            },
            "does nothing with megatron_lm_tp_degree 1",
        )
    ],
    "AC124": [
        (
            "parallelism_config.parallelism_config_dp_shard_size",
            {**MULTI, f"{MESH}_dp_shard_size": 8},
            "shards nothing with distributed_type MULTI_GPU",
        )
    ],
    "AC301": [
        (
            "deepspeed_config.gradient_accumulation_steps",
            {**DEEPSPEED, "deepspeed_config__gradient_accumulation_steps": 0},
            "at least 1, not 0",
        )
    ],
    "AC302": [
        (
            "megatron_lm_config.megatron_lm_num_micro_batches",
            {**MEGATRON, "megatron_lm_config__megatron_lm_num_micro_batches": 4},
            "4 micro-batches over 2 stages leave 20% of the step idle",
        )
    ],
    "AC401": [
        (
            "parallelism_config.parallelism_config_sp_seq_length",
            {**DEEPSPEED, f"{MESH}_sp_size": 4, f"{MESH}_sp_seq_length": 4098},
            "write 4096 or 4100",
        ),
        (
            "parallelism_config.parallelism_config_sp_seq_length_is_variable",
            {**DEEPSPEED, f"{MESH}_sp_size": 4, f"{MESH}_sp_seq_length_is_variable": False},
            "needs sp_seq_length",
        ),
    ],
    "AC402": [
        (
            "parallelism_config.parallelism_config_sp_attn_implementation",
            {**DEEPSPEED, f"{MESH}_sp_size": 4, f"{MESH}_sp_attn_implementation": "eager"},
            "not eager",
        )
    ],
    "AC403": [
        (
            "parallelism_config.parallelism_config_cp_size",
            {f"{MESH}_cp_size": 4, f"{MESH}_dp_shard_size": 2},
            "pad_to_multiple_of: 8",
        )
    ],
    "AC601": [
        (
            "fsdp_config.fsdp_reshard_after_forward",
            {"fsdp_config__fsdp_reshard_after_forward": "SHARD_GRAD_OP"},
            "write false",
        ),
        (
            "fsdp_config.fsdp_sharding_strategy",
            {"fsdp_config__fsdp_version": 1, "fsdp_config__fsdp_sharding_strategy": "FULL"},
            "should be FULL_SHARD, SHARD_GRAD_OP",
        ),
    ],
    "AC602": [
        ("fsdp_config", {"fsdp_config__fsdp_auto_wrap_policy": None}, "is not given, which is NO_WRAP"),
        (
            "fsdp_config.fsdp_auto_wrap_policy",
            {"fsdp_config__fsdp_auto_wrap_policy": "SIZE_BASED_WRAP", "fsdp_config__fsdp_min_num_params": 0},
            "wraps nothing",
        ),
    ],
    "AC603": [
        (
            "fsdp_config.fsdp_state_dict_type",
            {"fsdp_config__fsdp_state_dict_type": "LOCAL_STATE_DICT"},
            "write SHARDED_STATE_DICT",
        )
    ],
    "AC604": [
        (
            "fsdp_config.fsdp_activation_checkpointing_offload",
            {
                "fsdp_config__fsdp_activation_checkpointing": False,
                "fsdp_config__fsdp_activation_checkpointing_offload": True,
            },
            "write both, or neither",
        )
    ],
    "AC605": [
        ("fsdp_config.fsdp_sync_module_states", {"fsdp_config__fsdp_sync_module_states": False}, "leaves ranks without")
    ],
    "AC610": [
        (
            "deepspeed_config.zero_stage",
            {
                **DEEPSPEED,
                "deepspeed_config__zero_stage": 3,
                "deepspeed_config__deepspeed_config_file": "ds.json",
            },
            "Accelerate refuses both",
        ),
        ("mixed_precision", {**DEEPSPEED, "deepspeed_config__deepspeed_config_file": "ds.json"}, "remove it here"),
    ],
    "AC611": [
        (
            "deepspeed_config.offload_param_device",
            {**DEEPSPEED, "deepspeed_config__offload_param_device": "cpu"},
            "does nothing in ZeRO 2; write zero_stage 3, or none",
        )
    ],
    "AC612": [
        (
            "deepspeed_config.offload_optimizer_device",
            {
                **DEEPSPEED,
                "deepspeed_config__zero_stage": 3,
                "deepspeed_config__offload_optimizer_device": "nvme",
                "deepspeed_config__offload_optimizer_nvme_path": "/x",
            },
            "name it as deepspeed_config_file",
        )
    ],
    "AC613": [
        (
            "deepspeed_config.zero3_init_flag",
            {**DEEPSPEED, "deepspeed_config__zero3_init_flag": True},
            "does nothing in ZeRO 2",
        )
    ],
    "AC614": [
        (
            "megatron_lm_config",
            {**MEGATRON, "megatron_lm_config__megatron_lm_recompute_granularity": None},
            "recomputes every layer in full",
        )
    ],
    "AC701": [
        ("fp8_config", {**MULTI, "fp8_config__fp8_backend": "te"}, "write fp8, or remove it"),
        (
            "fsdp_config.fsdp_cpu_ram_efficient_loading",
            {
                "mixed_precision": "fp8",
                "fp8_config__fp8_backend": "ao",
                "fsdp_config__fsdp_cpu_ram_efficient_loading": True,
            },
            "write false",
        ),
    ],
}
"""Code -> (key, what is changed in the good configuration, what is said)."""


@pytest.mark.parametrize(
    ("code", "key", "changes", "said"),
    [(code, *case) for code, listed in CASES.items() for case in listed],
    ids=lambda value: value if isinstance(value, str) and len(value) < 6 else "",
)
def test_a_broken_rule_tells_key_and_remedy(code: str, key: str, changes: dict[str, Any], said: str) -> None:
    """With the place of the key, where it is about one."""
    # What a case shares with others comes first, what it is about later.
    told = [one for one in found(made(**changes)) if one.code == code]
    assert key in {one.key for one in told}
    assert any(said in one.message for one in told), [one.message for one in told]


def test_every_rule_has_a_case() -> None:
    """Or a test of its own; codes are used once, and every rule tells its story and source."""
    codes = [rule.code for rule in FORM.rules]
    assert len(codes) == len(set(codes))
    assert set(codes) - set(CASES) == {"AC004", "AC005"}
    assert all(rule.why and rule.source and rule.summary for rule in FORM.rules)


@pytest.mark.parametrize("value", cases.NONSENSE, ids=str)
def test_no_rule_fails_on_nonsense(value: Any) -> None:
    """Whatever is written where, whatever the type."""
    for number, one in enumerate(cases.with_nonsense(GOOD, TABLES, value)):
        kind = ("FSDP", "DEEPSPEED", "MEGATRON_LM")[number % 3]
        found(json.dumps({**one, "distributed_type": kind} if one.get("distributed_type") == "FSDP" else one))


def test_sagemaker_has_rules_of_its_own() -> None:
    """Its keys are not judged, and no plan can say it."""
    text = "compute_environment: AMAZON_SAGEMAKER\ndistributed_type: DATA_PARALLEL\nec2_instance_type: ml.p4d\n"
    assert found(text) == ()
    with pytest.raises(SpecError, match="SageMaker"):
        setup(text)


def test_fsdp_2_is_zero_3_or_2() -> None:
    """By whether weights are dropped after the forward pass; its checkpoints are full recompute."""
    meant = setup(made())
    assert (meant.layout.zero, meant.layout.dp, meant.world, meant.precision) == (3, 8, 8, "bf16")
    assert meant.layout.recompute == "full"
    meant = setup(
        made(fsdp_config__fsdp_reshard_after_forward="false", fsdp_config__fsdp_activation_checkpointing=False)
    )
    assert (meant.layout.zero, meant.layout.recompute) == (2, None)


@pytest.mark.parametrize(("strategy", "zero"), [("FULL_SHARD", 3), ("SHARD_GRAD_OP", 2), ("NO_SHARD", 0), (2, 2)])
def test_fsdp_1_has_strategies(strategy: object, zero: int) -> None:
    """By name or number."""
    text = made(fsdp_config__fsdp_version=1, fsdp_config__fsdp_sharding_strategy=strategy)
    assert setup(text).layout.zero == zero


def test_the_mesh_is_understood() -> None:
    """Context ranks are PyTorch's ring, tensor ranks keep norms whole."""
    meant = setup(made(**{f"{MESH}_dp_shard_size": 2, f"{MESH}_cp_size": 2, f"{MESH}_tp_size": 2}))
    layout = meant.layout
    assert (layout.dp, layout.cp, layout.cp_comm_type, layout.tp, layout.sp) == (2, 2, "p2p", 2, False)
    meant = setup(made(**DEEPSPEED, **{f"{MESH}_sp_size": 4, "deepspeed_config__gradient_accumulation_steps": 8}))
    layout = meant.layout
    assert (layout.dp, layout.cp, layout.cp_comm_type, layout.zero, layout.gbs) == (2, 4, "a2a", 2, 16)
    assert layout.framework == "deepspeed"


def test_megatron_is_understood() -> None:
    """With the plugin's own defaults: two context ranks, full recompute."""
    layout = setup(made(**MEGATRON)).layout
    assert (layout.tp, layout.pp, layout.cp, layout.dp, layout.zero) == (2, 2, 1, 2, 0)
    assert (layout.sp, layout.recompute, layout.gbs, layout.framework) == (False, "selective", 32, "megatron")
    layout = setup(made(**{**MEGATRON, "megatron_lm_config": {"megatron_lm_use_distributed_optimizer": True}})).layout
    assert (layout.cp, layout.dp, layout.zero, layout.recompute) == (2, 4, 1, "full")


def test_replicas_are_whole_models() -> None:
    """MULTI_GPU; and one process where the type is NO."""
    assert setup(made(**MULTI)).layout.zero == 0
    assert setup(made(**MULTI)).layout.dp == 8
    assert setup(made(**{**MULTI, "distributed_type": "NO", "num_processes": 1})).layout.dp == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({f"{MESH}_dp_shard_size": 4, f"{MESH}_dp_replicate_size": 2}, "keeps 2 copies of the shards"),
        ({"fsdp_config__fsdp_offload_params": True}, "offloads parameters"),
        ({"fsdp_config__fsdp_version": 1, "fsdp_config__fsdp_sharding_strategy": "HYBRID_SHARD"}, "HYBRID_SHARD"),
        ({**DEEPSPEED, "deepspeed_config__offload_optimizer_device": "cpu"}, "offloads to cpu"),
    ],
)
def test_what_no_plan_can_say_is_refused(changes: dict[str, Any], said: str) -> None:
    """Instead of predicting another run."""
    with pytest.raises(SpecError, match=said):
        setup(made(**changes))


def test_a_file_of_deepspeed_is_named_not_read() -> None:
    """Its stage and precision are unknown here."""
    meant = setup(made(**DEEPSPEED, mixed_precision=None, deepspeed_config__deepspeed_config_file="ds.json"))
    assert (meant.layout.zero, meant.precision) == (None, None)
    assert "ZeRO stage, batch and precision are in ds.json: check that file, too" in meant.assumed
