"""Rules of FSDP, and of precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.accelerate.keys import VERSION
from planner.configurations.forms.accelerate.values import FSDP, fsdp_version, kind
from planner.configurations.nested import canonical
from planner.domain.configuration import WARNING, Configuration

PLUGIN = f"accelerate {VERSION}, utils/dataclasses.py FullyShardedDataParallelPlugin"
BLOCK = "fsdp_config"
RESHARD, STRATEGY = f"{BLOCK}.fsdp_reshard_after_forward", f"{BLOCK}.fsdp_sharding_strategy"
WRAP, STATE = f"{BLOCK}.fsdp_auto_wrap_policy", f"{BLOCK}.fsdp_state_dict_type"
CHECKPOINTS = f"{BLOCK}.fsdp_activation_checkpointing"
LOADING, SYNC = f"{BLOCK}.fsdp_cpu_ram_efficient_loading", f"{BLOCK}.fsdp_sync_module_states"
STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
"""Of FSDP 1, which also takes them as numbers from 1."""
FP8_BACKEND = "fp8_config.fp8_backend"


def strategy(configuration: Configuration) -> str | None:
    """Return the sharding strategy of FSDP 1; None if it is none."""
    value: Any = configuration.get(STRATEGY)
    if isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
        return STRATEGIES[int(value) - 1] if 1 <= int(value) <= len(STRATEGIES) else None
    name = str(value).upper()
    return name if name in STRATEGIES else None


def reshards(configuration: Configuration) -> bool | None:
    """Return whether FSDP 2 drops weights after the forward pass; None if the value is no truth value."""
    value = canonical("bool", configuration.get(RESHARD))
    return value if isinstance(value, bool) else None


def _reshard(configuration: Configuration) -> Iterator[Complaint]:
    value = configuration.get(RESHARD)
    if fsdp_version(configuration) == 2 and reshards(configuration) is None:
        instead = {"FULL_SHARD": "true", "HYBRID_SHARD": "true"}.get(str(value).upper(), "false")
        yield RESHARD, f"{RESHARD} should be true (ZeRO 3) or false (ZeRO 2) in FSDP 2, not {value}; write {instead}"
    if fsdp_version(configuration) == 1 and strategy(configuration) is None:
        yield STRATEGY, f"{STRATEGY} should be {', '.join(STRATEGIES)}, not {configuration.get(STRATEGY)}"


def _wrapped(configuration: Configuration) -> Iterator[Complaint]:
    if kind(configuration) != FSDP:
        return
    policy = configuration.get(WRAP)
    if policy == "NO_WRAP":
        said = "is NO_WRAP" if WRAP in configuration else "is not given, which is NO_WRAP"
        effect = "the whole model is one unit, gathered at once, so that nothing is saved by sharding weights"
        yield (WRAP if WRAP in configuration else BLOCK), f"{WRAP} {said}: {effect}; write TRANSFORMER_BASED_WRAP"
    sizes = configuration.get(f"{BLOCK}.fsdp_min_num_params")
    if policy == "SIZE_BASED_WRAP" and sizes == 0:
        yield WRAP, f"{WRAP} SIZE_BASED_WRAP with fsdp_min_num_params 0 wraps nothing; write a size such as 100000000"


def _saved(configuration: Configuration) -> Iterator[Complaint]:
    if fsdp_version(configuration) == 2 and configuration.get(STATE) == "LOCAL_STATE_DICT":
        yield STATE, f"{STATE} LOCAL_STATE_DICT is not supported by FSDP 2; write SHARDED_STATE_DICT or FULL_STATE_DICT"


def _offloaded(configuration: Configuration) -> Iterator[Complaint]:
    key = f"{BLOCK}.fsdp_activation_checkpointing_offload"
    if configuration.get(key) is not True or kind(configuration) != FSDP:
        return
    if configuration.get(CHECKPOINTS) is not True:
        yield key, f"{key} needs {CHECKPOINTS} true; write both, or neither"
    if fsdp_version(configuration) != 2:
        yield key, f"{key} needs fsdp_version 2, not 1"


def _loading(configuration: Configuration) -> Iterator[Complaint]:
    if kind(configuration) == FSDP and configuration.get(LOADING) is True and configuration.get(SYNC) is False:
        yield SYNC, f"{SYNC} false with {LOADING} true leaves ranks without weights; write true, in either version"


def _fp8(configuration: Configuration) -> Iterator[Complaint]:
    precision, block = configuration.get("mixed_precision"), configuration.get("fp8_config")
    if block and precision != "fp8" and kind(configuration) not in (FSDP, "DEEPSPEED"):
        yield (
            "fp8_config",
            f"fp8_config is given with mixed_precision {precision}; write fp8, or remove it",
        )
    backend = str(configuration.get(FP8_BACKEND)).lower()
    if precision == "fp8" and kind(configuration) == FSDP and backend == "ao" and configuration.get(LOADING) is True:
        yield LOADING, f"{LOADING} does not go with fp8_backend ao under FSDP; write false"
    if precision == "fp8" and kind(configuration) == FSDP and backend == "msamp":
        yield FP8_BACKEND, f"{FP8_BACKEND} msamp does not go with FSDP; write te or ao"


RULES = (
    Rule(
        code="AC601",
        name="Sharding is said as the version says it",
        summary="FSDP 2: fsdp_reshard_after_forward is true or false; FSDP 1: fsdp_sharding_strategy is a name",
        why="The plugin refuses the words of the other version.",
        source=PLUGIN,
        check=_reshard,
    ),
    Rule(
        code="AC602",
        name="Layers are wrapped",
        summary="FSDP => fsdp_auto_wrap_policy is TRANSFORMER_BASED_WRAP or SIZE_BASED_WRAP",
        why=(
            "Without a policy only the root is wrapped: all weights are gathered before the first layer and kept to the"
            " last, so that the memory of the weights is that of DDP."
        ),
        source=f"{PLUGIN}; utils/fsdp_utils.py fsdp2_prepare_auto_wrap_policy",
        check=_wrapped,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="AC603",
        name="FSDP 2 saves sharded or full state",
        summary="fsdp_version 2 => fsdp_state_dict_type is not LOCAL_STATE_DICT",
        why="The plugin refuses it.",
        source=f"{PLUGIN}.set_state_dict_type",
        check=_saved,
    ),
    Rule(
        code="AC604",
        name="Offloaded checkpoints are checkpoints of FSDP 2",
        summary="fsdp_activation_checkpointing_offload => fsdp_activation_checkpointing, fsdp_version 2",
        why="The plugin refuses anything else.",
        source=PLUGIN,
        check=_offloaded,
    ),
    Rule(
        code="AC605",
        name="Loading with little memory is followed by a broadcast",
        summary="fsdp_cpu_ram_efficient_loading => fsdp_sync_module_states",
        why="Only the first rank reads the weights; accelerate launch refuses to leave the others without.",
        source=f"accelerate {VERSION}, utils/launch.py prepare_multi_gpu_env",
        check=_loading,
    ),
    Rule(
        code="AC701",
        name="fp8 is asked for where it is configured",
        summary="fp8_config => mixed_precision fp8; under FSDP not ao with cpu_ram_efficient_loading, nor msamp",
        why="Accelerator refuses these combinations.",
        source=f"accelerate {VERSION}, accelerator.py Accelerator.__init__",
        check=_fp8,
        severity=WARNING,
    ),
)
