"""Megatron-LM: the arguments of ``pretrain_gpt.py``, and the variables that they depend on."""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain.plan import Plan
from planner.errors import CannotExpress
from planner.export.base import Exporter, Part, Program
from planner.export.megatron_model import Line, flags, refused, vocabulary_refused
from planner.export.megatron_recompute import block_layers
from planner.specs.plan import PlanFile

NAME = "megatron"
SCRIPT = "pretrain_gpt.py"
SHARDED = {2: "optim_grads", 3: "optim_grads_params"}
"""ZeRO stages that only Megatron-FSDP has -> its strategy."""
PRECISION: dict[str, tuple[Line, ...]] = {
    "bf16": (("--bf16",),),
    "fp16": (("--fp16",),),
    "fp32": (),
    "fp8": (("--bf16",), ("--fp8-format", "hybrid"), ("--fp8-recipe", "tensorwise")),
    "mxfp8": (("--bf16",), ("--fp8-format", "e4m3"), ("--fp8-recipe", "mxfp8")),
    "nvfp4": (("--bf16",), ("--fp4-format", "e2m1"), ("--fp4-recipe", "nvfp4")),
}
OPTIMIZERS: dict[str, tuple[Line, ...]] = {
    "": (),
    "adam-fp32-states": (),
    "adam-bf16-states": (
        ("--use-precision-aware-optimizer",),
        ("--exp-avg-dtype", "bf16"),
        ("--exp-avg-sq-dtype", "bf16"),
    ),
    "sgd-momentum": (("--optimizer", "sgd"),),
}
"""Recipes that it has -> their flags."""
OTHER_ORDER = "tp-cp-pp-dp"
CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"


def _parts(file: PlanFile) -> tuple[Part, ...]:
    lines, environment = _lines(file), _environment(file.plan)
    named = "".join(f"{name}={value}\n" for name, value in environment)
    return (
        Part(name="arguments.txt", text="".join(" ".join(line) + "\n" for line in lines)),
        Part(name="environment.env", text=_HEAD.format(script=SCRIPT, padded=_rows(file)) + named),
    )


def _program(file: PlanFile) -> Program:
    words = [word for line in _lines(file) for word in line]
    return Program(command=(SCRIPT, *words), environment=_environment(file.plan))


def _lines(file: PlanFile) -> list[Line]:
    """Return the flags, a line each.

    Raises:
        CannotExpress: with every reason.
    """
    reasons = [*refused(file), *vocabulary_refused(file, _tensor(file.plan)), *_refused(file)]
    if reasons:
        raise CannotExpress(NAME, reasons)
    plan = file.plan
    lines = [*flags(file, _tensor(plan)), ("--seq-length", str(file.job.sequence))]
    lines += [*_degrees(file), *_stages(plan), *_batch(plan), *_sharding(plan), *_recompute(plan)]
    optimizer = file.job.optimizer.name if file.job.optimizer else ""
    return [*lines, *PRECISION[file.job.precision], *OPTIMIZERS[optimizer]]


def _refused(file: PlanFile) -> Iterator[str]:
    """Yield why plan or job cannot be said."""
    plan, job = file.plan, file.job
    if job.precision not in PRECISION:
        yield f"pretrain_gpt.py has no flags for precision {job.precision}"
    name = job.optimizer.name if job.optimizer else ""
    if name not in OPTIMIZERS:
        yield f"pretrain_gpt.py has no flags for the optimizer recipe {name}"
    elif OPTIMIZERS[name][:1] == (("--use-precision-aware-optimizer",),) and plan.zero_stage == 0:
        yield f"the optimizer recipe {name} needs the distributed optimizer (ZeRO 1)"
    if any(stage.recompute == "op" for stage in plan.stages):
        yield "recompute of single operators (op) is none of Megatron's policies"
    counts = {(stage.recompute, stage.num_recomputed, stage.num_layers) for stage in plan.stages}
    if any(kind != "none" and 0 < number < held for kind, number, held in counts):
        yield "full recompute of some layers goes with none of the others, not with selective recompute of them"
    if block_layers(plan) == 0:
        numbers = " or ".join(str(number) for number in sorted({stage.num_recomputed for stage in plan.stages}))
        yield (
            f"--recompute-num-layers counts layers of each chunk, and no number comes to {numbers} recomputed layers of"
            f" a stage with {plan.virtual_stages} chunks; ask for recompute != full, or another vpp"
        )


def _tensor(plan: Plan) -> int:
    return plan.stages[0].strategy.degree("tp")


def _context(plan: Plan) -> int:
    return plan.stages[0].strategy.degree("cp")


def _is_fsdp(plan: Plan) -> bool:
    """Return whether weights and gradients are sharded, which only Megatron-FSDP does, and no pipeline has."""
    return plan.zero_stage in SHARDED and plan.num_stages == 1


