"""What fills the devices: by part at the peak against the limit, and in the course of a step."""

from __future__ import annotations

from collections.abc import Sequence

from planner.domain.prediction import PEAK_WORDS, StagePrediction
from planner.report.figures import gib, seconds, words
from planner.report.page.markup import Markup, figure, join, table, tag
from planner.report.page.markup import percent as length
from planner.report.page.patterns import PARTS, part_definitions, text_colour
from planner.report.page.subject import Subject
from planner.report.problems import spans
from planner.report.stages import Run, runs
from planner.units import GIB

MOST_ROWS = 40
"""Rows that are drawn."""
LABELLED = 0.06
"""[-] of the width from which on a part has its size written into it."""
MOST_CURVES = 16
"""Stages whose memory is drawn over time."""
BUCKETS = 240
"""Points in time of a curve; between two of them the highest and the lowest value are kept."""

PARTS_HELP = "Point at a part, or focus the bars and walk with the arrow keys."
CURVES_HELP = "Point at a time, or focus the curves and walk with the arrow keys."


def memory(about: Subject) -> Markup:
    """Return both drawings with their legend."""
    found = runs(about.plan, about.prediction)
    parts = [name for name in PARTS if any(dict(run.fullest.memory).get(name, 0.0) > 0 for run in found)]
    most = max(max(stage.device_memory, stage.peak_memory) for stage in about.prediction.stages)
    rows = [_bar(run, about, parts, most) for run in found[:MOST_ROWS]]
    hidden = sum(len(run.stages) for run in found[MOST_ROWS:])
    return join(
        tag("svg", part_definitions(), width=0, height=0, class_="defs", aria_hidden="true"),
        tag("h3", "At its peak, GiB on the fullest device of the stage"),
        tag("div", *rows, class_="fills", tabindex=0, role="group", aria_label=PARTS_HELP, data_walk="parts-said"),
        tag("p", f"{hidden} more stages not drawn.") if hidden else "",
        tag("p", PARTS_HELP, class_="readout", id="parts-said", role="status", aria_live="polite"),
        tag(
            "ul",
            *(_key(name) for name in parts),
            tag("li", tag("i", class_="limit-key"), "limit: device memory less the head-room"),
            class_="legend",
        ),
        _table(found, parts),
        tag("h3", f"In the course of a step, 0 to {seconds(about.timeline.step_time)}"),
        tag("div", *_curves(about), class_="curves", tabindex=0, role="group", aria_label=CURVES_HELP),
        tag("p", CURVES_HELP, class_="readout", id="curves-said", role="status", aria_live="polite"),
        tag(
            "p",
            "Weights, gradients and states stay; a micro-batch is held from its forward pass to its backward one;"
            " the optimizer's step comes last, its first one (which makes the states) is not drawn.",
            class_="note",
        ),
    )


def _stages(run: Run) -> str:
    return spans(range(run.first, run.first + len(run.stages)))


def _bar(run: Run, about: Subject, parts: Sequence[str], most: float) -> Markup:
    """Return the parts of a stage after one another, its limit and the end of its device's memory."""
    stage, left, blocks, texts = run.fullest, 0.0, [], []
    sizes = dict(stage.memory)
    for name in parts:
        share = sizes.get(name, 0.0) / most
        if share <= 0:
            continue
        said, middle = f"{words(name)} {gib(sizes[name])} GiB", length(left + share / 2)
        block = tag(
            "rect", x=length(left), width=length(share), y=2, height=24, fill=f"url(#part-{name})", class_="part"
        )
        blocks.append(tag("g", tag("title", said), block))
        if share >= LABELLED:
            colour = text_colour(PARTS[name][0])
            halo = PARTS[name][0] if colour == "#000" else "none"
            texts.append(tag("text", gib(sizes[name]), x=middle, y=19, style=f"fill:{colour};stroke:{halo}"))
        left += share
    limit, end = stage.memory_limit / most, stage.device_memory / most
    picture = tag(
        "svg",
        tag("rect", x=0, width=length(end), y=2, height=24, class_="room"),
        *blocks,
        tag("line", x1=length(limit), x2=length(limit), y1=0, y2=28, class_="limit"),
        *texts,
        width="100%",
        height=28,
        role="img",
        aria_label=f"Stage {_stages(run)}: {gib(stage.peak_memory)} of {gib(stage.memory_limit)} GiB",
        data_row=f"stage {_stages(run)}: ",
    )
    several = len({one.group for one in about.plan.all_stages}) > 1
    name = join(tag("b", f"stage {_stages(run)}"), f" {run.stages[0].group}" if several else "")
    figures = join(
        figure(stage.peak_memory, gib(stage.peak_memory)),
        " / ",
        figure(stage.memory_limit, gib(stage.memory_limit)),
        "" if stage.fits else tag("strong", " too full", class_="over"),
    )
    return tag("div", tag("span", name, class_="who"), picture, tag("span", figures, class_="n"), class_="fill")


