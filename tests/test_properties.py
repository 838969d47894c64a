"""What holds of any plan and of any search, whatever the problem."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import planner.pipeline.plan as planning_pipeline
from builders import Planning, constraints, drawn
from planner.checks import Context, run_checks
from planner.costs import plan_cost
from planner.domain.cluster import Cluster, DeviceGroup, Link, Network
from planner.domain.framework import Framework
from planner.domain.prediction import Outcome
from planner.errors import NoFeasiblePlan
from planner.loader import Document
from planner.program import Search
from planner.specs.plan import plan_from_document, plan_record

seeds = st.integers(min_value=0, max_value=100_000)
few = settings(max_examples=30, derandomize=True, deadline=None, database=None)
ROUNDING = 200
"""[ns] that whole nanoseconds may add to an objective."""


every = pytest.mark.parametrize("schedules", ["usual", "any"])
"""The schedules that are searched unasked, or all that train alike."""


def problem(seed: int, schedules: str, *texts: str, most_devices: int = 8) -> Planning:
    """Return a random problem with unlike links, and with constraints."""
    asked = drawn(seed, most_devices=most_devices, topology=True)
    wanted = constraints(*texts, *(["schedule = any"] if schedules == "any" else []))
    return replace(asked, job=replace(asked.job, constraints=(*asked.job.constraints, *wanted)))


def objective(asked: Planning) -> float:
    """Return [ns] the best objective, infinite if nothing fits."""
    try:
        found = Search(asked.space, 0.0).run().found
    except NoFeasiblePlan:
        return np.inf
    return found[0].objective if found else np.inf


@contextmanager
def profile(asked: Planning):  # type: ignore[no-untyped-def] # noqa: ANN201
    """Let the pipeline use the problem's own framework."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning_pipeline, "framework_on", lambda *_: asked.framework)
        yield


def planned(asked: Planning) -> Outcome | None:
    """Return the pipeline's plan of a problem that has one."""
    if not np.isfinite(objective(asked)):
        return None
    with profile(asked):
        return planning_pipeline.make_plan(asked.cluster, asked.model, asked.job, references=False)


def with_groups(asked: Planning, change: Callable[[DeviceGroup], DeviceGroup]) -> Planning:
    return replace(asked, cluster=replace(asked.cluster, groups=tuple(change(g) for g in asked.cluster.groups)))


def sped(cluster: Cluster, factor: float) -> Cluster:
    """Return a cluster whose links have `factor` times the bandwidth."""

    def faster(link: Link) -> Link:
        levels = tuple(replace(level, link=faster(level.link)) for level in link.levels)
        return replace(link, bandwidth=factor * link.bandwidth, levels=levels)

    def faster_network(network: Network) -> Network:
        rails = tuple(factor * rate for rate in network.rail_rates)
        return replace(network, bandwidth=factor * network.bandwidth, rail_rates=rails)

    groups = tuple(
        replace(group, intra_node=faster(group.intra_node), inter_node=faster_network(group.inter_node))
        for group in cluster.groups
    )
    links = tuple(replace(link, bandwidth=factor * link.bandwidth) for link in cluster.links)
    return replace(cluster, groups=groups, links=links)


def prompt(link: Link) -> Link:
    """Return a link whose messages arrive in half the time, in all parts of the node."""
    levels = tuple(replace(level, link=prompt(level.link)) for level in link.levels)
    return replace(link, latency=link.latency / 2, levels=levels)


@every
@few
@given(seed=seeds)
def test_any_plan_passes_the_checks(schedules: str, seed: int) -> None:
    """The plan and its runners-up fit devices, nodes, memory and batch, and their figures are in order."""
    asked = problem(seed, schedules)
    outcome = planned(asked)
    if outcome is None:
        return
    for plan in (outcome.plan, *(other.plan for other in outcome.alternatives)):
        costs = plan_cost(plan, asked.cluster, asked.model, asked.job, asked.framework)
        context = Context(plan=plan, cluster=asked.cluster, model=asked.model, job=asked.job, stages=costs.stages)
        assert not run_checks(context)
    certificate = outcome.certificate
    assert certificate.lower_bound <= certificate.objective
    assert certificate.replay_lower_bound <= outcome.prediction.step_time * (1 + 1e-9)
    assert outcome.prediction.fits


@every
@few
@given(seed=seeds)
def test_more_memory_never_costs_time(schedules: str, seed: int) -> None:
    """With half as much memory again on every device, the optimum is no later."""
    asked = problem(seed, schedules)
    more = with_groups(asked, lambda g: replace(g, device=replace(g.device, memory=1.5 * g.device.memory)))
    assert objective(more) <= objective(asked) + ROUNDING