def _degrees(file: PlanFile) -> Iterator[Line]:
    """Yield the degrees; that of data parallelism is what the ranks leave.

    Experts would take the tensor degree. In the other order Megatron wants as many replicas of experts as of everything
    else, of dense models too (parallel_state.py), so that the context ranks count as tensor ranks of experts.
    """
    from planner.placement import place

    plan, strategy = file.plan, file.plan.stages[0].strategy
    yield "--tensor-model-parallel-size", str(_tensor(plan))
    if strategy.sequence_parallel and _tensor(plan) > 1:
        yield ("--sequence-parallel",)
    yield "--pipeline-model-parallel-size", str(plan.num_stages)
    yield "--context-parallel-size", str(_context(plan))
    if _context(plan) > 1:
        yield "--cp-comm-type", strategy.cp_comm_type
    yield "--expert-model-parallel-size", "1"
    other = plan.num_stages > 1 and place(plan, file.cluster, file.model, file.job).order == OTHER_ORDER
    yield "--expert-tensor-parallel-size", str(_tensor(plan) * (_context(plan) if other else 1))
    if other:
        yield ("--use-tp-pp-dp-mapping",)


def _stages(plan: Plan) -> Iterator[Line]:
    """Yield how layers are cut into stages, by the simplest flags that say it."""
    if plan.microbatch_group:
        yield "--microbatch-group-size-per-virtual-pipeline-stage", str(plan.microbatch_group)
    sizes = [stage.chunk_sizes for stage in plan.stages]
    if len({size for stage in sizes for size in stage}) == 1:
        if plan.virtual_stages > 1:
            yield "--num-layers-per-virtual-pipeline-stage", str(sizes[0][0])
        return
    layers = [stage.num_layers for stage in plan.stages]
    first, *middle, last = layers
    if plan.virtual_stages > 1 or len(set(middle)) > 1:
        yield "--pipeline-model-parallel-layout", _layout(sizes)
        return
    usual = middle[0] if middle else first
    if first != usual:
        yield "--decoder-first-pipeline-num-layers", str(first)
    if last != usual:
        yield "--decoder-last-pipeline-num-layers", str(last)


def _layout(sizes: list[tuple[int, ...]]) -> str:
    """Return the layers of all chunks, written out: brackets and stars would be the shell's."""
    flat = [stage[chunk] for chunk in range(len(sizes[0])) for stage in sizes]
    return "E" + "|".join("t" * size for size in flat) + "L"


def _batch(plan: Plan) -> Iterator[Line]:
    yield "--micro-batch-size", str(plan.micro_batch)
    yield "--global-batch-size", str(plan.global_batch)


def _sharding(plan: Plan) -> Iterator[Line]:
    """Yield what is sharded over the replicas, and what is overlapped with it."""
    yield ("--overlap-grad-reduce",)
    if plan.zero_stage == 0:
        return
    yield ("--use-distributed-optimizer",)
    yield ("--overlap-param-gather",)
    if _is_fsdp(plan):
        yield ("--use-megatron-fsdp",)
        yield "--data-parallel-sharding-strategy", SHARDED[plan.zero_stage]
        yield "--ckpt-format", "fsdp_dtensor"
        yield ("--no-gradient-accumulation-fusion",)


def _recompute(plan: Plan) -> Iterator[Line]:
    if all(stage.num_recomputed == stage.num_layers for stage in plan.stages):
        yield "--recompute-granularity", "full"
        yield "--recompute-method", "uniform"
        yield "--recompute-num-layers", "1"
    elif number := block_layers(plan):
        yield "--recompute-granularity", "full"
        yield "--recompute-method", "block"
        yield "--recompute-num-layers", str(number)
    elif plan.stages[0].recompute == "selective":
        yield "--recompute-granularity", "selective"
        yield "--recompute-modules", "core_attn"


def _environment(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return the variables: one queue of kernels orders transfers before products, and FSDP must not have it."""
    wants = (_tensor(plan) > 1 or _context(plan) > 1) and not _is_fsdp(plan)
    return ((CONNECTIONS, "1"),) if wants else ()


def _rows(file: PlanFile) -> str:
    spec, tensor = dict(file.model.spec), _tensor(file.plan)
    padded = spec.get("vocab_size_padded") or -(-int(str(spec["vocab_size"])) // (128 * tensor)) * 128 * tensor
    return f"{padded:,}"


_HEAD = """\
# Variables that every rank of {script} needs for this plan.
# Yours to add to its arguments: tokenizer (its vocabulary padded: {padded} rows), data, --train-iters, learning rate,
# --save and --load.
"""

MEGATRON = Exporter(
    name=NAME,
    summary="Megatron-LM: arguments of pretrain_gpt.py, and its environment",
    parts=_parts,
    framework=NAME,
    program=_program,
)
