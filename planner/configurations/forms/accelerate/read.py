"""Accelerate's YAML as a configuration: every key with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from planner.configurations.forms.accelerate.keys import PREFIXES, TABLES
from planner.configurations.nested import canonical, flat, text_findings
from planner.domain.configuration import ERROR, Configuration, Finding, Setting, Spot
from planner.errors import SpecError
from planner.loader import parse

NAME = "accelerate"
DEFAULTS = {
    "compute_environment": "LOCAL_MACHINE",
    "num_machines": 1,
    "machine_rank": 0,
    "same_network": False,
    "rdzv_backend": "static",
    "fsdp_config.fsdp_version": 1,
    "fsdp_config.fsdp_sharding_strategy": "FULL_SHARD",
    "fsdp_config.fsdp_reshard_after_forward": True,
    "fsdp_config.fsdp_auto_wrap_policy": "NO_WRAP",
    "fsdp_config.fsdp_cpu_ram_efficient_loading": True,
    "fsdp_config.fsdp_sync_module_states": True,
    "fsdp_config.fsdp_offload_params": False,
    "fsdp_config.fsdp_activation_checkpointing": False,
    "parallelism_config.parallelism_config_dp_replicate_size": 1,
    "parallelism_config.parallelism_config_dp_shard_size": 1,
    "parallelism_config.parallelism_config_tp_size": 1,
    "parallelism_config.parallelism_config_cp_size": 1,
    "parallelism_config.parallelism_config_sp_size": 1,
    "parallelism_config.parallelism_config_sp_seq_length_is_variable": True,
    "deepspeed_config.zero_stage": 2,
    "deepspeed_config.offload_optimizer_device": "none",
    "deepspeed_config.offload_param_device": "none",
    "deepspeed_config.deepspeed_multinode_launcher": "pdsh",
    "megatron_lm_config.megatron_lm_tp_degree": 1,
    "megatron_lm_config.megatron_lm_pp_degree": 1,
    "megatron_lm_config.megatron_lm_num_micro_batches": 1,
    "megatron_lm_config.megatron_lm_sequence_parallelism": False,
    "megatron_lm_config.megatron_lm_use_distributed_optimizer": False,
    "megatron_lm_config.megatron_lm_recompute_activations": False,
    "megatron_lm_config.megatron_lm_recompute_granularity": "full",
    "megatron_lm_config.megatron_lm_expert_model_parallel_size": 1,
    "megatron_lm_config.megatron_lm_expert_tensor_parallel_size": 1,
    "megatron_lm_config.megatron_lm_context_parallel_size": 2,
}
"""What ``accelerate launch`` and the plugins take where a key that rules look at is not written (1.15.0)."""

_OURS = re.compile(r"^[\"']?(compute_environment|distributed_type)[\"']?\s*:", re.MULTILINE)
_BESIDE = re.compile(
    r"^[\"'\s]*(num_processes|num_machines|mixed_precision|fsdp_config|deepspeed_config|parallelism_config|"
    r"megatron_lm_config|main_training_function)[\"']?\s*:",
    re.MULTILINE,
)
_JSON = re.compile(r'^\s*\{.*"distributed_type"\s*:', re.DOTALL)
_BARE = re.compile(r"^\s*(?P<key>[A-Za-z_0-9]+)\s*:\s+(?P<word>no|No|NO|off|Off|OFF|yes|Yes|YES|on|On|ON)\s*(#.*)?$")
_WORDY = {"mixed_precision", "dynamo_backend"}


def recognises(text: str, _name: str) -> bool:
    """Return whether a text has the outermost keys that only Accelerate has."""
    if _JSON.match(text):
        return bool(_BESIDE.search(text.replace(",", "\n").replace("{", "\n")))
    return len({found[1] for found in _OURS.finditer(text)}) > 1 or bool(_OURS.search(text) and _BESIDE.search(text))


def read(text: str, name: str) -> Configuration:
    """Return what an Accelerate configuration says.

    Raises:
        SpecError: it is no YAML, or no mapping.

    """
    document = parse(text, name)
    if not isinstance(document.value, dict):
        raise SpecError.of(name, "should be a mapping of keys to values, such as `distributed_type: FSDP`")
    settings = _prefixed(flat(document, TABLES))
    return Configuration(
        form=NAME,
        origin=name,
        settings=settings,
        defaults=DEFAULTS,
        world=settings.get("num_processes"),
        findings=(*text_findings(document, "AC004"), *_bare_words(text, name)),
    )


def _prefixed(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return settings with the prefix that ``accelerate launch`` puts before short keys of some blocks."""
    found: dict[str, Setting] = {}
    for key, setting in settings.items():
        block, _, name = key.rpartition(".")
        prefix = PREFIXES.get(block, "")
        full = f"{block}.{prefix}{name}" if prefix and not name.startswith(prefix) else key
        kind = TABLES[block].kinds.get(full.rpartition(".")[2], "any") if block in TABLES else "any"
        found[full] = replace(setting, value=canonical(kind, setting.value))
    return found


def _bare_words(text: str, name: str) -> Iterator[Finding]:
    """Yield words without quotes that Accelerate's YAML reader takes for true or false."""
    for number, line in enumerate(text.splitlines(), 1):
        found = _BARE.match(line)
        if found and found["key"] in _WORDY:
            key, word = found["key"], found["word"]
            means = "false" if word.lower() in ("no", "off") else "true"
            message = f"{key}: {word} is {means} to the reader of Accelerate, and no text; write {key}: '{word}'"
            spot = Spot(name, number, found.start("word") + 1)
            yield Finding(code="AC005", severity=ERROR, spot=spot, key=key, message=message)
