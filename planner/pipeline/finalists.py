"""The last choice: the program's best plans, ranked by their replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.domain.plan import Plan
from planner.domain.prediction import Prediction, busiest_stage
from planner.report.figures import words
from planner.units import NANOSECOND

TICK = 2 * NANOSECOND
"""[s] what the bound and the objective of the best plan may differ by: the search looks for less than the best."""
CLEARLY = 0.01
"""[-] by which a replayed step must be shorter at least to go before the proof."""
PREFERRED: tuple[Callable[[Plan], bool], ...] = (
    lambda plan: plan.is_uniform,
    lambda plan: plan.has_even_replicas,
    lambda plan: not plan.other_pipelines,
)
"""What is preferred within the gap, the simplest plans first."""
WAITING = ("pipeline_bubble", "sync", "step_overhead")
"""Parts of a step beside a stage's own passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalist:
    """A plan of the program, replayed."""

    plan: Plan
    objective: float
    """[s] in the program's measure."""
    prediction: Prediction

    @property
    def shape(self) -> tuple[object, ...]:
        """What a reader would call the same layout."""
        return tuple(_shape(pipeline) for pipeline in self.plan.pipelines)


def _shape(plan: Plan) -> tuple[object, ...]:
    """Return the same of one kind of pipeline."""
    widths = tuple(sorted({(stage.group, stage.strategy, stage.split) for stage in plan.stages}, key=str))
    return (
        plan.num_stages,
        plan.num_replicas,
        plan.micro_batch,
        plan.zero_stage,
        plan.schedule,
        plan.virtual_stages,
        widths,
    )


def choose(finalists: Sequence[Finalist], bound: float, gap: float) -> Finalist:
    """Return the plan to propose, from finalists sorted by replayed step time.

    The fastest of those that are within the wanted gap of the proved `bound` [s]; of all, where another one's replay is
    clearly faster: the measure of the proof is the coarser one. Within the gap of the fastest a uniform layout is
    preferred: every framework can run it, and people can read it. Next come replicas that are the same in all, and
    copies of one pipeline.
    """
    proved = [finalist for finalist in finalists if finalist.objective * (1 - gap) <= bound + TICK]
    most = finalists[0].prediction.step_time * (1 + max(gap, CLEARLY))
    able = proved if proved and proved[0].prediction.step_time <= most else finalists
    for preferred in PREFERRED:
        for finalist in able:
            close = finalist.prediction.step_time <= finalists[0].prediction.step_time * (1 + gap)
            if close and preferred(finalist.plan):
                return finalist
    return able[0]


def lost_because(winner: Finalist, other: Finalist) -> str:
    """Return in a few words what makes the other plan slower, or why it lost though it is not."""
    if other.prediction.step_time <= winner.prediction.step_time:
        as_good = other.objective <= winner.objective + TICK
        return "no slower, but its layout is less uniform" if as_good else "slower in the measure that is proved"
    ours, theirs = _comparable(winner, other), _comparable(other, winner)
    worse = {part: theirs.get(part, 0.0) - ours.get(part, 0.0) for part in {*ours, *theirs}}
    part = max(sorted(worse), key=lambda name: worse[name])
    return f"{words(part)} +{worse[part] / winner.prediction.step_time:.1%}"


def _comparable(finalist: Finalist, beside: Finalist) -> dict[str, float]:
    """Return the step [s] by part; passes are one part where the busiest stages of the two sit on unlike groups."""
    parts = dict(finalist.prediction.time)
    if _busiest_group(finalist) == _busiest_group(beside):
        return parts
    waiting = {name: seconds for name, seconds in parts.items() if name in WAITING}
    return {**waiting, "busiest stage": sum(parts.values()) - sum(waiting.values())}


def _busiest_group(finalist: Finalist) -> str:
    return finalist.plan.all_stages[busiest_stage(finalist.plan, finalist.prediction.stages)].group
