"""Rules of ZeRO: what goes with which stage."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.deepspeed.keys import VERSION
from planner.configurations.forms.deepspeed.values import count, given, is_true, num_stages, offload, stage, world
from planner.domain.configuration import NOTE, WARNING, Configuration

ZERO = f"deepspeed {VERSION}, deepspeed/runtime/zero"
HPZ = "zero_optimization.zero_hpz_partition_size"
NORM = "zero_optimization.compute_grad_norm"
FAR = 4096
"""Largest group that is proposed."""
_QUANTIZED = ("zero_quantized_weights", "zero_quantized_gradients", "zero_quantized_nontrainable_weights")


def _hpz(configuration: Configuration) -> Iterator[Complaint]:
    group, size = count(configuration, HPZ), world(configuration)
    if group and size and group < size and size % group and stage(configuration) == 3:
        legal = [one for one in range(1, min(size, FAR) + 1) if size % one == 0]
        near = sorted(sorted(legal, key=lambda one: (abs(one - group), one))[:2])
        yield HPZ, f"{HPZ} {group} does not divide {size} processes; write {' or '.join(map(str, near))}"


def _hpz_stage(configuration: Configuration) -> Iterator[Complaint]:
    group, zero = count(configuration, HPZ) or 1, stage(configuration)
    if group > 1 and zero is not None and zero < 3:
        yield (
            HPZ,
            f"{HPZ} {group} does nothing in ZeRO {zero}: only ZeRO 3 shards weights; write stage 3, or leave it out",
        )


def _quantized(configuration: Configuration) -> Iterator[Complaint]:
    zero = stage(configuration)
    for name in _QUANTIZED:
        key = f"zero_optimization.{name}"
        if is_true(configuration, key) and zero is not None and zero < 3:
            yield key, f"{key} does nothing in ZeRO {zero}: it is a part of ZeRO 3; write stage 3, or leave it out"
    key = "zero_optimization.zero_quantized_gradients"
    if is_true(configuration, key) and given(configuration, "zero_optimization.reduce_scatter") is False:
        yield key, f"{key} needs zero_optimization.reduce_scatter true"
    key = "zero_optimization.zero_quantized_weights"
    if is_true(configuration, key) and is_true(configuration, "torch_autocast.enabled"):
        yield key, f"{key} does not go with torch_autocast; leave one of the two out"


def _third_stage_keys(configuration: Configuration) -> Iterator[Complaint]:
    zero = stage(configuration)
    keys = [key for key in configuration.settings if key.startswith("zero_optimization.stage3_")]
    if keys and zero is not None and zero < 3:
        listed = f"{', '.join(key.partition('.')[2] for key in keys[:3])}{', ...' if len(keys) > 3 else ''}"
        yield keys[0], f"{listed}: of no effect in ZeRO {zero}; write stage 3 if ZeRO 3 is meant, else leave them out"


def _sum(configuration: Configuration) -> Iterator[Complaint]:
    key = "gradient_allreduce_op"
    value = given(configuration, key)
    op = value.lower() if isinstance(value, str) else value
    if op not in ("mean", "sum"):
        if key in configuration:
            yield key, f"{key} should be mean or sum, not {value!r}"
        return
    others = (
        (stage(configuration) == 3, "ZeRO 3"),
        (isinstance(configuration.get("zero_optimization.zenflow"), dict), "ZenFlow"),
        (is_true(configuration, "compile.deepcompile"), "DeepCompile"),
    )
    for used, name in others:
        if used and op == "sum":
            yield key, f"{key} sum does not go with {name}; write mean"


def _norm(configuration: Configuration) -> Iterator[Complaint]:
    if given(configuration, NORM) is not False:
        return
    zero, clipping = stage(configuration), given(configuration, "gradient_clipping")
    if zero not in (1, 2, None):
        yield NORM, f"{NORM} false works in ZeRO 1 and 2 only, not {zero}; leave it out"
    elif isinstance(clipping, (int, float)) and clipping > 0:
        yield NORM, f"{NORM} false leaves nothing to clip by; write gradient_clipping 0, or leave {NORM} out"
    elif offload(configuration, "optimizer") != "none":
        yield NORM, f"{NORM} false does not go with offload_optimizer; leave it out"


def _scaling(configuration: Configuration) -> Iterator[Complaint]:
    zero, scatter = stage(configuration), given(configuration, "zero_optimization.reduce_scatter")
    if zero not in (2, 3) or scatter is False:
        return
    remedy = f"in ZeRO {zero} with reduce_scatter; leave it out, or write zero_optimization.reduce_scatter false"
    if is_true(configuration, "prescale_gradients"):
        yield "prescale_gradients", f"prescale_gradients does not work {remedy}"
    factor = given(configuration, "gradient_predivide_factor")
    if isinstance(factor, (int, float)) and factor != 1:
        yield "gradient_predivide_factor", f"gradient_predivide_factor {factor} does not work {remedy}"


def _legacy(configuration: Configuration) -> Iterator[Complaint]:
    key = "zero_optimization.legacy_stage1"
    if is_true(configuration, key) and stage(configuration):
        yield key, f"{key} is an implementation that was removed in DeepSpeed 0.5.9; leave it out"


def _elastic(configuration: Configuration) -> Iterator[Complaint]:
    key = "zero_optimization.elastic_checkpoint"
    if is_true(configuration, key) and stage(configuration) == 3:
        yield (
            key,
            f"{key} is no longer supported in ZeRO 3; leave it out, and convert to a universal checkpoint instead",
        )


def _overlap(configuration: Configuration) -> Iterator[Complaint]:
    key = "zero_optimization.overlap_comm"
    if is_true(configuration, key) and num_stages(configuration) > 1:
        yield key, f"{key} is switched off in a pipeline; leave it out"


def _saved(configuration: Configuration) -> Iterator[Complaint]:
    keys = [f"zero_optimization.{name}" for name in ("stage3_gather_16bit_weights_on_model_save", *_SAVE_NAMES)]
    if stage(configuration) == 3 and not any(configuration.get(key) for key in keys):
        effect = "without stage3_gather_16bit_weights_on_model_save true, save_16bit_model writes no weights in ZeRO 3"
        yield (
            "zero_optimization.stage",
            f"{effect}, and checkpoints need zero_to_fp32.py; write it if weights are wanted",
        )


_SAVE_NAMES = ("gather_16bit_weights_on_model_save", "stage3_gather_fp16_weights_on_model_save")


def _contiguous(configuration: Configuration) -> Iterator[Complaint]:
    block = "activation_checkpointing"
    key = f"{block}.contiguous_memory_optimization"
    if not is_true(configuration, key):
        return
    if not is_true(configuration, f"{block}.partition_activations"):
        yield key, f"{key} needs {block}.partition_activations true"
    if not count(configuration, f"{block}.number_checkpoints"):
        yield key, f"{key} needs {block}.number_checkpoints, the number of layers"


def _checkpointing(configuration: Configuration) -> Iterator[Complaint]:
    if "activation_checkpointing" in configuration:
        effect = "this block recomputes nothing by itself: the model must call deepspeed.checkpointing.checkpoint"
        other = "models of Transformers do not (there gradient_checkpointing of the script decides)"
        yield "activation_checkpointing", f"{effect}, and {other}"


RULES = (
    Rule(
        code="DS610",
        name="The secondary shards of ZeRO++ divide the world",
        summary="world % zero_hpz_partition_size = 0, in ZeRO 3",
        why=(
            "Groups of this size hold a second copy of the weights, so that gathering stays inside; usually the GPUs of"
            " a node. DeepSpeed asserts that they divide the world."
        ),
        source=f"deepspeed {VERSION}, deepspeed/utils/groups.py _create_zero_param_parallel_group",
        check=_hpz,
    ),
    Rule(
        code="DS611",
        name="Quantized ZeRO++ is ZeRO 3",
        summary="zero_quantized_* => zero_optimization.stage 3, reduce_scatter, no torch_autocast",
        why="Only the engine of ZeRO 3 reads them; others train in full width, as if they were not there.",
        source=f"{ZERO}/stage3.py; runtime/torch_autocast.py",
        check=_quantized,
        caught=False,
    ),
    Rule(
        code="DS612",
        name="stage3 keys are of ZeRO 3",
        summary="stage3_* => zero_optimization.stage 3",
        why="They are read by ZeRO 3 alone. Often the stage was changed and they were left.",
        source=f"{ZERO}/config.py",
        check=_third_stage_keys,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="DS613",
        name="Summed gradients have no ZeRO 3",
        summary="gradient_allreduce_op is mean or sum; sum: not with ZeRO 3, ZenFlow, DeepCompile",
        why="DeepSpeed raises a ValueError when it reads the file.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/config.py _do_error_check, get_gradient_allreduce_op",
        check=_sum,
    ),
    Rule(
        code="DS614",
        name="No gradient norm only where none is needed",
        summary="compute_grad_norm false => ZeRO 1 or 2, no gradient_clipping, no offload_optimizer",
        why="DeepSpeed refuses the file, or the optimizer when it is made.",
        source=f"{ZERO}/config.py compute_grad_norm_valid; stage_1_and_2.py",
        check=_norm,
    ),
    Rule(
        code="DS615",
        name="Gradients are scaled after they are scattered",
        summary="ZeRO 2 or 3 with reduce_scatter => no prescale_gradients, gradient_predivide_factor 1",
        why="DeepSpeed asserts it when it makes the optimizer.",
        source=f"{ZERO}/stage_1_and_2.py, stage3.py",
        check=_scaling,
    ),
    Rule(
        code="DS616",
        name="No old ZeRO 1",
        summary="no legacy_stage1",
        why="The engine raises: the old implementation was removed in 0.5.9.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/engine.py _configure_zero_optimizer",
        check=_legacy,
    ),
    Rule(
        code="DS617",
        name="No elastic checkpoint in ZeRO 3",
        summary="elastic_checkpoint => zero_optimization.stage <= 2",
        why="DeepSpeed warns and goes on without it.",
        source=f"{ZERO}/config.py elastic_checkpoint_deprecated",
        check=_elastic,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="DS618",
        name="A pipeline does not overlap the exchange",
        summary="pipeline stages > 1 => overlap_comm false",
        why="DeepSpeed switches it off with a warning.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/engine.py _configure_zero_optimizer",
        check=_overlap,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="DS619",
        name="ZeRO 3 saves its weights",
        summary="zero_optimization.stage 3 => stage3_gather_16bit_weights_on_model_save, where weights are saved",
        why="save_16bit_model skips the weights otherwise; sharded checkpoints can be joined by zero_to_fp32.py.",
        source=f"{ZERO}/config.py gather_16bit_weights_on_model_save",
        check=_saved,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="DS620",
        name="Contiguous checkpoints are partitioned and counted",
        summary="contiguous_memory_optimization => partition_activations, number_checkpoints",
        why="DeepSpeed asserts it when checkpointing is configured, unless the script passes what is missing.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/activation_checkpointing/checkpointing.py configure",
        check=_contiguous,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="DS621",
        name="Recompute is the model's",
        summary="activation_checkpointing takes effect only in models that call deepspeed.checkpointing",
        why="The block says how checkpoints are kept, not whether there are any.",
        source="www.deepspeed.ai/docs/config-json, Activation checkpointing",
        check=_checkpointing,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="DS622",
        name="The secondary shards of ZeRO++ are ZeRO 3's",
        summary="zero_hpz_partition_size > 1 => zero_optimization.stage 3",
        why="Below ZeRO 3 weights are not sharded, and the key is ignored.",
        source=f"{ZERO}/partition_parameters.py",
        check=_hpz_stage,
        severity=WARNING,
        caught=False,
    ),
)
