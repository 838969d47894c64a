"""From a published run to a layout whose costs can be asked for, or the reason why not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from planner.accuracy.machine import machine
from planner.accuracy.run import Run
from planner.accuracy.shape import shape
from planner.costs.compute import matmul_peak
from planner.costs.kernels import ATTENTION_KERNELS, NORM_KERNELS
from planner.costs.split import balanced_split, cumulative_split, equal_split
from planner.costs.uniform import Kind, Uniform
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Strategy
from planner.domain.precision import PRECISIONS
from planner.errors import SpecError
from planner.specs import catalog

NEAREST = {"alpa": "megatron", "internevo": "deepspeed", "ddp": "fsdp", "torch": "fsdp", "nemo-automodel": "torchtitan"}
"""Frameworks without a profile -> the profile that is nearest."""
NEEDED = ("layers", "hidden", "heads", "seq", "gpus", "mbs")


class NotJudgedError(Exception):
    """A run that cannot be judged; the text says why."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A layout of one run, in the form in which costs are asked for."""

    profile: str
    kind: Kind
    layout: Uniform


def setting(run: Run) -> Setting:
    """Return what `run` ran.

    Raises:
        NotJudgedError: something that decides its time is unknown, or not modelled.

    """
    _refuse(run)
    framework = _framework(run)
    model = shape(run)
    try:
        group = machine(run)
    except SpecError as error:
        raise NotJudgedError(f"device not in the catalogue: {run.gpu or 'none given'}") from error
    precision = run.precision or ("bf16" if group.device.peak("bf16") else "fp16")
    if precision not in PRECISIONS or not matmul_peak(group.device, precision):
        raise NotJudgedError(f"{group.device.name} has no {precision}")
    tensor, stages, context = int(run.tp or 1), int(run.pp or 1), int(run.cp or 1)
    replicas = int(run.dp or int(run.gpus) // (tensor * stages * context))
    if tensor * stages * context * replicas != run.gpus:
        raise NotJudgedError("tp x pp x cp x dp is not the number of devices")
    batch, micro = run.gbs or (run.mbs * replicas if stages == 1 else None), int(run.mbs)
    if batch is None:
        raise NotJudgedError("no global batch")
    num_microbatches = batch / (micro * replicas)
    if num_microbatches != int(num_microbatches):
        raise NotJudgedError("the global batch is no multiple of micro-batch times replicas")
    layers = _split(run, model, framework, stages)
    sequence_parallel = tensor > 1 and (framework.sequence_parallel if run.sp is None else bool(run.sp))
    return Setting(
        profile=framework.name,
        kind=Kind(
            zero_stage=_zero_stage(run, framework, stages),
            policy=_policy(run),
            single_stage=stages == 1,
        ),
        layout=Uniform(
            model=model,
            job=Job(global_batch=1, sequence=int(run.seq), precision=precision, framework=""),
            framework=replace(framework, name="", source="", can=None),
            group=group,
            strategy=Strategy(degrees=(("tp", tensor), ("cp", context)), sequence_parallel=sequence_parallel),
            micro_batch=micro,
            num_replicas=replicas,
            num_microbatches=int(num_microbatches),
            num_stages=stages,
            virtual_stages=_chunks(run, stages),
            first_layers=layers[0],
            middle_layers=max(layers[1:-1], default=1),
            last_layers=layers[-1],
        ),
    )


def _refuse(run: Run) -> None:
    missing = [name for name in NEEDED if getattr(run, name) is None]
    if missing:
        raise NotJudgedError(f"no {missing[0]}")
    if run.moe_experts:
        raise NotJudgedError("experts are not modelled")
    if "+" in run.gpu:
        raise NotJudgedError("unlike devices: the layout's placement is not in the columns")


def _framework(run: Run) -> Framework:
    name = NEAREST.get(run.framework, run.framework)
    try:
        framework = catalog.framework(name)
    except SpecError as error:
        raise NotJudgedError(f"framework without a profile: {run.framework or 'none given'}") from error
    if run.attention_kernel in ATTENTION_KERNELS:
        framework = replace(framework, attention_kernel=run.attention_kernel)
    elif run.recompute == "selective" and "core_attn" in run.recompute_modules:
        framework = replace(framework, attention_kernel="fused-softmax")
    if run.norm_kernel in NORM_KERNELS:
        framework = replace(framework, norm_kernel=run.norm_kernel)
    if run.grad_bytes:
        framework = replace(framework, gradient_bytes=run.grad_bytes)
    return framework


def _policy(run: Run) -> str:
    return run.recompute if run.recompute in {"full", "selective"} else "none"


def _zero_stage(run: Run, framework: Framework, stages: int) -> int:
    if run.zero is not None:
        return int(run.zero)
    usual = framework.can.zero_stages_pipeline if stages > 1 else framework.can.zero_stages
    return 1 if 1 in usual or not usual else max(usual)


def _chunks(run: Run, stages: int) -> int:
    if stages == 1:
        return 1
    return int(run.vpp or (2 if run.schedule == "interleaved" else 1))


def _split(run: Run, model: Model, framework: Framework, stages: int) -> tuple[int, ...]:
    """Return the layers of each stage, as the run or the framework's habit says."""
    if stages > model.num_layers:
        raise NotJudgedError("more stages than layers")
    body = model.body.parameters
    weights = {"embedding": model.embedding.parameters / body, "head": model.embedding.parameters / body}
    first, last = (weights[end] if end in framework.split_counts else 0.0 for end in ("embedding", "head"))
    if framework.stage_split == "equal" or stages == 1:
        return equal_split(model.num_layers, stages)
    split = balanced_split if framework.stage_split == "balanced" else cumulative_split
    return split(model.num_layers, stages, first, last)
