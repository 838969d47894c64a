"""The table of stages: who runs which layers, cut how, how long, and how full; alike neighbours share a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from planner.domain.cluster import Cluster
from planner.domain.plan import CP_COMM_TYPES, Plan, Stage
from planner.domain.prediction import Prediction, StagePrediction
from planner.report.figures import count, gib, milliseconds, plural
from planner.report.layout import WIDTH, cut, fitted, heading

NAME = 16
"""[columns] that the name of a group may take."""
SPARE = ("nodes", "each")
"""Columns that a narrow page does without: devices and layers tell the same."""
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
    """Return the stages of all kinds of pipelines, numbered on, in runs of the same group, layers, cut and time.

    Their memory may differ.
    """
    return [run for _, found in _kinds(plan, prediction) for run in found]


def _kinds(plan: Plan, prediction: Prediction) -> Iterator[tuple[Plan, list[Run]]]:
    """Yield every kind of pipeline with its runs."""
    start = 0
    for pipeline in plan.pipelines:
        predictions = prediction.stages[start : start + pipeline.num_stages]
        yield pipeline, _runs(pipeline, predictions, start)
        start += pipeline.num_stages


def _runs(plan: Plan, predictions: Sequence[StagePrediction], start: int) -> list[Run]:
    found: list[Run] = []
    for index, (stage, predicted) in enumerate(zip(plan.stages, predictions, strict=True), start):
        last = found[-1] if found else None
        if last and _alike(stage, predicted) == _alike(last.stages[-1], last.predictions[-1]):
            found[-1] = Run(last.first, (*last.stages, stage), (*last.predictions, predicted))
        else:
            found.append(Run(index, (stage,), (predicted,)))
    return found


def stage_table(plan: Plan, prediction: Prediction, cluster: Cluster, width: int = WIDTH) -> list[str]:
    """Return the lines of the table; of each kind of pipeline one, below a line that says how many there are.

    A page of `width` [columns] that is too narrow does without what other columns tell, and stacks the rest.
    """
    lines: list[str] = []
    for kind, (pipeline, found) in enumerate(_kinds(plan, prediction)):
        if plan.other_pipelines:
            lines += [*([""] if kind else []), *heading(f"pipelines {kind}: {replicas_text(pipeline)}", width)]
        lines += _run_table(pipeline, found, cluster, axes(plan), width, split=has_splits(plan))
    return lines


def stage_rows(
    plan: Plan, prediction: Prediction, cluster: Cluster
) -> list[tuple[str, list[str], list[tuple[Run, list[str]]]]]:
    """Return the same as cells: (title, titles of the columns, rows) of each kind of pipeline, memory left out."""
    cut_by, split = axes(plan), has_splits(plan)
    head = _head(cut_by, split=split)[:-1]
    return [
        (
            f"pipelines {kind}: {replicas_text(pipeline)}" if plan.other_pipelines else "",
            head,
            [(run, _cells(run, pipeline, cluster, cut_by, split=split)) for run in found],
        )
        for kind, (pipeline, found) in enumerate(_kinds(plan, prediction))
    ]


def _head(cut_by: Sequence[str], *, split: bool) -> list[str]:
    """Return the titles of the columns."""
    shown = [*cut_by, *(["split"] if split else [])]
    return ["stage", "group", "nodes", "devices", "layers", "each", *shown, "recompute", "fwd+bwd ms", "memory GiB"]


def replicas_text(plan: Plan) -> str:
    """Return how many replicas of a kind there are, and what each works on."""
    each = f"{plural(plan.num_microbatches, 'micro-batch').removesuffix('s')}{'es' * (plan.num_microbatches > 1)}"
    short = f" ({plural(plan.short_replicas, 'replica')} on one less)" if plan.short_replicas else ""
    share = f"{count(plan.samples)} samples"
    return f"{plural(plan.num_replicas, 'replica')} with {each} of {plan.micro_batch} a step{short}, {share}"


def _run_table(
    plan: Plan, found: Sequence[Run], cluster: Cluster, cut_by: Sequence[str], width: int, *, split: bool
) -> list[str]:
    shown = [*cut_by, *(["split"] if split else [])]
    flush = ",".join(["nodes", "devices", "each", *shown, "fwd+bwd ms"])
    rows = [[*_cells(run, plan, cluster, cut_by, split=split), _memory(run)] for run in found[:ROWS]]
    lines = fitted(_head(cut_by, split=split), rows, width, right=flush, spare=SPARE)
    more = f"... and {len(found) - ROWS} more rows; --format json has them all"
    return [*lines, *(heading(more, width) if len(found) > ROWS else [])]


def has_splits(plan: Plan) -> bool:
    """Tell whether stages divide their micro-batches."""
    return any(stage.split > 1 for stage in plan.all_stages)


def axes(plan: Plan) -> list[str]:
    """Return the axes to be shown: the tensor axis, and others that cut a stage."""
    used = [axis for stage in plan.all_stages for axis, degree in stage.strategy.degrees if degree > 1]
    return list(dict.fromkeys(["tp", *used]))


def _alike(stage: Stage, predicted: StagePrediction) -> tuple[object, ...]:
    """Return what must be the same of two stages in one row."""
    return (
        stage.group,
        stage.chunk_sizes,
        stage.strategy,
        stage.split,
        stage.recompute,
        stage.num_recomputed,
        milliseconds(predicted.forward),
        milliseconds(predicted.backward),
        predicted.fits,
    )


def _cells(run: Run, plan: Plan, cluster: Cluster, cut_by: Sequence[str], *, split: bool) -> list[str]:
    """Return the cells of a row but for the memory; figures are those of one of its stages."""
    stage, last, predicted = run.stages[0], run.stages[-1], run.predictions[0]
    num_devices = plan.num_replicas * stage.num_devices
    per_node = cluster.group(stage.group).devices_per_node
    several = len(run.stages) > 1
    return [
        f"{run.first}-{run.first + len(run.stages) - 1} x{len(run.stages)}" if several else str(run.first),
        cut(stage.group, NAME),
        f"{num_devices / per_node:.3g}" if num_devices % per_node else count(num_devices // per_node),
        count(num_devices),
        _layers(stage, last),
        str(stage.num_layers),
        *(degree(stage, axis) for axis in cut_by),
        *([str(stage.split)] if split else []),
        recompute(stage),
        f"{milliseconds(predicted.forward)} + {milliseconds(predicted.backward)}",
    ]


def degree(stage: Stage, axis: str) -> str:
    """Return how often `axis` cuts, and how context ranks exchange where it is not the usual way."""
    degree, kind = stage.strategy.degree(axis), stage.strategy.cp_comm_type
    return f"{degree} {kind}" if axis == "cp" and degree > 1 and kind != CP_COMM_TYPES[0] else str(degree)


def degrees(plan: Plan, axis: str) -> str:
    """Return how often `axis` cuts the stages, unlike ones after one another."""
    return "/".join(dict.fromkeys(degree(stage, axis) for stage in plan.all_stages))


def _layers(first: Stage, last: Stage) -> str:
    """Return the layers of stages that follow one another, ``0-7``; with chunks ``0-1, 16-17`` and so on."""
    pairs = zip(first.chunks, last.chunks, strict=True)
    ends = [(min(one[0], other[0]), max(one[1], other[1])) for one, other in pairs]
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


def _memory(run: Run) -> str:
    """Return peak and limit of the fullest stage of a row."""
    fullest = run.fullest
    return f"{gib(fullest.peak_memory)}/{gib(fullest.memory_limit)}{'' if fullest.fits else ' too full'}"
