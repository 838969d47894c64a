"""What an Accelerate configuration means to the planner."""

from __future__ import annotations

from planner.configurations.base import Setup
from planner.configurations.forms.accelerate.fsdp import CHECKPOINTS, STRATEGY, reshards, strategy
from planner.configurations.forms.accelerate.plugins import BLOCK, CONTEXT, FILE, MEGA, stage
from planner.configurations.forms.accelerate.values import (
    DEEPSPEED,
    FSDP,
    MEGATRON,
    axis_key,
    count,
    degree,
    fsdp_version,
    has_mesh,
    is_sagemaker,
    kind,
    megatron,
    world,
)
from planner.domain.configuration import Configuration
from planner.errors import SpecError
from planner.specs.layout import Layout

_BATCH = "the micro-batch is the script's (per_device_train_batch_size): taken as 1 a GPU"


def setup(configuration: Configuration) -> Setup:
    """Return what an Accelerate configuration means.

    Raises:
        SpecError: no plan can say it: SageMaker, HSDP, offload, several processes of type NO.

    """
    if is_sagemaker(configuration):
        raise _cannot(configuration, "compute_environment", "is SageMaker, whose degrees are in the script")
    layout, assumed = {FSDP: _fsdp, DEEPSPEED: _deepspeed, MEGATRON: _megatron}.get(kind(configuration), _replicated)(
        configuration
    )
    return Setup(layout=layout, world=world(configuration), precision=_precision(configuration), assumed=assumed)


def _cannot(configuration: Configuration, key: str, message: str) -> SpecError:
    return SpecError.of(f"{configuration.spot(key)} {key}", f"{message}, and no plan can say that")


def _precision(configuration: Configuration) -> str | None:
    if configuration.get(FILE):
        return None
    said: str | None = configuration.get("mixed_precision")
    return "fp32" if said in (None, "no") else said


def _replicas(configuration: Configuration) -> int | None:
    """Return the degree of data parallelism: of the mesh, else what the other degrees leave of the world."""
    replicas = degree(configuration, "dp_replicate") * degree(configuration, "dp_shard")
    if has_mesh(configuration) and replicas > 1:
        return replicas
    size, inner = world(configuration), _inner(configuration)
    return size // inner if size and size % inner == 0 else None


def _inner(configuration: Configuration) -> int:
    return degree(configuration, "tp") * degree(configuration, "cp") * degree(configuration, "sp")


def _fsdp(configuration: Configuration) -> tuple[Layout, tuple[str, ...]]:
    replicate = degree(configuration, "dp_replicate")
    if replicate > 1 and degree(configuration, "dp_shard") * degree(configuration, "cp") > 1:
        raise _cannot(configuration, axis_key("dp_replicate"), f"keeps {replicate} copies of the shards (HSDP)")
    if configuration.get("fsdp_config.fsdp_offload_params") is True:
        raise _cannot(configuration, "fsdp_config.fsdp_offload_params", "offloads parameters to the host")
    if fsdp_version(configuration) == 2:
        zero = 2 if reshards(configuration) is False else 3
    else:
        zero = _first_version(configuration)
    recomputed = configuration.get(CHECKPOINTS) is True
    assumed = [_BATCH]
    if not recomputed:
        assumed.append("no activation checkpointing is in the file: none is assumed, though the script may ask for it")
    layout = Layout(
        tp=degree(configuration, "tp"),
        cp=degree(configuration, "cp"),
        cp_comm_type="p2p" if degree(configuration, "cp") > 1 else None,
        dp=_replicas(configuration),
        zero=zero,
        sp=False if degree(configuration, "tp") > 1 else None,
        recompute="full" if recomputed else None,
    )
    return layout, tuple(assumed)


def _first_version(configuration: Configuration) -> int:
    found = strategy(configuration)
    if found is None or found.startswith("HYBRID"):
        raise _cannot(configuration, STRATEGY, f"is {found}, which keeps copies of the shards on every node")
    return {"FULL_SHARD": 3, "SHARD_GRAD_OP": 2}.get(found, 0)


def _replicated(configuration: Configuration) -> tuple[Layout, tuple[str, ...]]:
    layout = Layout(
        tp=degree(configuration, "tp"),
        dp=1 if kind(configuration) == "NO" else _replicas(configuration),
        zero=0,
        sp=False if degree(configuration, "tp") > 1 else None,
    )
    return layout, (_BATCH, "recompute is the script's and not in the file: taken as none")


def _deepspeed(configuration: Configuration) -> tuple[Layout, tuple[str, ...]]:
    for what in ("optimizer", "param"):
        key = f"{BLOCK}.offload_{what}_device"
        if configuration.get(key) in ("cpu", "nvme") and not configuration.get(FILE):
            raise _cannot(configuration, key, f"offloads to {configuration.get(key)}")
    sequence, replicas = degree(configuration, "sp"), _replicas(configuration)
    steps = count(configuration, f"{BLOCK}.gradient_accumulation_steps")
    assumed = [_BATCH, "recompute is the script's and not in the file: taken as none"]
    if configuration.get(FILE):
        assumed.append(f"ZeRO stage, batch and precision are in {configuration.get(FILE)}: check that file, too")
    layout = Layout(
        cp=sequence,
        cp_comm_type="a2a" if sequence > 1 else None,
        dp=replicas,
        zero=stage(configuration),
        gbs=steps * replicas if steps and replicas else None,
        framework="deepspeed",
    )
    return layout, tuple(assumed)


def _megatron(configuration: Configuration) -> tuple[Layout, tuple[str, ...]]:
    tensor, stages = megatron(configuration, "tp_degree"), megatron(configuration, "pp_degree")
    context = count(configuration, CONTEXT) or 1
    size, width = world(configuration), tensor * stages * context
    replicas = size // width if size and size % width == 0 else None
    steps = megatron(configuration, "num_micro_batches")
    granularity = configuration.get(f"{MEGA}.megatron_lm_recompute_granularity")
    assumed = [_BATCH]
    if CONTEXT not in configuration:
        assumed.append("megatron_lm_context_parallel_size is 2, the plugin's default")
    if configuration.get(f"{MEGA}.megatron_lm_decoder_last_pipeline_num_layers") is not None:
        assumed.append("decoder_last_pipeline_num_layers is left out: stages are taken as Megatron cuts them")
    layout = Layout(
        tp=tensor,
        pp=stages,
        cp=context,
        cp_comm_type="p2p" if context > 1 else None,
        dp=replicas,
        ep=megatron(configuration, "expert_model_parallel_size"),
        zero=int(configuration.on(f"{MEGA}.megatron_lm_use_distributed_optimizer")),
        sp=configuration.on(f"{MEGA}.megatron_lm_sequence_parallelism") and tensor > 1,
        gbs=steps * replicas if replicas else None,
        recompute="selective" if granularity == "selective" else "full",
        framework="megatron",
    )
    return layout, tuple(assumed)
