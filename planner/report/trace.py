"""A step as a trace that ui.perfetto.dev and chrome://tracing open: the Trace Event Format in its JSON form.

Source: "Trace Event Format" of the Chromium project: complete events (``X``), flows (``s``, ``f``), counters (``C``)
and metadata (``M``), times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import planner
from planner.domain.cluster import Cluster
from planner.domain.plan import Plan
from planner.report.figures import plural, seconds, words
from planner.report.overlap import overlap
from planner.report.window import Window, pass_name, window
from planner.schedules import WEIGHT
from planner.simulate import Event, Timeline
from planner.simulate.events import ACTIVATIONS, COMPUTE, P2P
from planner.simulate.timeline import LANES
from planner.units import GIB, MICROSECOND

MOST_EVENTS = 100_000
"""Passes, transfers and waits in one trace; of more only those near the beginning and the end of the step are written.

Viewers open a few times as many; the file is about 20 MB then."""
KINDS = {"F": "forward", "B": "backward", "I": "backward input", "W": "backward weight"}
"""Kind of pass -> its category."""
_Thread = tuple[str, int, str]
"""(lane, stage that transfers go to or -1, what they carry)."""


def chrome_trace(plan: Plan, found: Timeline, cluster: Cluster, most: int = MOST_EVENTS) -> str:
    """Return the trace of a step: a process for each stage, threads for its lanes, and its memory.

    Args:
        plan: whose step it is.
        found: what happens in it.
        cluster: where it runs.
        most: events that are written at most, beside those that tell names, flows and memory.

    """
    shown = window(found.events, found.step_time, most)
    threads = _threads(found)
    events = [
        *_names(plan, threads, cluster),
        *(_complete(event, plan.virtual_stages, threads) for event in shown.events),
        *_flows(shown.events, threads),
        *_memory(found, shown),
        *_gap(shown, threads),
    ]
    notes = [*filter(None, [overlap(plan, found)]), *([_note(shown)] if shown.gap else [])]
    document = {
        "displayTimeUnit": "ms",
        "otherData": {
            "made_by": f"planner {planner.__version__}",
            "step_time_s": found.adds,
            **({"drawn_time_s": found.step_time} if found.is_cut_out else {}),
            **({"note": "; ".join(notes)} if notes else {}),
        },
        "traceEvents": events,
    }
    lines = ",\n".join(json.dumps(event, ensure_ascii=False, allow_nan=False) for event in events)
    head = json.dumps({**document, "traceEvents": []}, indent=1, ensure_ascii=False, allow_nan=False)
    return head.removesuffix("[]\n}") + f"[\n{lines}\n]\n}}\n"


def _thread(event: Event) -> _Thread:
    """Return where an event stands: transfers run at once where they go to different stages, or are not of one kind."""
    return event.lane, *((event.other, event.name) if event.lane == P2P else (-1, ""))


def _threads(found: Timeline) -> list[dict[_Thread, int]]:
    """Return the number of every thread of each stage, lane by lane: slices of one thread must not overlap."""
    used: list[set[_Thread]] = [set() for _ in range(found.num_stages)]
    for event in found.events:
        used[event.stage].add(_thread(event))
    return [
        {one: number for number, one in enumerate(sorted(own, key=lambda one: (LANES.index(one[0]), *one[1:])))}
        for own in used
    ]


def _names(plan: Plan, threads: Sequence[Mapping[_Thread, int]], cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Yield the names of stages and threads."""
    kinds = [kind for kind, pipeline in enumerate(plan.pipelines) for _ in pipeline.stages]
    for index, stage in enumerate(plan.all_stages):
        layers = ", ".join(f"{first}-{last}" if last > first else str(first) for first, last in stage.chunks)
        pipeline = f"pipeline {kinds[index]}, " if plan.other_pipelines else ""
        device = cluster.group(stage.group).device.name
        where = stage.group if stage.group == device else f"{stage.group}, {device}"
        name = f"stage {index} ({pipeline}{where}, layers {layers})"
        yield {"name": "process_name", "ph": "M", "pid": index, "args": {"name": name}}
        yield {"name": "process_sort_index", "ph": "M", "pid": index, "args": {"sort_index": index}}
        for (lane, other, carried), thread in threads[index].items():
            what = f"{lane} {carried} to stage {other}" if lane == P2P else lane
            common = {"ph": "M", "pid": index, "tid": thread}
            yield {"name": "thread_name", **common, "args": {"name": what}}
            yield {"name": "thread_sort_index", **common, "args": {"sort_index": thread}}


