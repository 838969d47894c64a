"""What weights cost that are stashed or predicted, and updates after each micro-batch: memory, time and traffic."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

import builders
from planner.costs import PlanCost, plan_cost
from planner.costs.compute import MEMORY_EFFICIENCY
from planner.costs.traffic import plan_traffic
from planner.domain.framework import Framework
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import Prediction
from planner.simulate import predict, timeline

CLUSTER = builders.cluster(builders.group(nodes=2, per_node=4))
MODEL = builders.model(16)
JOB = builders.job(global_batch=16)
BATCHES = 8


def plan(name: str, zero: int = 0) -> Plan:
    """Return four stages of four layers, on a device each, in two replicas."""
    stages = tuple(
        Stage(group="chips", first_layer=4 * index, last_layer=4 * index + 3, strategy=Strategy()) for index in range(4)
    )
    return Plan(stages=stages, schedule=name, num_replicas=2, micro_batch=1, num_microbatches=BATCHES, zero_stage=zero)


def priced(name: str, zero: int = 0, **changes: object) -> PlanCost:
    """Return the costs of such a plan."""
    return plan_cost(plan(name, zero), CLUSTER, MODEL, JOB, builders.framework(**changes))


def predicted(name: str, zero: int = 0) -> Prediction:
    """Return its prediction."""
    return predict(plan(name, zero), priced(name, zero), CLUSTER, MODEL, JOB)


def parts(costs: PlanCost, name: str) -> list[float]:
    """Return [bytes] of a part of every stage's memory."""
    return [dict(stage.memory)[name] for stage in costs.stages]


@pytest.mark.parametrize(
    ("name", "versions"),
    [
        ("pipedream", (4, 3, 2, 1)),
        ("spectrain", (2, 2, 2, 2)),
        ("xpipe", (2, 2, 2, 2)),
        ("pipedream-2bw", (2, 2, 2, 2)),
    ],
)
def test_memory_is_micro_batches_in_flight_and_versions(name: str, versions: tuple[int, ...]) -> None:
    """Activations, gradients and states are those of 1f1b; the weights are held as often as there are versions."""
    plain, other = priced("1f1b"), priced(name)
    for part in ("activations", "gradients", "optimizer", "logits"):
        assert parts(other, part) == pytest.approx(parts(plain, part))
    once = parts(plain, "weights")
    assert parts(other, "weights") == pytest.approx([size * of for size, of in zip(once, versions, strict=True)])
    assert [stage.in_flight for stage in other.stages] == [4, 3, 2, 1]


def test_the_optimizer_steps_while_others_are_in_flight() -> None:
    """Its peak has the activations of P - 1 - r micro-batches, where a step that ends has none."""
    plain, other = (priced(name, update_temporary_bytes=4.0) for name in ("1f1b", "pipedream-2bw"))
    for rank, (before, after) in enumerate(zip(plain.stages, other.stages, strict=True)):
        weights = dict(after.memory)["weights"] / 2
        grown = dict(after.peaks)["optimizer_step"] - dict(before.peaks)["optimizer_step"] - weights
        assert grown == pytest.approx((3 - rank) * after.levels.held)


def test_every_micro_batch_has_an_exchange_and_an_update() -> None:
    """The bottleneck exchanges and updates M times, 2BW once; it works that much longer."""
    once, each = predicted("pipedream-2bw"), predicted("pipedream")
    slowest = max(range(4), key=lambda rank: once.stages[rank].time)
    assert each.stages[slowest].sync == pytest.approx(BATCHES * once.stages[slowest].sync)
    assert each.step_time == pytest.approx(once.step_time + (BATCHES - 1) * once.stages[slowest].sync)
    assert dict(each.time)["sync"] == pytest.approx(each.stages[slowest].sync)
    assert sum(seconds for _, seconds in each.time) == each.step_time
    rings = [
        plan_traffic(plan(name), CLUSTER, MODEL, JOB, builders.framework())[0].rings
        for name in ("pipedream-2bw", "pipedream")
    ]
    assert rings[1] == pytest.approx([BATCHES * size for size in rings[0]])