@every
@few
@given(seed=seeds)
def test_more_bandwidth_never_costs_time(schedules: str, seed: int) -> None:
    """With links three times as fast, the optimum is no later."""
    asked = problem(seed, schedules)
    assert objective(replace(asked, cluster=sped(asked.cluster, 3.0))) <= objective(asked) + ROUNDING


@every
@few
@given(seed=seeds)
def test_more_nodes_never_cost_time(schedules: str, seed: int) -> None:
    """With another node in every group that has several, the optimum is no later; devices may idle.

    Replicas have equal shares: a number of them that divides the devices but not the batch goes when devices come.
    """
    asked = problem(seed, schedules, "replicas = equal", most_devices=6)
    more = with_groups(asked, lambda g: replace(g, num_nodes=g.num_nodes + 1) if g.num_nodes > 1 else g)
    assert objective(more) <= objective(asked) + ROUNDING


@every
@few
@given(seed=seeds)
def test_another_group_never_costs_time(schedules: str, seed: int) -> None:
    """With a group more, the optimum is no later; replicas have equal shares, as above."""
    asked = problem(seed, schedules, "replicas = equal", most_devices=6)
    first = asked.cluster.groups[0]
    more = replace(asked.cluster, groups=(*asked.cluster.groups, replace(first, name="more", num_nodes=1)))
    assert objective(replace(asked, cluster=more)) <= objective(asked) + ROUNDING


@few
@given(seed=seeds)
def test_order_and_names_of_groups_do_not_matter(seed: int) -> None:
    """Groups reversed and renamed give the same optimum."""
    asked = drawn(seed, topology=True)
    assume(not asked.job.constraints)
    names = {group.name: f"{group.name}-renamed" for group in asked.cluster.groups}
    groups = tuple(replace(group, name=names[group.name]) for group in reversed(asked.cluster.groups))
    links = tuple(replace(ln, first=names[ln.second], second=names[ln.first]) for ln in asked.cluster.links)
    again = replace(asked, cluster=replace(asked.cluster, groups=groups, links=links))
    assert objective(again) == pytest.approx(objective(asked), abs=ROUNDING)


def unlaunched(framework: Framework) -> Framework:
    """Return the profile without what the host takes."""
    return replace(
        framework,
        launch_floor=0.0,
        launch_edge=0.0,
        launch_tensor=0.0,
        launch_tensor_pipeline=0.0,
        collective_latency=0.0,
        hop_latency=0.0,
    )


@few
@given(seed=seeds)
def test_twice_as_fast_is_half_as_long(seed: int) -> None:
    """Devices and links twice as fast with half the latency: half the step."""
    asked = drawn(seed, topology=True)
    asked = replace(asked, framework=unlaunched(asked.framework))

    def faster(group: DeviceGroup) -> DeviceGroup:
        device = replace(
            group.device,
            memory_bandwidth=2 * group.device.memory_bandwidth,
            peak_flops=tuple((name, 2 * peak) for name, peak in group.device.peak_flops),
        )
        return replace(
            group,
            device=device,
            intra_node=prompt(group.intra_node),
            inter_node=replace(group.inter_node, latency=group.inter_node.latency / 2),
        )

    twice = with_groups(replace(asked, cluster=sped(asked.cluster, 2.0)), faster)
    links = tuple(replace(link, latency=link.latency / 2) for link in twice.cluster.links)
    twice = replace(twice, cluster=replace(twice.cluster, links=links))
    assert 2 * objective(twice) == pytest.approx(objective(asked), abs=3 * ROUNDING)


@few
@given(seed=seeds)
def test_plan_files_round_trip(seed: int) -> None:
    """What is written of a plan, its cluster, model and job is read back unchanged."""
    asked = drawn(seed, topology=True)
    outcome = planned(asked)
    if outcome is None:
        return
    record = plan_record(outcome.plan, asked.cluster, asked.model, asked.job, outcome.certificate, outcome.prediction)
    again = plan_from_document(Document(value=record, origin="plan"))
    assert again.plan == outcome.plan
    assert again.certificate == outcome.certificate
    assert again.job == asked.job
    assert again.edited == ()
    assert again.model == asked.model
    assert again.cluster == asked.cluster


@few
@given(seed=seeds)
@example(0)
def test_the_same_input_gives_the_same_plan(seed: int) -> None:
    """Twice the same problem, twice the same plan, certificate and runners-up."""
    first, second = planned(drawn(seed, topology=True)), planned(drawn(seed, topology=True))
    if first is None or second is None:
        assert first is second
        return
    assert first.plan == second.plan
    assert first.certificate == second.certificate
    assert first.alternatives == second.alternatives