def _key(name: str) -> Markup:
    square = tag(
        "svg", tag("rect", width=18, height=14, fill=f"url(#part-{name})"), width=18, height=14, aria_hidden="true"
    )
    return tag("li", square, words(name))


def _table(found: Sequence[Run], parts: Sequence[str]) -> Markup:
    """Return the same in figures."""
    head = ["stage", "held", *(words(name) for name in parts), "all", "limit", "peak at"]
    rows = []
    for run in found:
        stage = run.fullest
        sizes = dict(stage.memory)
        rows.append(
            [
                _stages(run),
                f"{stage.in_flight:g}",
                *(figure(sizes[name], gib(sizes[name])) if sizes.get(name, 0.0) > 0 else "" for name in parts),
                figure(stage.peak_memory, gib(stage.peak_memory)),
                figure(stage.memory_limit, gib(stage.memory_limit)),
                PEAK_WORDS[stage.peak_at],
            ]
        )
    made = table(
        head,
        rows,
        right=tuple(head[1:-1]),
        caption="GiB of the fullest stage of each row; held: micro-batches in flight",
    )
    return tag("details", tag("summary", "In figures"), made, class_="figures")


def _curves(about: Subject) -> list[Markup]:
    """Return memory over time of every stage, or of so many of them spread over all."""
    count = len(about.timeline.memory)
    chosen = (
        range(count)
        if count <= MOST_CURVES
        else sorted({round(i * (count - 1) / (MOST_CURVES - 1)) for i in range(MOST_CURVES)})
    )
    most = max(max(stage.device_memory, stage.peak_memory) for stage in about.prediction.stages)
    return [
        _curve(index, about.timeline.memory[index], about.timeline.step_time, about.prediction.stages[index], most)
        for index in chosen
    ]


def _curve(
    index: int, points: Sequence[tuple[float, float]], step_time: float, stage: StagePrediction, most: float
) -> Markup:
    """Return the memory of one stage as steps, filled, below its limit."""
    path = ["M0 100"]
    for time, size in _thinned(points, step_time):
        path.append(f"H{1000 * time / step_time:.1f}V{100 - 96 * size / most:.2f}")
    limit = 100 - 96 * stage.memory_limit / most
    top = max(size for _, size in points)
    picture = tag(
        "svg",
        tag("path", d="".join([*path, "H1000V100Z"]), class_="area"),
        tag("line", x1=0, x2=1000, y1=f"{limit:.2f}", y2=f"{limit:.2f}", class_="limit"),
        viewBox="0 0 1000 100",
        preserveAspectRatio="none",
        role="img",
        data_row=f"stage {index}",
        data_end=step_time,
        data_unit=most / GIB / 96,
        aria_label=f"Memory of stage {index} over a step of {seconds(step_time)}: at most {gib(top)} GiB",
    )
    return tag(
        "figure",
        picture,
        tag("figcaption", tag("b", f"stage {index}"), f" most {gib(top)} of {gib(stage.memory_limit)} GiB"),
    )


def _thinned(points: Sequence[tuple[float, float]], step_time: float) -> list[tuple[float, float]]:
    """Return no more points than can be seen: of those in one bucket the highest and the last."""
    if len(points) <= 2 * BUCKETS:
        return list(points)
    found: dict[int, list[tuple[float, float]]] = {}
    for point in points:
        found.setdefault(int(BUCKETS * point[0] / step_time), []).append(point)
    kept = (sorted({max(bucket, key=lambda point: point[1]), bucket[-1]}) for bucket in found.values())
    return [point for bucket in kept for point in bucket]
