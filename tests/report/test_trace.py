"""The trace of a step in the form that trace viewers read."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from planner.costs import Hop, plan_cost
from planner.domain.plan import Plan
from planner.pipeline import plan_from_layout
from planner.report.trace import chrome_trace
from planner.simulate import Timeline, timeline
from planner.specs import catalog
from planner.specs.job import read_job
from planner.specs.layout import parse_layout
from report.report_cases import Case


def step(case: Case, plan: Plan) -> Timeline:
    """Return what happens in one step of a plan."""
    costs = plan_cost(plan, case.cluster, case.model, case.job, catalog.framework(case.job.framework))
    return timeline(plan, costs)


def traced(case: Case, plan: Plan, **options: int) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(chrome_trace(plan, step(case, plan), case.cluster, **options))
    return document


@pytest.fixture(scope="module")
def plan(mixed: Case) -> Plan:
    """Three stages on three groups, 32 micro-batches."""
    return mixed.plan([("h100", 70), ("a100", 40), ("l40s", 16)], dp=4)


def test_every_event_has_what_its_kind_needs(mixed: Case, plan: Plan) -> None:
    """Complete events, flows, counters and metadata, each with the keys of the format, on named threads."""
    events = traced(mixed, plan)["traceEvents"]
    needs = {
        "X": {"name", "cat", "ph", "pid", "tid", "ts", "dur", "args"},
        "M": {"name", "ph", "pid", "args"},
        "C": {"name", "ph", "pid", "ts", "args"},
        "s": {"name", "cat", "id", "ph", "pid", "tid", "ts"},
        "f": {"name", "cat", "id", "ph", "bp", "pid", "tid", "ts"},
    }
    for event in events:
        assert set(event) - {"tid"} == needs[event["ph"]] - {"tid"}
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] in "Xsf"} <= named
    assert {event["pid"] for event in events if event["name"] == "process_name"} == {0, 1, 2}
    names = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert names[0] == "stage 0 (h100, h100-sxm-80gb, layers 0-69)"


def test_flows_lead_from_a_transfer_to_its_pass(mixed: Case, plan: Plan) -> None:
    """Each begins in a transfer and ends where a pass of the same micro-batch begins; all transfers have one."""
    events = traced(mixed, plan)["traceEvents"]
    begun = {(event["pid"], event["tid"], event["ts"]): event for event in events if event["ph"] == "X"}
    starts = {event["id"]: event for event in events if event["ph"] == "s"}
    ends = {event["id"]: event for event in events if event["ph"] == "f"}
    assert set(starts) == set(ends)
    assert len(starts) == sum(event["ph"] == "X" and event["cat"] == "transfer" for event in events)
    for number, start in starts.items():
        sent = begun[start["pid"], start["tid"], start["ts"]]
        fed = begun[ends[number]["pid"], ends[number]["tid"], ends[number]["ts"]]
        assert sent["args"]["micro_batch"] == fed["args"]["micro_batch"]
        assert fed["ts"] >= sent["ts"] + sent["dur"] - 0.002
        assert fed["cat"] == {"activations": "forward", "gradients": "backward"}[start["name"]]


@pytest.mark.parametrize("name", ["zb-h1", "dualpipe", "bitpipe"])
def test_gradients_lead_to_the_pass_that_waits_for_them(small: Case, name: str) -> None:
    """To that of the input where the backward pass is split; chunks are counted in each direction, which is told."""
    plan = named(small, name)
    events = traced(small, plan)["traceEvents"]
    begun = {(one["pid"], one["tid"], one["ts"]): one for one in events if one["ph"] == "X"}
    starts = {one["id"]: one for one in events if one["ph"] == "s"}
    ends = {one["id"]: one for one in events if one["ph"] == "f"}
    assert len(starts) == sum(one["ph"] == "X" and one["cat"] == "transfer" for one in events)
    for number, start in starts.items():
        sent = begun[start["pid"], start["tid"], start["ts"]]
        fed = begun[ends[number]["pid"], ends[number]["tid"], ends[number]["ts"]]
        wanted = {"forward"} if start["name"] == "activations" else {"backward", "backward input"}
        assert fed["cat"] in wanted
        assert fed["args"]["micro_batch"] == sent["args"]["micro_batch"]
        assert fed["args"].get("from") == sent["args"].get("from")
    passes = [one["args"] for one in begun.values() if "micro_batch" in one["args"]]
    assert {one.get("chunk") for one in passes} == ({0, 1} if name == "bitpipe" else {None})
    assert {one.get("from") for one in passes} == ({None} if name == "zb-h1" else {None, "the other end"})


@pytest.mark.parametrize("name", ["1f1b", "interleaved,vpp=2", "zb-h1", "dualpipe", "zbv", "pipedream"])
def test_slices_of_a_thread_never_overlap(small: Case, name: str) -> None:
    """Though transfers take four passes, so that both ways and several receivers are at work at once.

    The format has nested slices on a thread, or such that follow one another.
    """
    plan = named(small, name)
    costs = plan_cost(plan, small.cluster, small.model, small.job, catalog.framework("torchtitan"))
    slow = Hop(forward=4 * costs.stages[0].forward, backward=4 * costs.stages[0].forward)
    costs = replace(costs, hops=(slow,) * len(costs.hops), wrap=costs.wrap and slow, blocking=False)
    document = json.loads(chrome_trace(plan, timeline(plan, costs), small.cluster))
    by_thread: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            by_thread.setdefault((event["pid"], event["tid"]), []).append(event)
    for slices in by_thread.values():
        slices.sort(key=lambda one: one["ts"])
        assert all(one["ts"] + one["dur"] <= later["ts"] + 0.002 for one, later in pairwise(slices))
    transfers = sorted(
        (one["ts"], one["dur"])
        for (pid, _), many in by_thread.items()
        if pid == 1
        for one in many
        if one["cat"] == "transfer"
    )
    assert any(begin + length > later for (begin, length), (later, _) in pairwise(transfers))


def test_threads_of_transfers_say_where_they_go(mixed: Case, plan: Plan) -> None:
    """The middle of three stages sends gradients to the one before and activations to the one behind."""
    events = traced(mixed, plan)["traceEvents"]
    names = [one["args"]["name"] for one in events if one["name"] == "thread_name" and one["pid"] == 1]
    sent = [name for name in names if name.startswith("p2p")]
    assert sent == ["p2p gradients to stage 0", "p2p activations to stage 2"]


def named(case: Case, name: str) -> Plan:
    """Return four stages of eight layers with a schedule."""
    job, _ = read_job(None, {}, case.model, case.cluster)
    layout = parse_layout(f"tp=2,pp=4,gbs=16,schedule={name}")
    return plan_from_layout(layout, case.cluster, case.model, job)[0]


def test_the_trace_ends_with_the_predicted_step(mixed: Case, plan: Plan) -> None:
    """In microseconds, to the nanosecond; the memory counter peaks where the prediction does."""
    document, prediction = traced(mixed, plan), mixed.predicted(plan)
    ends = max(event["ts"] + event["dur"] for event in document["traceEvents"] if event["ph"] == "X")
    assert ends == pytest.approx(1e6 * prediction.step_time, abs=0.01)
    assert document["otherData"]["step_time_s"] == pytest.approx(prediction.step_time, rel=1e-9)
    for index, stage in enumerate(prediction.stages):
        counted = [
            event["args"]["GiB"] for event in document["traceEvents"] if event["ph"] == "C" and event["pid"] == index
        ]
        assert max(counted) == pytest.approx(max(dict(stage.peaks).values()) / 2**30, abs=0.001)


def test_a_long_trace_is_cut_with_a_note(mixed: Case, plan: Plan) -> None:
    """Of more events than are wanted the ends are kept, and what stands for the rest says how many they are."""
    whole, cut = traced(mixed, plan), traced(mixed, plan, most=100)
    shown = [event for event in cut["traceEvents"] if event["ph"] == "X" and event["cat"] != "cut"]
    every = [event for event in whole["traceEvents"] if event["ph"] == "X"]
    assert 50 < len(shown) <= 100
    assert [event for event in every if event in shown] == shown
    gaps = [event for event in cut["traceEvents"] if event.get("cat") == "cut"]
    assert len(gaps) == 3
    assert gaps[0]["name"].startswith(f"... {len(every) - len(shown):,} events that begin between")
    assert "note" not in whole["otherData"]
    assert cut["otherData"]["note"] in gaps[0]["name"]


def test_a_step_that_runs_into_the_next_one_says_so(mixed: Case, plan: Plan) -> None:
    """The predicted time stays what it is; the time that is drawn stands beside it, with a word on why."""
    found = step(mixed, plan)
    shorter = replace(found, adds=0.9 * found.step_time)
    other = json.loads(chrome_trace(replace(plan, schedule="zb-h2"), shorter, mixed.cluster))["otherData"]
    assert other["step_time_s"] == shorter.adds
    assert other["drawn_time_s"] == found.step_time
    assert other["note"].startswith("zb-h2 begins a step before the last one has ended")
    assert "drawn_time_s" not in traced(mixed, plan)["otherData"]


def test_the_same_plan_gives_the_same_trace(mixed: Case, plan: Plan) -> None:
    """To the last byte."""
    assert chrome_trace(plan, step(mixed, plan), mixed.cluster) == chrome_trace(plan, step(mixed, plan), mixed.cluster)