def _complete(event: Event, chunks: int, threads: Sequence[Mapping[_Thread, int]]) -> dict[str, Any]:
    """Return a pass, a transfer or a wait."""
    arguments: dict[str, Any] = {}
    if event.micro_batch >= 0:
        arguments["micro_batch"] = event.micro_batch
        if chunks > 1:
            arguments["chunk"] = event.chunk % chunks
        if event.chunk >= chunks:
            arguments["from"] = "the other end"
    if event.lane == COMPUTE and event.micro_batch >= 0:
        name, category = pass_name(event, chunks), KINDS[event.name]
    elif event.lane == P2P:
        name, category = f"{event.name} {event.micro_batch} to stage {event.other}", "transfer"
    else:
        name, category = words(event.name), event.lane
    start = _microseconds(event.start)
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "pid": event.stage,
        "tid": threads[event.stage][_thread(event)],
        "ts": start,
        "dur": round(_microseconds(event.end) - start, 3),
        "args": arguments,
    }


def _flows(events: tuple[Event, ...], threads: Sequence[Mapping[_Thread, int]]) -> Iterator[dict[str, Any]]:
    """Yield an arrow from each transfer to the pass that it feeds, where both are shown."""
    fed = {}
    for event in events:
        if event.lane == COMPUTE and event.name != WEIGHT:
            fed[event.stage, event.name == "F", event.micro_batch, event.chunk] = event
    number = 0
    for event in events:
        if event.lane != P2P:
            continue
        to = fed.get((event.other, event.name == ACTIVATIONS, event.micro_batch, event.other_chunk))
        if to is None:
            continue
        common = {"name": event.name, "cat": "transfer", "id": number}
        sent = {"pid": event.stage, "tid": threads[event.stage][_thread(event)], "ts": _microseconds(event.start)}
        received = {"pid": to.stage, "tid": threads[to.stage][_thread(to)], "ts": _microseconds(to.start)}
        yield {**common, "ph": "s", **sent}
        yield {**common, "ph": "f", "bp": "e", **received}
        number += 1


def _memory(found: Timeline, shown: Window) -> Iterator[dict[str, Any]]:
    """Yield the memory of each stage's fullest device whenever it changes."""
    for stage, points in enumerate(found.memory):
        for time, size in points:
            if shown.gap is None or not shown.gap[0] <= time <= shown.gap[1]:
                held = {"GiB": round(size / GIB, 3)}
                yield {"name": "memory", "ph": "C", "pid": stage, "ts": _microseconds(time), "args": held}


def _gap(shown: Window, threads: Sequence[Mapping[_Thread, int]]) -> Iterator[dict[str, Any]]:
    """Yield what stands on each stage for the events that are left out."""
    if shown.gap is None:
        return
    start, end = (_microseconds(time) for time in shown.gap)
    for stage, own in enumerate(threads):
        yield {
            "name": f"... {_note(shown)}",
            "cat": "cut",
            "ph": "X",
            "pid": stage,
            "tid": len(own),
            "ts": start,
            "dur": round(end - start, 3),
            "args": {},
        }


def _note(shown: Window) -> str:
    start, end = shown.gap or (0.0, 0.0)
    return (
        f"{plural(shown.num_hidden, 'event')} that begin between {seconds(start)} and {seconds(end)} are not shown;"
        " the passes there repeat"
    )


def _microseconds(time: float) -> float:
    return round(time / MICROSECOND, 3)
