"""From a published run to a layout whose costs can be asked for, or the reason why not."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace

from planner.accuracy.degrees import run_degrees, written_layers
from planner.accuracy.machine import machines
from planner.accuracy.places import Place, find_places
from planner.accuracy.refusal import NotJudgedError
from planner.accuracy.run import Run
from planner.accuracy.shape import shape
from planner.costs.compute import matmul_peak
from planner.costs.kernels import ATTENTION_KERNELS, NORM_KERNELS
from planner.costs.split import stage_layers
from planner.costs.uniform import Kind, Uniform
from planner.domain.cluster import DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.plan import Strategy
from planner.domain.precision import PRECISIONS
from planner.errors import SpecError
from planner.specs import catalog

NEAREST = {
    "alpa": "megatron",
    "megatroncore": "megatron",
    "megatronlm": "megatron",
    "megatronbridge": "megatron",
    "nemo": "megatron",
    "internevo": "deepspeed",
    "llmfoundry": "fsdp",
    "torch": "fsdp",
    "nemoautomodel": "torchtitan",
}
"""Frameworks without a profile of this name, as `catalog.simple` writes them -> the profile that is nearest."""
NEEDED = ("layers", "hidden", "heads", "seq", "gpus", "mbs")

NARROW = frozenset(name for name, precision in PRECISIONS.items() if precision.narrow)


@dataclass(frozen=True, slots=True)
class Setting:
    """A layout of one run, in the form in which costs are asked for."""

    profile: str
    kind: Kind
    layout: Uniform
    """Of all stages; where they lie on unlike devices, its group is the first one's."""
    places: tuple[Place, ...] = ()
    """Where each stage lies, if the run is one on unlike devices; else nothing."""

    @property
    def groups(self) -> tuple[DeviceGroup, ...]:
        """What the stages lie on, each group once."""
        return tuple(dict.fromkeys(group for place in self.places for group in place.groups)) or (self.layout.group,)

    def changed(
        self, *, framework: Framework | None = None, group: Callable[[DeviceGroup], DeviceGroup] | None = None
    ) -> Setting:
        """Return the setting under another framework, and with what `group` returns of each of its groups."""
        other = group or (lambda same: same)
        layout = replace(self.layout, framework=framework or self.layout.framework, group=other(self.layout.group))
        places = tuple(replace(place, groups=tuple(map(other, place.groups))) for place in self.places)
        return replace(self, layout=layout, places=places)


def setting(run: Run) -> Setting:
    """Return what `run` ran.

    Raises:
        NotJudgedError: something that decides its time is unknown, or not modelled.

    """
    _refuse(run)
    framework, groups, model = _framework(run), _groups(run), shape(run)
    degrees = run_degrees(run)
    if degrees.stages > model.num_layers:
        raise NotJudgedError("more stages than layers")
    layers = written_layers(run, degrees.stages) or stage_layers(framework, model, degrees.stages)
    chunks = _chunks(run, degrees.stages, layers[0])
    places = find_places(run, groups, degrees, layers, chunks) if len(groups) > 1 else ()
    middle = layers[1:-1] or (1,)
    sequence_parallel = degrees.tensor > 1 and (framework.sequence_parallel if run.sp is None else run.sp == 1)
    return Setting(
        profile=framework.name,
        kind=Kind(
            zero_stage=_zero_stage(run, framework, degrees.stages),
            policy=_policy(run, framework),
            single_stage=degrees.stages == 1,
        ),
        layout=Uniform(
            model=model,
            job=Job(global_batch=1, sequence=model.max_sequence, precision=_precision(run, groups), framework=""),
            framework=replace(framework, name="", source=""),
            group=places[0].groups[0] if places else groups[0],
            strategy=Strategy(
                degrees=(("tp", degrees.tensor), ("cp", degrees.context)), sequence_parallel=sequence_parallel
            ),
            micro_batch=degrees.micro_batch,
            num_replicas=degrees.replicas,
            num_microbatches=degrees.num_microbatches,
            num_stages=degrees.stages,
            virtual_stages=chunks,
            first_layers=layers[0],
            second_layers=middle[0],
            middle_layers=max(middle),
            middle_place=1 + middle.index(max(middle)),
            last_layers=layers[-1],
        ),
        places=places,
    )


