"""What runs have in common that are predicted badly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.accuracy.judge import judge_runs
from planner.accuracy.judged import Judged
from planner.accuracy.run import Run
from planner.accuracy.setting import Setting
from planner.domain.cluster import Network

LARGE_SHARE = 0.2
"""[-] of the predicted step from which on a part decides it."""
CONTEXT_RANKS = 4
"""Context degree from which on little is measured."""
IDEAL = Network(name="ideal", bandwidth=1e18, efficiency=1.0, latency=0.0)
"""A network that takes no time."""


def causes(judged: Sequence[Judged], headroom: float) -> tuple[str, ...]:
    """Return, for each run, the first that holds of what makes runs hard to predict; empty for one without a time.

    Two shares of the step tell: what it gains if the host launched kernels at once, and if the network took no time.
    """
    runs = [one.run for one in judged]
    launched = judge_runs(runs, headroom, _without_launches)
    connected = judge_runs(runs, headroom, _without_network)
    return tuple(
        _cause(one.run, _gain(one, quick), _gain(one, near)) if one.step_time and one.run.step_time else ""
        for one, quick, near in zip(judged, launched, connected, strict=True)
    )


def _cause(run: Run, launch: float, network: float) -> str:
    """Return the first cause that holds, by what the run says and by shares of its step."""
    known = (
        (f"flagged: {run.flag}", bool(run.flag)),
        ("tensor ranks on several nodes", (run.tp or 1) > (run.gpus_per_node or run.tp or 1)),
        ("small jobs: a fifth of the step or more waits for kernel launches", launch > LARGE_SHARE),
        ("a fifth of the step or more is exchange between nodes", network > LARGE_SHARE),
        (f"{CONTEXT_RANKS} context ranks or more", (run.cp or 1) >= CONTEXT_RANKS),
        ("precisions below 16 bits", run.precision not in {"", "bf16", "fp16"}),
        ("what is recomputed is not said", not run.recompute),
    )
    return next((cause for cause, holds in known if holds), "none of these")


def _gain(one: Judged, other: Judged) -> float:
    """Return the share of the step that `other` saves."""
    return 1 - other.step_time / one.step_time if one.step_time and other.step_time else 0.0


def _without_launches(setting: Setting) -> Setting:
    framework = replace(setting.layout.framework, launch_floor=0.0, launch_edge=0.0, launch_tensor=0.0)
    return setting.changed(framework=framework)


def _without_network(setting: Setting) -> Setting:
    return setting.changed(group=lambda group: replace(group, inter_node=IDEAL))
