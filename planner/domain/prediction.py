"""What is predicted of a plan, and what the search proved about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.domain.confidence import Confidence
from planner.domain.plan import Plan

FORWARD_BACKWARD, OPTIMIZER_CREATION, OPTIMIZER_STEP = "forward_backward", "optimizer_creation", "optimizer_step"
PEAK_WORDS = {
    FORWARD_BACKWARD: "forward/backward",
    OPTIMIZER_CREATION: "optimizer creation",
    OPTIMIZER_STEP: "optimizer step",
}
"""Peak of a stage's memory -> how it is written, in the order in which a run meets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePrediction:
    """Time and memory of one stage."""

    forward: float
    """[s] of one micro-batch."""
    backward: float
    """[s] of one micro-batch, recompute included."""
    sync: float
    """[s] of a step: the exposed gradient exchange, the optimizer, and weights that are predicted."""
    memory: tuple[tuple[str, float], ...]
    """[bytes] on the fullest device at its largest peak, by part."""
    peaks: tuple[tuple[str, float], ...]
    """[bytes] of each peak: a name of `PEAK_WORDS`, in its order."""
    memory_limit: float
    """[bytes] device memory less the head-room."""
    device_memory: float
    """[bytes]"""
    in_flight: float
    """Micro-batches whose activations are held at once."""

    @property
    def time(self) -> float:
        """[s] of one micro-batch, forward and backward."""
        return self.forward + self.backward

    @property
    def peak_memory(self) -> float:
        """[bytes]"""
        return sum(size for _, size in self.memory)

    @property
    def peak_at(self) -> str:
        """Name of the largest peak, the first of equal ones."""
        return max(self.peaks, key=lambda peak: peak[1])[0]

    @property
    def pressure(self) -> float:
        """[-] peak over the whole memory of the device."""
        return self.peak_memory / self.device_memory

    @property
    def fits(self) -> bool:
        """Whether the peak stays within the limit."""
        return self.peak_memory <= self.memory_limit


def busiest_stage(plan: Plan, stages: Sequence[StagePrediction]) -> int:
    """Return which of the `stages` of all kinds of pipelines works longest in a step of `plan`, the first of equals.

    Work is passes: what a stage waits for, be it others or what it sends, is none.
    """
    times = [one.num_microbatches for one in plan.pipelines for _ in one.stages]
    return max(range(len(stages)), key=lambda index: times[index] * stages[index].time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Time and memory of a plan."""

    step_time: float
    """[s] of one optimizer step."""
    tokens_per_second: float
    samples_per_second: float
    num_devices: int
    model_flops_utilization: float
    """[-] model FLOP over the 16-bit peak of the devices in use."""
    bubble_fraction: float
    """[-] idle share of the pipeline's compute lanes between the first and the last pass; waiting for what was sent is
    idling."""
    time: tuple[tuple[str, float], ...]
    """[s] of the step by part, on its busiest stage; the parts sum to the step time."""
    stages: tuple[StagePrediction, ...]
    confidence: Confidence | None = None
    """How far it can be trusted; None where nobody asked."""

    @property
    def peak_memory(self) -> float:
        """[bytes] of the fullest device."""
        return max(stage.peak_memory for stage in self.stages)

    @property
    def fits(self) -> bool:
        """Whether every stage stays within its memory limit."""
        return all(stage.fits for stage in self.stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What the search proved."""

    objective: float
    """[s] of the plan in the program's own measure."""
    lower_bound: float
    """[s] below which no plan's objective lies."""
    replay_lower_bound: float
    """[s] below which no plan's replayed step time lies."""

    @property
    def gap(self) -> float:
        """[-] distance between the plan and the bound."""
        return max(0.0, (self.objective - self.lower_bound) / self.objective)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A runner-up, and why it lost."""

    plan: Plan
    prediction: Prediction
    objective: float
    """[s]"""
    lost_because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What puts a plan's step time in context."""

    flops_step_time: float
    """[s] with all devices at their peak and perfect overlap."""
    homogeneous_step_time: float
    """[s] if the groups' best rates on their own added up; zero if it was not computed."""
    homogeneous_reference: str
    """``exact``, or ``relaxed`` if a group could not hold the model alone; empty if not computed."""
    whole_layer_ceiling: float
    """[-] the ratio to the homogeneous reference that whole layers alone allow; zero if not computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReport:
    """How the search went."""

    status: str
    """``optimal``, ``within_gap``, ``time_limit`` or ``interrupted``."""
    seconds: float
    subproblems: int
    pruned: int
    solved: int
    rejections: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A plan with everything that was found out about it."""

    plan: Plan
    prediction: Prediction
    certificate: Certificate
    search: SearchReport
    alternatives: tuple[Alternative, ...]
    references: References | None = None
