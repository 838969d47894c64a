"""Rules of the parallel degrees: pipeline, AutoTP, Ulysses, and the world that they divide."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.deepspeed.keys import VERSION
from planner.configurations.forms.deepspeed.values import (
    count,
    given,
    inner,
    num_stages,
    sequence_degree,
    stage,
    tensor_degree,
    world,
)
from planner.domain.configuration import WARNING, Configuration

ENGINE = f"deepspeed {VERSION}, deepspeed/runtime/engine.py"
STAGE, STAGES, AUTOTP = "zero_optimization.stage", "pipeline.stages", "tensor_parallel.autotp_size"
SEQUENCE, DATA = "sequence_parallel_size", "data_parallel_size"


def _pipeline(configuration: Configuration) -> Iterator[Complaint]:
    zero, stages = stage(configuration), num_stages(configuration)
    if zero is not None and zero > 1 and stages > 1:
        effect = f"ZeRO {zero} does not go with a pipeline ({stages} stages), whose engine wants gradients whole"
        other = "write stage 1, or leave the pipeline out (Megatron-DeepSpeed: --no-pipeline-parallel)"
        yield STAGE, f"{effect} over its micro-batches; {other}"


def _pipeline_module(configuration: Configuration) -> Iterator[Complaint]:
    zero = stage(configuration)
    if "pipeline" in configuration and zero is not None and zero > 1 and num_stages(configuration) == 1:
        effect = f"ZeRO {zero} fails with every PipelineModule, even of one stage (GPTModelPipe)"
        other = "write stage 1, or remove the block and build no PipelineModule (Megatron-DeepSpeed:"
        yield "pipeline", f"{effect}; {other} --no-pipeline-parallel)"


def _autotp_zero(configuration: Configuration) -> Iterator[Complaint]:
    tensor = tensor_degree(configuration)
    if tensor > 1 and stage(configuration) == 3:
        effect = f"AutoTP (autotp_size {tensor}) trains with ZeRO 0, 1 and 2 only before DeepSpeed 0.19.4"
        yield STAGE, f"{effect}; write stage 2, or autotp_size 0"


def _autotp_pipeline(configuration: Configuration) -> Iterator[Complaint]:
    tensor, stages = tensor_degree(configuration), num_stages(configuration)
    if tensor > 1 and stages > 1:
        message = (
            f"AutoTP (autotp_size {tensor}) does not go with a pipeline ({stages} stages); leave one of the two out"
        )
        yield AUTOTP, f"{message}, or use Megatron-DeepSpeed, which cuts tensors itself"


def _other_path(configuration: Configuration) -> Iterator[Complaint]:
    tensor = tensor_degree(configuration)
    for block in ("tensor_parallel.tensor_parallel", "tensor_parallel.tp"):
        key = f"{block}.tp_size"
        size = count(configuration, key)
        if size and size > 1 and tensor == 1:
            effect = f"{key} {size} by itself turns no training AutoTP on: every rank trains a whole model"
            yield key, f"{effect}; write {AUTOTP} {size}"


def _other_size(configuration: Configuration) -> Iterator[Complaint]:
    tensor = tensor_degree(configuration)
    for block in ("tensor_parallel.tensor_parallel", "tensor_parallel.tp"):
        key = f"{block}.tp_size"
        size = count(configuration, key)
        if size and size > 1 and tensor > 1 and size != tensor:
            yield key, f"{key} {size} is not {AUTOTP} {tensor}, and DeepSpeed stops; remove {key}"


def _world(configuration: Configuration) -> Iterator[Complaint]:
    size, width = world(configuration), inner(configuration)
    if size and size % width:
        parts = {
            "autotp_size": tensor_degree(configuration),
            "sequence_parallel_size": sequence_degree(configuration),
            "pipeline stages": num_stages(configuration),
        }
        product = " x ".join(f"{degree} ({name})" for name, degree in parts.items() if degree > 1)
        counts = [one for one in (size // width * width, size // width * width + width) if one]
        key = AUTOTP if parts["autotp_size"] > 1 else SEQUENCE if parts["sequence_parallel_size"] > 1 else STAGES
        message = f"{size} processes do not divide by {product}; start {' or '.join(map(str, counts))}"
        yield key, f"{message}, or change the degrees"


def _mesh(configuration: Configuration) -> Iterator[Complaint]:
    size, sequence, data = world(configuration), sequence_degree(configuration), count(configuration, DATA)
    if sequence > 1 and data and size and data * sequence != size:
        message = f"{DATA} {data} x {SEQUENCE} {sequence} = {data * sequence} is not the {size} processes"
        right = f"; write {DATA} {size // sequence}" if size % sequence == 0 else "; change both"
        yield DATA, message + right


def _half_mesh(configuration: Configuration) -> Iterator[Complaint]:
    size, sequence = world(configuration), sequence_degree(configuration)
    if sequence > 1 and given(configuration, DATA) is None and SEQUENCE in configuration:
        example = f" (world / {sequence})" if not size or size % sequence else f" {size // sequence}"
        effect = f"{SEQUENCE} alone makes no mesh: the script must pass mpu, else no sequence is cut"
        yield SEQUENCE, f"{effect}; write {DATA}{example} beside it"


def _sequence_pipeline(configuration: Configuration) -> Iterator[Complaint]:
    sequence, stages = sequence_degree(configuration), num_stages(configuration)
    if sequence > 1 and stages > 1:
        message = (
            f"{SEQUENCE} {sequence} is not carried into a pipeline ({stages} stages), whose engine has a mesh of its"
        )
        yield SEQUENCE, f"{message} own; leave one of the two out"


def _sequence_autotp(configuration: Configuration) -> Iterator[Complaint]:
    sequence, tensor = sequence_degree(configuration), tensor_degree(configuration)
    if sequence > 1 and tensor > 1:
        message = f"{SEQUENCE} {sequence} and {AUTOTP} {tensor} each make groups over the whole world that take no heed"
        yield SEQUENCE, f"{message} of the other; leave one of the two out"


RULES = (
    Rule(
        code="DS101",
        name="A pipeline has at most ZeRO 1",
        summary="pipeline stages > 1 => zero_optimization.stage <= 1",
        why=(
            "PipelineEngine asserts it: gradients must stay whole over the micro-batches of a step, so sharding them"
            " would scatter them once a micro-batch. Asked every year since 2020."
        ),
        source="deepspeed runtime/pipe/engine.py PipelineEngine; deepspeedai/DeepSpeed issues 1629, 3589, 4164",
        check=_pipeline,
    ),
    Rule(
        code="DS102",
        name="A PipelineModule has at most ZeRO 1",
        summary="a pipeline block => zero_optimization.stage <= 1",
        why=(
            "The engine is chosen by the class of the model, not by the number of stages: Megatron-DeepSpeed builds"
            " GPTModelPipe, even with pipeline degree 1, unless --no-pipeline-parallel is given."
        ),
        source="deepspeedai/Megatron-DeepSpeed issue 474; deepspeed runtime/pipe/engine.py",
        check=_pipeline_module,
        severity=WARNING,
    ),
    Rule(
        code="DS103",
        name="AutoTP trains with ZeRO up to 2",
        summary="autotp_size > 1 => zero_optimization.stage <= 2",
        why=(
            "Before 0.19.4 DeepSpeed asserts it (0.19.3 allows ZeRO 3 for inference only), since checkpoints would have"
            " lost the tensor shards. The nested key tensor_parallel.tensor_parallel.tp_size does not get around it: it"
            " is another path (DS105)."
        ),
        source="deepspeedai/DeepSpeed issue 7389, pull requests 6922, 8167, 8168 (merged after 0.19.3)",
        check=_autotp_zero,
        since="0.16.4",
        until="0.19.4",
    ),
    Rule(
        code="DS104",
        name="AutoTP has no pipeline",
        summary="autotp_size > 1 => no pipeline stages",
        why="AutoTP brings its own groups of ranks, and a PipelineModule takes none from outside.",
        source="deepspeedai/DeepSpeed issue 7147; deepspeed/__init__.py initialize (mpu must be None)",
        check=_autotp_pipeline,
    ),
    Rule(
        code="DS105",
        name="The tensor degree stands where training reads it",
        summary="tensor_parallel.autotp_size, not tensor_parallel.tp.tp_size alone",
        why=(
            "tensor_parallel.tp (or tensor_parallel.tensor_parallel) is the block of inference. It passes validation,"
            " and trains without tensor parallelism."
        ),
        source=f"deepspeedai/DeepSpeed issue 7389; {ENGINE} _apply_autotp_partitioning",
        check=_other_path,
        caught=False,
    ),
    Rule(
        code="DS106",
        name="Degrees divide the world",
        summary="world % (autotp_size x sequence_parallel_size x pipeline stages) = 0",
        why=(
            "DeepSpeed divides the world by the degrees and rounds down: the ranks that are left over are in none of"
            " its groups, and wait for ever."
        ),
        source=f"deepspeed {VERSION}, deepspeed/utils/groups.py _init_tp_mesh_device",
        check=_world,
        caught=False,
    ),
    Rule(
        code="DS107",
        name="The mesh of Ulysses is the world",
        summary="data_parallel_size x sequence_parallel_size = world",
        why=(
            "deepspeed.initialize makes a mesh of these degrees. Where it is smaller than the world the other ranks are"
            " in none of its groups, where it is larger torch refuses it."
        ),
        source=f"deepspeed {VERSION}, deepspeed/__init__.py initialize",
        check=_mesh,
        caught=False,
    ),
    Rule(
        code="DS108",
        name="Ulysses has no pipeline",
        summary="sequence_parallel_size > 1 => no pipeline stages",
        why="deepspeed.initialize does not hand the mesh of sequence ranks to the pipeline engine.",
        source=f"deepspeed {VERSION}, deepspeed/__init__.py initialize",
        check=_sequence_pipeline,
        caught=False,
    ),
    Rule(
        code="DS109",
        name="Ulysses or AutoTP",
        summary="not both sequence_parallel_size > 1 and autotp_size > 1",
        why=(
            "AutoTP cuts the whole world into tensor and data ranks, Ulysses into sequence and data ranks: together"
            " gradients are averaged over the wrong ranks."
        ),
        source=f"deepspeed {VERSION}, deepspeed/utils/groups.py _init_tp_mesh_device; deepspeed/__init__.py initialize",
        check=_sequence_autotp,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="DS110",
        name="Ulysses has both degrees",
        summary="sequence_parallel_size > 1 => data_parallel_size",
        why=(
            "deepspeed.initialize makes the mesh only where both keys are there. With sequence_parallel_size alone the"
            " script must pass mpu, as Accelerate and Transformers do; without it no sequence is cut."
        ),
        source=f"deepspeed {VERSION}, deepspeed/__init__.py initialize",
        check=_half_mesh,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="DS111",
        name="Tensor degrees agree",
        summary="tensor_parallel.tp.tp_size is 1 or autotp_size",
        why="DeepSpeed raises a ValueError when it cuts the model.",
        source=f"{ENGINE} _apply_autotp_partitioning",
        check=_other_size,
    ),
)
