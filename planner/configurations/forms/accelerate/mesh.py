"""Rules of the mesh (`parallelism_config`)."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.accelerate.keys import VERSION
from planner.configurations.forms.accelerate.values import (
    AXES,
    DEEPSPEED,
    FSDP,
    MESH,
    axis_key,
    count,
    degree,
    fsdp_version,
    has_mesh,
    kind,
    world,
)
from planner.domain.configuration import NOTE, Configuration

CLASS = f"accelerate {VERSION}, parallelism_config.py"
REPLICATE, SHARD, CP, SP, TP = (axis_key(axis) for axis in AXES)


def _product(configuration: Configuration) -> Iterator[Complaint]:
    size, degrees = world(configuration), {axis: degree(configuration, axis) for axis in AXES}
    total = prod(degrees.values())
    if not has_mesh(configuration) or not size or total in {1, size} or degrees["sp"] > 1:
        return

    def alone(axis: str) -> int:
        """Return the degree that makes the world with the others as they are; 0 if there is none."""
        others = total // degrees[axis]
        return 0 if size % others else size // others

    parts = " x ".join(f"{value} ({axis})" for axis, value in degrees.items() if value > 1)
    rest = total // degrees["dp_shard"]
    right = [f"{axis}_size {alone(axis)}" for axis in ("dp_shard", "dp_replicate") if alone(axis)]
    remedy = (
        f"write {' or '.join(right)}" if right else f"start {' or '.join(map(str, _multiples(size, rest)))} processes"
    )
    yield MESH, f"degrees {parts} = {total} are not the {size} processes, and none is inferred; {remedy}"


def _multiples(size: int, unit: int) -> list[int]:
    return [one for one in (size // unit * unit, size // unit * unit + unit) if one]


def _sequence_world(configuration: Configuration) -> Iterator[Complaint]:
    size, sequence = world(configuration), degree(configuration, "sp")
    if sequence > 1 and size and size % sequence:
        near = " or ".join(map(str, _multiples(size, sequence)))
        yield SP, f"sp_size {sequence} does not divide {size} processes; start {near}, or change sp_size"


def _pure(configuration: Configuration) -> Iterator[Complaint]:
    inner = {axis: degree(configuration, axis) for axis in ("tp", "cp")}
    replicate, shard = degree(configuration, "dp_replicate"), degree(configuration, "dp_shard")
    used = [f"{axis}_size {value}" for axis, value in inner.items() if value > 1]
    if used and replicate > 1 and shard == 1:
        message = f"{' and '.join(used)} do not go with dp_replicate_size {replicate} alone"
        instead = f"write dp_replicate_size 1 and dp_shard_size {replicate}, or dp_shard_size above 1 beside it"
        yield REPLICATE, f"{message}; {instead}"


def _exclusive(configuration: Configuration) -> Iterator[Complaint]:
    context, sequence = degree(configuration, "cp"), degree(configuration, "sp")
    if context > 1 and sequence > 1:
        message = f"cp_size {context} (FSDP) and sp_size {sequence} (DeepSpeed) exclude each other"
        yield SP, f"{message}; leave one of them at 1"


def _context(configuration: Configuration) -> Iterator[Complaint]:
    context = degree(configuration, "cp")
    if context > 1 and fsdp_version(configuration) != 2:
        used = kind(configuration) or "no distributed_type"
        found = f"{used} version {fsdp_version(configuration)}" if used == FSDP else used
        other = "; under DEEPSPEED sp_size cuts the sequence" if used == DEEPSPEED else ""
        yield CP, f"cp_size {context} needs distributed_type FSDP with fsdp_version 2, not {found}{other}"


def _sequence(configuration: Configuration) -> Iterator[Complaint]:
    sequence, used = degree(configuration, "sp"), kind(configuration)
    if sequence > 1 and used != DEEPSPEED:
        other = "; under FSDP version 2 cp_size cuts the sequence" if used == FSDP else ""
        yield SP, f"sp_size {sequence} (Ulysses) needs distributed_type DEEPSPEED, not {used or 'none'}{other}"


def _sharded(configuration: Configuration) -> Iterator[Complaint]:
    size = world(configuration)
    if not has_mesh(configuration) or fsdp_version(configuration) != 2 or not size or size == 1:
        return
    others = {axis: degree(configuration, axis) for axis in ("dp_replicate", "tp", "sp")}
    used = [f"{axis}_size {value}" for axis, value in others.items() if value > 1]
    if used and degree(configuration, "dp_shard") == 1 and degree(configuration, "cp") == 1:
        tensor = others["tp"]
        rest = size // tensor if size % tensor == 0 else 1
        remedy = f"write dp_shard_size {rest}" if rest > 1 else "lower tp_size and write dp_shard_size 2 or more"
        held = " and ".join(used)
        yield (
            (TP if tensor > 1 else REPLICATE),
            f"FSDP has nothing to shard over beside {held}; {remedy}, or use MULTI_GPU",
        )


def _positive(configuration: Configuration) -> Iterator[Complaint]:
    for axis in AXES:
        key = axis_key(axis)
        value = configuration.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            yield key, f"{axis}_size should be at least 1, not {value}: no degree is inferred"


def _compatible(configuration: Configuration) -> Iterator[Complaint]:
    used, version = kind(configuration), fsdp_version(configuration)
    total = prod(degree(configuration, axis) for axis in AXES)
    if has_mesh(configuration) and total > 1 and (version == 1 or used in ("MEGATRON_LM", "XLA")):
        found = "FSDP with fsdp_version 1" if version else used
        right = (
            "write fsdp_version: 2" if version else "use megatron_lm_config" if used == "MEGATRON_LM" else "remove it"
        )
        yield MESH, f"parallelism_config does not go with {found}; {right}"


def _whole(configuration: Configuration) -> Iterator[Complaint]:
    used, shard = kind(configuration), degree(configuration, "dp_shard")
    if shard > 1 and used.startswith("MULTI_"):
        message = f"dp_shard_size {shard} shards nothing with distributed_type {used}"
        yield SHARD, f"{message}; write FSDP with fsdp_version 2, or dp_replicate_size {shard}"


def _length(configuration: Configuration) -> Iterator[Complaint]:
    sequence = degree(configuration, "sp")
    key, variable = f"{MESH}.{MESH}_sp_seq_length", f"{MESH}.{MESH}_sp_seq_length_is_variable"
    if sequence < 2:
        return
    length = count(configuration, key)
    if configuration.get(variable) is False and not length:
        yield variable, "sp_seq_length_is_variable false needs sp_seq_length; write the tokens of a sample"
    if length and length % sequence:
        near = " or ".join(map(str, _multiples(length, sequence)))
        yield key, f"sp_seq_length {length} does not divide by sp_size {sequence}; write {near}"


def _attention(configuration: Configuration) -> Iterator[Complaint]:
    key = f"{MESH}.{MESH}_sp_attn_implementation"
    name = configuration.get(key)
    known = {"flash_attention_2", "flash_attention_3", "sdpa"}
    is_hub = isinstance(name, str) and "/" in name and "flash-attn" in name
    if degree(configuration, "sp") > 1 and isinstance(name, str) and name not in known and not is_hub:
        yield key, f"sp_attn_implementation should be {', '.join(sorted(known))} or a hub kernel, not {name}"


def _ring(configuration: Configuration) -> Iterator[Complaint]:
    context = degree(configuration, "cp")
    if context > 1:
        message = f"cp_size {context} wants SDPA attention without a mask, and samples of a multiple of {2 * context}"
        yield CP, f"{message} tokens; pad to it (pad_to_multiple_of: {2 * context})"


RULES = (
    Rule(
        code="AC111",
        name="The degrees make the world",
        summary="dp_replicate x dp_shard x cp x tp = num_processes",
        why=(
            "ParallelismConfig raises a ValueError: no degree is inferred, so on two nodes of four GPUs dp_shard 4"
            " needs dp_replicate 2. Under Ulysses (sp_size) DeepSpeed makes the groups, and the product is not checked."
        ),
        source=f"{CLASS} _validate_accelerator; NVIDIA/Model-Optimizer pull request 1302",
        check=_product,
    ),
    Rule(
        code="AC112",
        name="Sequence ranks divide the world",
        summary="num_processes % sp_size = 0",
        why="DeepSpeed makes sequence groups of sp_size consecutive ranks.",
        source="deepspeed runtime/sequence_parallel/parallel_state_sp.py initialize_sequence_parallel",
        check=_sequence_world,
    ),
    Rule(
        code="AC113",
        name="Tensor and context ranks have shards beside them",
        summary="tp > 1 or cp > 1, and dp_replicate > 1 => dp_shard > 1",
        why="Tensor and context ranks go with FSDP or HSDP, not with DDP alone; ParallelismConfig refuses it.",
        source=f"{CLASS} __post_init__",
        check=_pure,
    ),
    Rule(
        code="AC114",
        name="Context ranks or sequence ranks",
        summary="not both cp_size > 1 and sp_size > 1",
        why="ParallelismConfig refuses it: one is PyTorch's ring under FSDP, the other Ulysses under DeepSpeed.",
        source=f"{CLASS} __post_init__",
        check=_exclusive,
    ),
    Rule(
        code="AC115",
        name="Context ranks are FSDP 2's",
        summary="cp_size > 1 => distributed_type FSDP, fsdp_version 2",
        why="Accelerate refuses FSDP 1 and MULTI_GPU; under DEEPSPEED nothing cuts the sequence.",
        source=f"accelerate {VERSION}, state.py AcceleratorState; huggingface/trl pull request 3994",
        check=_context,
    ),
    Rule(
        code="AC116",
        name="Sequence ranks are DeepSpeed's",
        summary="sp_size > 1 => distributed_type DEEPSPEED",
        why="Ulysses is registered by the DeepSpeed plugin alone; elsewhere no mesh is made and nothing is cut.",
        source=f"{CLASS} build_device_mesh; huggingface/trl pull request 7003",
        check=_sequence,
        caught=False,
    ),
    Rule(
        code="AC117",
        name="FSDP has something to shard over",
        summary="FSDP 2 with any degree above 1 => dp_shard > 1 or cp > 1",
        why=(
            "FSDP shards over the joint mesh of dp_shard and cp, which exists only where one of them is above 1. Before"
            " Accelerate 1.15 that was a KeyError of the mesh."
        ),
        source=f"{CLASS} _validate_accelerator; huggingface/accelerate issue 3798",
        check=_sharded,
    ),
    Rule(
        code="AC118",
        name="Degrees are at least 1",
        summary="every size of parallelism_config >= 1",
        why="ParallelismConfig refuses others; -1 is not read as the rest.",
        source=f"{CLASS} __post_init__",
        check=_positive,
    ),
    Rule(
        code="AC119",
        name="A mesh has a type that reads it",
        summary="parallelism_config => FSDP 2, MULTI_* or DEEPSPEED",
        why="ParallelismConfig refuses other types.",
        source=f"{CLASS} _validate_accelerator",
        check=_compatible,
    ),
    Rule(
        code="AC401",
        name="The length of Ulysses",
        summary="sp_seq_length_is_variable false => sp_seq_length, a multiple of sp_size",
        why="Accelerate refuses a fixed length that is not said; DeepSpeed one that does not divide.",
        source=f"accelerate {VERSION}, utils/dataclasses.py DeepSpeedSequenceParallelConfig",
        check=_length,
    ),
    Rule(
        code="AC402",
        name="The attention of Ulysses",
        summary="sp_attn_implementation is sdpa, flash_attention_2, flash_attention_3 or a hub kernel",
        why="eager and flex_attention need masks that Ulysses does not pass; Accelerate refuses them.",
        source=f"accelerate {VERSION}, utils/dataclasses.py DeepSpeedSequenceParallelConfig",
        check=_attention,
    ),
    Rule(
        code="AC403",
        name="Samples divide over context ranks",
        summary="tokens % (2 x cp_size) = 0, SDPA attention",
        why="PyTorch's context parallelism gives every rank two chunks, for the balance of causal attention.",
        source="huggingface/trl pull request 3994; accelerate docs, context parallelism",
        check=_ring,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="AC124",
        name="Shards need FSDP",
        summary="dp_shard > 1 => distributed_type FSDP, fsdp_version 2",
        why="With MULTI_GPU dp_shard is accepted, and every rank keeps the whole model.",
        source=f"{CLASS} _validate_accelerator; accelerator.py prepare_model",
        check=_whole,
        caught=False,
    ),
)
