"""What a DeepSpeed configuration means to the planner."""

from __future__ import annotations

from planner.configurations.base import Setup
from planner.configurations.forms.deepspeed.precision import precision
from planner.configurations.forms.deepspeed.values import (
    BATCH,
    count,
    given,
    inner,
    is_true,
    num_stages,
    offload,
    replicas,
    sequence_degree,
    stage,
    tensor_degree,
    world,
)
from planner.domain.configuration import Configuration
from planner.errors import Problem, SpecError
from planner.specs.layout import Layout

HPZ = "zero_optimization.zero_hpz_partition_size"


def setup(configuration: Configuration) -> Setup:
    """Return what a DeepSpeed configuration means.

    Raises:
        SpecError: no plan can say it: offload, and secondary shards of ZeRO++.

    """
    _refuse(configuration)
    tensor, sequence, stages = tensor_degree(configuration), sequence_degree(configuration), num_stages(configuration)
    dp = replicas(configuration)
    train, micro, steps = batch(configuration, dp)
    recompute = _recompute(configuration)
    layout = Layout(
        tp=tensor,
        cp=sequence,
        cp_comm_type="a2a" if sequence > 1 else None,
        pp=stages,
        dp=dp,
        zero=stage(configuration),
        sp=False if tensor > 1 else None,
        mbs=micro or 1,
        gbs=train or (micro * steps * dp if micro and steps and dp else None),
        recompute="full" if recompute else None,
        framework="megatron-deepspeed" if tensor > 1 else None,
    )
    return Setup(
        layout=layout,
        world=world(configuration) or (dp * inner(configuration) if dp else None),
        precision=precision(configuration),
        assumed=tuple(_assumed(configuration, recompute, micro)),
    )


def batch(configuration: Configuration, dp: int | None) -> tuple[int | None, int | None, int | None]:
    """Return global batch, micro-batch and micro-batches: what is not given follows from the rest, as in DeepSpeed."""
    train, micro, steps = (count(configuration, key) for key in BATCH)
    if train and micro and steps and dp:
        train = micro * steps * dp
    elif train and micro and dp:
        steps = train // (micro * dp) or None
    elif train and steps and dp:
        micro = train // (steps * dp) or None
    elif train and dp and not micro and not steps and _absent(configuration, 1, 2):
        micro, steps = train // dp or None, 1
    elif micro and not steps and not train and _absent(configuration, 0, 2):
        steps = 1
    return train, micro, steps


def _absent(configuration: Configuration, *which: int) -> bool:
    """Return whether parts of the batch are not written at all; ``auto`` is written."""
    return all(configuration.get(BATCH[index]) is None for index in which)


def _recompute(configuration: Configuration) -> bool:
    """Return whether the configuration shows that layers are recomputed in full."""
    block = "activation_checkpointing"
    interval = given(configuration, "pipeline.activation_checkpoint_interval")
    marks = (
        count(configuration, f"{block}.number_checkpoints") is not None,
        is_true(configuration, f"{block}.partition_activations"),
        is_true(configuration, f"{block}.cpu_checkpointing"),
        isinstance(interval, int) and interval > 0,
    )
    return any(marks)


def _refuse(configuration: Configuration) -> None:
    problems = []
    for what, block in (("optimizer", "offload_optimizer"), ("param", "offload_param")):
        where = offload(configuration, what)
        works = (stage(configuration) or 0) >= (1 if what == "optimizer" else 3)
        if where != "none" and works:
            place = configuration.spot(f"zero_optimization.{block}.device", f"zero_optimization.{block}")
            message = f"offloads to {where}, which plans do not know: its memory and time cannot be told; remove it"
            problems.append(Problem(f"{place} zero_optimization.{block}", f"{message} to have the rest predicted"))
    group = count(configuration, HPZ) or 1
    if group > 1 and stage(configuration) == 3:
        message = f"keeps a second copy of the weights in groups of {group}, which plans do not know"
        problems.append(Problem(f"{configuration.spot(HPZ)} {HPZ}", f"{message}; write 1 to have the rest predicted"))
    if problems:
        raise SpecError(problems)


def _assumed(configuration: Configuration, recompute: bool, micro: int | None) -> list[str]:
    """Return what was assumed or left out, in sentences."""
    found = [*configuration.notes]
    if micro is None:
        found.append("the micro-batch is not in the file: taken as 1 a GPU")
    if stage(configuration) is None:
        found.append("the ZeRO stage is not in the file: taken as the usual one")
    if precision(configuration) is None:
        found.append("the precision is not in the file")
    if recompute:
        found.append("the file configures checkpoints: every layer is taken as recomputed in full")
    else:
        found.append("recompute is the model's and not in the file: taken as none")
    if tensor_degree(configuration) > 1:
        found.append(
            "AutoTP is predicted by the profile megatron-deepspeed, which has DeepSpeed's costs of a tensor axis"
        )
    if num_stages(configuration) > 1:
        found.append("PipelineModule cuts the layers in code: they are taken as DeepSpeed balances them by itself")
    if is_true(configuration, "zero_optimization.zero_quantized_weights"):
        found.append("quantized exchanges of ZeRO++ are predicted in full width")
    if "expert_parallel" in configuration and is_true(configuration, "expert_parallel.enabled"):
        found.append("AutoEP (expert_parallel) is left out")
    return found
