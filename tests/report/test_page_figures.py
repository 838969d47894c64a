"""The step and the alternatives on the page: what the trace and the JSON say, and how it is told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from planner.domain.plan import Plan
from planner.pipeline import plan_from_layout
from planner.report.figures import count, gib, percent, seconds
from planner.report.page import Subject, page
from planner.report.page.alternatives import _apart
from planner.report.page.timeline import _figures
from planner.report.trace import chrome_trace
from planner.specs.job import read_job
from planner.specs.layout import parse_layout
from report.pages import embedded, numbers, read, subject
from report.report_cases import Case


@pytest.fixture(scope="module")
def plan(mixed: Case) -> Plan:
    """Three stages on three groups."""
    return mixed.plan([("h100", 70), ("a100", 40), ("l40s", 16)], dp=4)


@pytest.fixture(scope="module")
def about(mixed: Case, plan: Plan) -> Subject:
    """That plan, with two runners-up."""
    return subject(mixed, plan, (mixed.plan([("h100", 126)], dp=2), mixed.plan([("h100", 100), ("a100", 26)], dp=4)))


def shown(about: Subject) -> Iterator[tuple[int, float, float]]:
    """Yield (stage, start [s], end [s]) of every rectangle of the step that is drawn in one piece."""
    stage, step = -1, about.timeline.step_time
    for name, attributes in read(page(about)).elements:
        if "data-stage" in attributes:
            stage = int(attributes["data-stage"] or "")
        elif name == "rect" and stage >= 0:
            left, width = (float(str(attributes[side]).rstrip("%")) / 100 for side in ("x", "width"))
            yield stage, left * step, (left + width) * step
        elif name == "ul" and stage >= 0:
            return


def test_the_step_is_that_of_the_trace(mixed: Case, about: Subject) -> None:
    """Every pass, transfer and exchange from when to when `planner timeline` says, and nothing else."""
    trace = json.loads(chrome_trace(about.plan, about.timeline, mixed.cluster))
    known = [one for one in trace["traceEvents"] if one["ph"] == "X" and one["cat"] != "tp"]
    wanted = sorted((one["pid"], one["ts"] / 1e6, (one["ts"] + one["dur"]) / 1e6) for one in known)
    drawn = sorted(shown(about))
    assert len(drawn) == len(wanted) > 100
    for one, other in zip(drawn, wanted, strict=True):
        assert one == pytest.approx(other, abs=2e-6 * about.timeline.step_time)


def test_the_figures_of_the_step_are_those_of_the_trace(mixed: Case, about: Subject) -> None:
    """When the passes of each stage begin and end, how long they take, and how long transfers take."""
    trace = json.loads(chrome_trace(about.plan, about.timeline, mixed.cluster))
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>.*?</tr>", _figures(about.timeline))]
    titles = re.findall(r"<th[^>]*>([^<]*)</th>", _figures(about.timeline))
    for stage, row in enumerate(rows[1:]):
        own = [one for one in trace["traceEvents"] if one["ph"] == "X" and one["pid"] == stage]
        passes = [one for one in own if one["cat"] in {"forward", "backward"}]
        worked = sum(one["dur"] for one in passes) / 1e6
        cells = dict(zip(titles, row, strict=True))
        assert cells["first pass"] == seconds(min(one["ts"] for one in passes) / 1e6)
        assert cells["last pass ends"] == seconds(max(one["ts"] + one["dur"] for one in passes) / 1e6)
        assert cells["in passes"] == seconds(worked)
        assert cells["of the step"] == percent(worked / about.prediction.step_time)
        sent = sum(one["dur"] for one in own if one["cat"] == "transfer") / 1e6
        assert cells["p2p"] == (seconds(sent) if sent else "")


def test_the_alternatives_are_those_of_the_json(about: Subject) -> None:
    """Each point tells step time and measure of its plan; so does the table, by numbers of the document."""
    document = embedded(page(about))
    plans = {str(number): one["prediction"] for number, one in enumerate(document["search"]["alternatives"], 1)}
    plans["this plan"] = document["prediction"]
    points = re.findall(r"<title>([^:<]*): step ([^,<]*), ([^:<]*): ([^<]*)</title>", page(about))
    assert {mark for mark, *_ in points} == {*plans}
    for mark, step, name, value in points:
        one = plans[mark]
        most = max(stage["peak_memory_bytes"] for stage in one["stages"])
        assert step == seconds(one["step_time_s"])
        assert value == {"devices": count(one["num_devices"]), "most memory of a device [GiB]": gib(most)}[name]
    values = [value for value, _ in read(page(about)).values]
    for one in plans.values():
        assert max(stage["peak_memory_bytes"] for stage in one["stages"]) in values


def test_points_that_meet_stand_beside_each_other() -> None:
    """The second of two alike plans is moved by its width, the third by two."""
    assert _apart([(10.0, 5.0), (10.0, 5.0), (11.0, 6.0), (90.0, 5.0)]) == [
        (10.0, 5.0),
        (23.0, 5.0),
        (37.0, 6.0),
        (90.0, 5.0),
    ]


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("chimera", {"forward", "backward", "forward from the other end", "backward from the other end"}),
        ("interleaved", {"forward", "backward", "forward of an odd chunk", "backward of an odd chunk"}),
        ("zb-h1", {"forward", "backward (input)", "backward (weights)"}),
    ],
)
def test_the_legend_tells_what_is_drawn(small: Case, name: str, texts: set[str]) -> None:
    """Passes by their kind, and by chunk or direction where there are several; none that is not there."""
    job, _ = read_job(None, {}, small.model, small.cluster)
    chunks = ",vpp=2" if name == "interleaved" else ""
    layout = parse_layout(f"tp=2,pp=4,gbs=16,schedule={name}{chunks}")
    plan, job = plan_from_layout(layout, small.cluster, small.model, job)
    made = page(subject(replace(small, job=job), plan, searched=False))
    start = made.index('<ul class="legend"')
    legend = re.findall(r"</svg>([^<]*)</li>", made[start : made.index("</ul>", start)])
    assert {text for text in legend if text.startswith(("forward", "backward"))} == texts
    assert ("devices of stage 0 hold the layers of stage 3 as well" in made) == (name == "chimera")


def test_a_step_that_runs_into_the_next_one_says_so(about: Subject) -> None:
    """Below its drawing, which is longer than the predicted step."""
    stale = replace(about, plan=replace(about.plan, schedule="pipedream-2bw"))
    made = page(replace(stale, timeline=replace(about.timeline, adds=0.9 * about.timeline.step_time)))
    assert "Note: pipedream-2bw begins a step before the last one has ended" in made
    assert "before the last one has ended" not in page(about)


@pytest.mark.parametrize("kind", ["unlike", "split", "short"])
def test_unlike_replicas_and_stages_have_the_numbers_of_the_json(mixed: Case, kind: str) -> None:
    """Pipelines of two kinds, a stage in two copies, a replica with a micro-batch less: each stage has its row."""
    plan = replace(mixed.plan([("h100", 80), ("a100", 46)], dp=2), micro_batch=2, num_microbatches=8)
    if kind == "unlike":
        plan = replace(plan, other_pipelines=(replace(plan, stages=mixed.plan([("a100", 126)]).stages),))
    elif kind == "split":
        plan = replace(plan, stages=(plan.stages[0], replace(plan.stages[1], split=2)))
    else:
        plan = replace(plan, short_replicas=1)
    made = page(subject(mixed, plan))
    known, reader = set(numbers(embedded(made))), read(made)
    assert [text for value, text in reader.values if value not in known] == []
    assert made.count("data-stage=") == len(plan.all_stages)
    titles = [str(one["aria-label"]) for name, one in reader.elements if name == "svg" and "aria-label" in one]
    for index in range(len(plan.all_stages)):
        assert any(title.startswith(f"Memory of stage {index} over") for title in titles)
    assert ("pipelines 1: " in made) == (kind == "unlike")
