"""The table of stages: who runs which layers, cut how, how long, and how full; alike neighbours share a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.domain.cluster import Cluster
from planner.domain.plan import CP_COMM_TYPES, Plan, Stage
from planner.domain.prediction import Prediction, StagePrediction
from planner.report.figures import count, gib, milliseconds
from planner.report.layout import WIDTH, bar, cut, table

CELLS = range(4, 11)
"""[columns] that a memory bar may take; where there is not room for the least there is none."""
NAME = 16
"""[columns] that the name of a group may take."""
CHUNKS = 2
"""Chunks of a stage whose layers are written out; of more the first ones and the last."""
ROWS = 40
"""Rows of a table that has unlike stages only; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Run:
    """Alike stages that follow one another."""

    first: int
    stages: tuple[Stage, ...]
    predictions: tuple[StagePrediction, ...]

    @property
    def fullest(self) -> StagePrediction:
        """The stage that comes closest to its limit."""
        return max(self.predictions, key=lambda stage: stage.peak_memory / stage.memory_limit)


def runs(plan: Plan, prediction: Prediction) -> list[Run]:
    """Return the stages in runs of the same group, layers, strategy, recompute and time; memory may differ."""
    found: list[Run] = []
    for index, (stage, predicted) in enumerate(zip(plan.stages, prediction.stages, strict=True)):
        last = found[-1] if found else None
        if last and _alike(stage, predicted) == _alike(last.stages[-1], last.predictions[-1]):
            found[-1] = Run(last.first, (*last.stages, stage), (*last.predictions, predicted))
        else:
            found.append(Run(index, (stage,), (predicted,)))
    return found


def stage_table(plan: Plan, prediction: Prediction, cluster: Cluster, width: int = WIDTH) -> list[str]:
    """Return the lines of the table."""
    found = runs(plan, prediction)
    cut_by = axes(plan)
    head = ["stage", "group", "nodes", "devices", "layers", "each", *cut_by, "recompute", "fwd+bwd ms", "memory GiB"]
    flush = ",".join(["nodes", "devices", "each", *cut_by, "fwd+bwd ms"])
    rows = [[*_cells(run, plan, cluster, cut_by), _memory(run, 0)] for run in found[:ROWS]]
    room = width - max(map(len, table(head, rows, right=flush))) - 1
    cells = min(room, CELLS[-1]) if room >= CELLS[0] else 0
    lines = table(head, [[*row[:-1], _memory(run, cells)] for row, run in zip(rows, found, strict=False)], right=flush)
    if len(found) > ROWS:
        lines.append(f"... and {len(found) - ROWS} more rows; --format json has them all")
    return lines


def axes(plan: Plan) -> list[str]:
    """Return the axes to be shown: the tensor axis, and others that cut a stage."""
    used = [axis for stage in plan.stages for axis, degree in stage.strategy.degrees if degree > 1]
    return list(dict.fromkeys(["tp", *used]))


def _alike(stage: Stage, predicted: StagePrediction) -> tuple[object, ...]:
    """Return what must be the same of two stages in one row."""
    return (
        stage.group,
        stage.chunk_sizes,
        stage.strategy,
        stage.recompute,
        stage.num_recomputed,
        milliseconds(predicted.forward),
        milliseconds(predicted.backward),
        predicted.fits,
    )


def _cells(run: Run, plan: Plan, cluster: Cluster, cut_by: Sequence[str]) -> list[str]:
    """Return the cells of a row but for the memory; figures are those of one of its stages."""
    stage, last, predicted = run.stages[0], run.stages[-1], run.predictions[0]
    num_devices = plan.num_replicas * stage.strategy.num_devices
    per_node = cluster.group(stage.group).devices_per_node
    several = len(run.stages) > 1
    return [
        f"{run.first}-{run.first + len(run.stages) - 1} x{len(run.stages)}" if several else str(run.first),
        cut(stage.group, NAME),
        f"{num_devices / per_node:.3g}" if num_devices % per_node else count(num_devices // per_node),
        count(num_devices),
        _layers(stage, last),
        str(stage.num_layers),
        *(_degree(stage, axis) for axis in cut_by),
        recompute(stage),
        f"{milliseconds(predicted.forward)} + {milliseconds(predicted.backward)}",
    ]


def _degree(stage: Stage, axis: str) -> str:
    """Return how often `axis` cuts, and how context ranks exchange where it is not the usual way."""
    degree, kind = stage.strategy.degree(axis), stage.strategy.cp_comm_type
    return f"{degree} {kind}" if axis == "cp" and degree > 1 and kind != CP_COMM_TYPES[0] else str(degree)


def degrees(plan: Plan, axis: str) -> str:
    """Return how often `axis` cuts the stages, unlike ones after one another."""
    return "/".join(dict.fromkeys(_degree(stage, axis) for stage in plan.stages))


def _layers(first: Stage, last: Stage) -> str:
    """Return the layers of stages that follow one another, ``0-7``; with chunks ``0-1, 16-17`` and so on."""
    ends = [(begin, end) for (begin, _), (_, end) in zip(first.chunks, last.chunks, strict=True)]
    texts = [f"{begin}-{end}" if end > begin else str(begin) for begin, end in ends]
    if len(texts) > CHUNKS:
        texts = [*texts[: CHUNKS - 1], f"... {texts[-1]}"]
    return ", ".join(texts)


def recompute(stage: Stage) -> str:
    """Return what a stage recomputes: ``full``, ``selective``, or ``3/16 full`` of its layers and the others less."""
    if stage.num_recomputed >= stage.num_layers:
        return "full"
    if not stage.num_recomputed:
        return stage.recompute
    rest = "" if stage.recompute == "none" else f" + {stage.recompute}"
    return f"{stage.num_recomputed}/{stage.num_layers} full{rest}"


def _memory(run: Run, cells: int) -> str:
    """Return peak and limit of the fullest stage of a row, behind a bar of `cells` cells."""
    fullest = run.fullest
    peak, limit = fullest.peak_memory, fullest.memory_limit
    drawn = f"{bar(peak / limit, cells)} " if cells else ""
    return f"{drawn}{gib(peak)}/{gib(limit)}{'' if fullest.fits else ' too full'}"