@pytest.mark.parametrize(("name", "times"), [("spectrain", (1, 1, 2, 1)), ("xpipe", (2, 2, 2, 1))])
def test_a_prediction_is_a_pass_over_memory(name: str, times: tuple[int, ...]) -> None:
    """12 bytes of states are read and 2 written, a parameter; master weights are 4 of the 12. Nothing is sharded."""
    plain, other = priced("pipedream-2bw"), priced(name)
    rate = MEMORY_EFFICIENCY * CLUSTER.groups[0].device.memory_bandwidth
    for before, after, number in zip(plain.stages, other.stages, times, strict=True):
        parameters = dict(after.memory)["optimizer"] / 12
        assert after.prediction == pytest.approx(number * 14 * parameters / rate)
        assert after.sync == pytest.approx(before.sync + after.prediction)
        assert after.update == pytest.approx(before.update + after.prediction)


def test_states_that_lack_a_master_copy_read_the_weights_themselves() -> None:
    """In fp32: 8 bytes of moments and 4 of the weight are read, 4 written."""
    job = builders.job(global_batch=16, precision="fp32")
    cluster = builders.cluster(
        replace(CLUSTER.groups[0], device=replace(CLUSTER.groups[0].device, peak_flops=(("fp32", 1e13),)))
    )
    stage = plan_cost(plan("xpipe"), cluster, MODEL, job, builders.framework()).stages[0]
    parameters = dict(stage.memory)["optimizer"] / 8
    assert stage.prediction == pytest.approx(2 * 16 * parameters / (MEMORY_EFFICIENCY * 1e12))


def test_shards_are_predicted_and_gathered() -> None:
    """ZeRO 1 on two replicas halves the pass; rank 0 gathers once more, and the last, which needs one set, does not.

    ZeRO 3 gathers around every layer anyway.
    """
    whole, shards, all_shards = (priced("xpipe", zero) for zero in (0, 1, 3))
    last = shards.stages[3].prediction
    assert last == pytest.approx(whole.stages[3].prediction / 2)
    assert shards.stages[0].prediction > whole.stages[0].prediction / 2
    assert all_shards.stages[0].prediction == pytest.approx(whole.stages[0].prediction / 2)
    rings = [
        plan_traffic(plan(name, 1), CLUSTER, MODEL, JOB, builders.framework())[0].rings
        for name in ("pipedream-2bw", "xpipe")
    ]
    assert rings[1][3] == rings[0][3]
    assert rings[1][0] > rings[0][0]


@pytest.mark.parametrize("name", ["spectrain", "xpipe"])
def test_predictions_are_a_part_of_the_step(name: str) -> None:
    """On the busiest stage; the parts sum to the step."""
    found = predicted(name, 1)
    costs = priced(name, 1).stages
    updates = BATCHES if name == "spectrain" else 1
    time = dict(found.time)["weight_prediction"]
    assert any(time == pytest.approx(updates * cost.prediction) for cost in costs)
    assert sum(seconds for _, seconds in found.time) == found.step_time


def test_a_timeline_has_all_updates() -> None:
    """One behind every backward pass, before the next pass, while its result is on the way."""
    framework: Framework = builders.framework()
    costs = plan_cost(plan("pipedream"), CLUSTER, MODEL, JOB, framework)
    found = timeline(plan("pipedream"), costs)
    for stage, cost in enumerate(costs.stages):
        updates = [one for one in found.lane(stage, "compute") if one.name == "optimizer"]
        exchanges = found.lane(stage, "dp")
        backward = [one for one in found.passes[stage] if one.name == "B"]
        assert [one.start for one in exchanges] == [one.end for one in backward]
        assert [one.end for one in updates] == pytest.approx([one.end + cost.sync for one in backward])
        for before, after in pairwise(sorted([*found.passes[stage], *updates], key=lambda one: one.start)):
            assert before.end <= after.start + 1e-12
