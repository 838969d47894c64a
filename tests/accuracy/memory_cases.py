"""The runs of memory_cases.yaml: predicted as ``planner predict --layout`` does, and compared with what happened."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from planner.costs import plan_cost
from planner.domain.model import Model
from planner.parallelism import AXES
from planner.pipeline import plan_from_layout, predict_plan
from planner.specs import catalog
from planner.specs.cluster import read_cluster
from planner.specs.job import read_job
from planner.specs.layout import parse_layout
from planner.specs.model import model_from_record, read_model
from planner.units import GBYTE, GIB

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("memory_cases.yaml")
TOLERANCE = 0.15
"""[-] of a figure."""
_PREDICTED = re.compile(r"(?<=predicted: )[0-9.]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one stage is predicted to hold on its fullest device."""

    memory: Mapping[str, float]
    """[bytes] by part."""
    num_layers: int
    device_memory: float
    """[bytes]"""

    @property
    def peak(self) -> float:
        """[bytes]"""
        return sum(self.memory.values())


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a case, as written."""

    case: str
    written: Mapping[str, Any]
    model: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Case and run."""
        return f"{self.case}: {self.written['name']}"

    @property
    def figure(self) -> Mapping[str, Any]:
        """What was measured; of an outcome alone, the peak that it is judged by."""
        found: Mapping[str, Any] = self.written.get("figure", {"unit": "GiB", "of": "peak"})
        return found

    @property
    def outcome(self) -> str:
        """``ran`` or ``oom``, empty if it is not known: whose peak over all stages was measured ran."""
        whole = self.figure["of"] == "peak" and "stage" not in self.figure
        return str(self.written.get("outcome", "ran" if whole else ""))


MEASURES: Mapping[str, Callable[[Held], float]] = {
    "peak": lambda held: held.peak,
    "allocated": lambda held: held.peak - held.memory["outside_allocator"],
    "activations": lambda held: held.memory["activations"],
    "activations_each": lambda held: held.memory["activations"] / held.num_layers,
}
"""What a figure is of -> [bytes] of a stage."""
UNITS: Mapping[str, Callable[[float, Held], float]] = {
    "GiB": lambda size, _: size / GIB,
    "GB": lambda size, _: size / GBYTE,
    "percent": lambda size, held: 100 * size / held.device_memory,
}


@cache
def table() -> Mapping[str, Any]:
    """Return the whole file."""
    found = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def runs() -> list[Run]:
    """Return every judged run, in the order of the file."""
    models = table()["models"]
    return [Run(case["id"], run, models[run["model"]]) for case in table()["judged"] for run in case["runs"]]


def predicted(run: Run) -> float:
    """Return what the planner says of the run's figure, in the figure's unit."""
    stages, figure = held(run), run.figure
    of = MEASURES[figure["of"]]
    if figure["unit"] == "ratio":
        return of(stages[figure["stage"]]) / of(stages[figure["over"]])
    stage = stages[figure["stage"]] if "stage" in figure else max(stages, key=of)
    return UNITS[figure["unit"]](of(stage), stage)


def held(run: Run) -> Sequence[Held]:
    """Predict the run, by the same functions as the command line; a changed profile goes to the costs directly."""
    layout = parse_layout(run.written["layout"], axes=tuple(axis.name for axis in AXES))
    cluster, model = read_cluster(run.written["cluster"]), _model(run)
    given = {
        "global_batch": layout.gbs,
        "sequence_length": layout.seq,
        "framework": layout.framework,
        "headroom": 0.0,
        **run.written["options"],
    }
    plan, job = plan_from_layout(layout, cluster, model, read_job(None, given, model, cluster)[0])
    assert plan.num_devices == cluster.num_devices, f"{run.name} leaves devices out"
    prediction, _ = predict_plan(plan, cluster, model, job)
    memories = [stage.memory for stage in prediction.stages]
    if "profile" in run.written:
        framework = replace(catalog.framework(job.framework), **run.written["profile"])
        memories = [stage.memory for stage in plan_cost(plan, cluster, model, job, framework).stages]
    return [
        Held(
            memory=dict(memory),
            num_layers=stage.num_layers,
            device_memory=cluster.group(stage.group).device.memory,
        )
        for memory, stage in zip(memories, plan.stages, strict=True)
    ]


def _model(run: Run) -> Model:
    if "record" in run.model:
        return model_from_record({"name": run.written["model"], **run.model["record"]}, str(TABLE))
    return read_model(str(ROOT / run.model["source"]))


def faults(run: Run, value: float) -> dict[str, float]:
    """Return what is wrong with a prediction -> by how much [-]; empty if it is met.

    A figure is wrong by its error. An outcome is wrong by what the peak lies above or below the device's memory.
    """
    found, figure = {}, run.figure
    if "value" in figure and abs(value / figure["value"] - 1) > TOLERANCE:
        found["figure"] = abs(value / figure["value"] - 1)
    if run.outcome:
        memory = read_cluster(run.written["cluster"]).groups[0].device.memory
        share = value * {"GiB": GIB, "GB": GBYTE}[figure["unit"]] / memory
        if (share <= 1) != (run.outcome == "ran"):
            found["outcome"] = abs(share - 1)
    return found


def rewritten(text: str, values: Sequence[float]) -> str:
    """Return the text of the file with other predictions, in the order of its runs."""
    assert len(_PREDICTED.findall(text)) == len(values), "one prediction a run"
    following = iter(values)
    return _PREDICTED.sub(lambda _: f"{next(following):.4g}", text)