def _refuse(run: Run) -> None:
    missing = [name for name in NEEDED if getattr(run, name) is None]
    if missing:
        raise NotJudgedError(f"no {missing[0]}")
    if (run.hidden or 0) % (run.heads or 1):
        raise NotJudgedError("heads do not divide hidden")
    unknown = [f"{name} {word}" for name, word, words in _words(run) if word not in words]
    if unknown:
        raise NotJudgedError(f"unknown {unknown[0]}")
    if run.moe_experts:
        raise NotJudgedError("experts are not modelled")
    if "lora" in run.model.lower():
        raise NotJudgedError("adapters (LoRA) are not modelled")


def _words(run: Run) -> tuple[tuple[str, str, Container[str]], ...]:
    """Return each column of words with its word and those that mean something; an empty word means not known."""
    return (
        ("recompute", run.recompute, ("", "none", "selective", "full")),
        ("schedule", run.schedule, ("", "1f1b", "interleaved")),
        ("attention_kernel", run.attention_kernel, ("", *ATTENTION_KERNELS)),
        ("norm_kernel", run.norm_kernel, ("", *NORM_KERNELS)),
    )


def _framework(run: Run) -> Framework:
    """Return the profile of the run's framework, with the kernels that the run names.

    Where it names none: training in fp16 is older than fused attention, and recomputing the core of attention saves
    something only where it is not fused. Runs of Megatron in 8 bits and less are those of NVIDIA's performance
    recipes, whose gradients are bf16 (``grad_reduce_in_fp32=False`` in NeMo and Megatron-Bridge).
    """
    try:
        framework = catalog.framework(NEAREST.get(catalog.simple(run.framework), run.framework))
    except SpecError as error:
        known = ", ".join(one.name for one in catalog.frameworks())
        what = f"no profile of framework {run.framework}" if run.framework else "no framework"
        raise NotJudgedError(f"{what}; known are {known}") from error
    if run.attention_kernel in ATTENTION_KERNELS:
        framework = replace(framework, attention_kernel=run.attention_kernel)
    elif run.precision == "fp16" or "core_attn" in run.recompute_modules:
        framework = replace(framework, attention_kernel="fused-softmax")
    if run.norm_kernel in NORM_KERNELS:
        framework = replace(framework, norm_kernel=run.norm_kernel)
    if run.grad_bytes is not None:
        framework = replace(framework, gradient_bytes=run.grad_bytes)
    elif framework.name == "megatron" and run.precision in NARROW:
        framework = replace(framework, gradient_bytes=2)
    return framework


def _groups(run: Run) -> tuple[DeviceGroup, ...]:
    """Return the groups of devices, one of each kind."""
    try:
        return machines(run)
    except SpecError as error:
        raise NotJudgedError(f"device not in the catalogue: {run.gpu or 'none given'}") from error


def _precision(run: Run, groups: Sequence[DeviceGroup]) -> str:
    precision = run.precision or ("bf16" if all(group.device.peak("bf16") for group in groups) else "fp16")
    for group in groups:
        if precision not in PRECISIONS or not matmul_peak(group.device, precision):
            raise NotJudgedError(f"{group.device.name} has no {precision}")
    return precision


def _policy(run: Run, framework: Framework) -> str:
    """Return the recompute policy; what is selective depends on the framework, unless the run names its modules."""
    if run.recompute == "selective":
        return "selective" if "core_attn" in run.recompute_modules else framework.selective
    return "full" if run.recompute == "full" else "none"


def _zero_stage(run: Run, framework: Framework, stages: int) -> int:
    if run.zero is not None:
        return run.zero
    usual = framework.can.zero_stages_pipeline if stages > 1 else framework.can.zero_stages
    return 1 if 1 in usual or not usual else max(usual)


def _chunks(run: Run, stages: int, layers: int) -> int:
    """Return the chunks of a rank: the fewest that its layers allow, where a run does not say how often it is cut."""
    if stages == 1:
        return 1
    fewest = next((chunks for chunks in range(2, layers + 1) if layers % chunks == 0), 2)
    return run.vpp or (fewest if run.schedule == "interleaved" else 1)
