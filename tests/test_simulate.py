"""The replay of a step, the bound below it, and the prediction that is made of it."""

# ruff: noqa: ARG002, S311 (a fake layer ignores what it is asked with; cases are drawn, not secrets)

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import pytest

from pipelines import SPELLED, drawn
from planner.costs import Hop, PlanCost, StageCost
from planner.domain.cluster import Cluster, Device, DeviceGroup, Link, Network
from planner.domain.job import Job
from planner.domain.model import Model, Shard, Work
from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import busiest_stage
from planner.report.explain import binding
from planner.report.plan import where_time_goes
from planner.report.to_json import prediction_record
from planner.schedules import Schedule, schedule
from planner.simulate import lower_bound, predict, replay
from planner.simulate.rank import Rank

ONE_F_ONE_B = schedule("1f1b")


@pytest.mark.parametrize("listed", SPELLED, ids=lambda listed: listed.name)
def test_skipping_repetition_changes_nothing(listed: Schedule) -> None:
    """Counting what repeats gives bit for bit the result of running it."""
    draw = random.Random(7)
    for _ in range(300):
        times = drawn(draw, 120, listed).times
        assert replay(listed, *times) == replay(listed, *times, skip=False)


def test_repetition_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4 stages x 2 x 1,000 passes with a slowest stage, only those around the steady stretch are run."""
    run = []
    advance = Rank.advance

    def counting(rank: Rank, limit: int) -> bool:
        begun = rank.position
        ran = advance(rank, limit)
        run.append(rank.position - begun)
        return ran

    monkeypatch.setattr(Rank, "advance", counting)
    replay(ONE_F_ONE_B, [1.0, 1.0, 1.5, 1.0], [2.0, 2.0, 3.0, 2.0], [0.1] * 3, [0.1] * 3, [0.0] * 4, 1000)
    assert sum(run) < 0.05 * 8000


def test_lower_bound_is_below_every_replay() -> None:
    """No schedule beats the bound; one stage alone meets it."""
    draw = random.Random(11)
    for listed in SPELLED:
        for _ in range(1000):
            pipeline = drawn(draw, 40, listed)
            bound = lower_bound(*pipeline.times)
            observed = replay(listed, *pipeline.times).step_time
            assert bound <= observed * (1 + 1e-12)
            if len(pipeline.forward) == 1:
                assert bound == pytest.approx(observed)


def test_lower_bound_by_hand() -> None:
    """Two stages, 3 micro-batches: f = 1, 2 s, b = 2, 4 s, hops 0.5 and 0.25 s, sync 1 and 2 s.

    From stage 0: 3 x 3 + 1 = 10. From stage 1: 1 + 0.5 before it, 3 x 6 of its own, then the larger of its sync 2 and
    of stage 0's last backward pass and sync, 2 + 0.25 + 1 = 3.25: 22.75 s.
    """
    assert lower_bound([1, 2], [2, 4], [0.5], [0.25], [1, 2], 3) == pytest.approx(22.75)


def test_transfers_delay_and_queue() -> None:
    """A gpipe pair with f = 1, b = 1 s and a forward transfer of 3 s, two micro-batches.

    Stage 0 ends F0, F1 at 1, 2 s; the link carries them at 1-4 and 4-7 s. Stage 1: F0 4-5, F1 7-8, B0 8-9, B1 9-10.
    The backward transfers of 0.5 s end at 9.5 and 10.5; stage 0: B0 9.5-10.5, B1 10.5-11.5.
    """
    observed = replay(schedule("gpipe"), [1.0, 1.0], [1.0, 1.0], [3.0], [0.5], [0.0, 0.0], 2)
    assert observed.finish == pytest.approx((11.5, 10.0))
    assert observed.start == pytest.approx((0.0, 4.0))
    assert observed.busy == pytest.approx((4.0, 4.0))
    assert observed.idle == pytest.approx((7.5, 7.5))


def test_the_latest_exchange_ends_the_step() -> None:
    """Two equal stages, f = b = 1 s, one micro-batch: passes end at 4 s and 3 s, so that a sync of 5 s ends at 8 s."""
    observed = replay(ONE_F_ONE_B, [1.0, 1.0], [1.0, 1.0], [0.0], [0.0], [0.5, 5.0], 1)
    assert observed.step_time == pytest.approx(8.0)
    assert observed.makespan == pytest.approx(4.0)


def test_scaling_all_times_scales_the_step() -> None:
    """Twice as slow is twice as long."""
    draw = random.Random(3)
    for _ in range(50):
        pipeline = drawn(draw, 20)
        *rows, num = pipeline.times
        doubled = [[2 * value for value in row] for row in rows]
        slow = replay(ONE_F_ONE_B, doubled[0], doubled[1], doubled[2], doubled[3], doubled[4], num)
        assert slow.step_time == pytest.approx(2 * replay(ONE_F_ONE_B, *pipeline.times).step_time, rel=1e-9)


def test_a_stuck_schedule_names_what_each_stage_waits_for() -> None:
    """Stage 0 wants micro-batch 0 back before stage 1, which wants both first, can run it."""

    def order(stage: int, _num_stages: int, _num_microbatches: int) -> str:
        return "FBFB" if stage == 0 else "FFBB"

    stuck = replace(ONE_F_ONE_B, name="stuck", order=order)
    with pytest.raises(AssertionError, match=r"stage 0 waits for the input of B0; stage 1 waits for the input of F1"):
        replay(stuck, [1.0, 1.0], [1.0, 1.0], [0.0], [0.0], [0.0, 0.0], 2)


@pytest.mark.parametrize(("text", "message"), [("FFB", "stage 0: order"), ("BFFB", "goes backward before")])
def test_an_impossible_order_is_our_bug(text: str, message: str) -> None:
    """Orders with a pass too few, or backward before forward, never enter the replay."""
    broken = replace(ONE_F_ONE_B, order=lambda *_: text)
    with pytest.raises(AssertionError, match=message):
        replay(broken, [1.0], [1.0], [], [], [0.0], 2)


@dataclass(frozen=True, slots=True)
class FlatLayer:
    """A layer with a given number of FLOP, whatever the sequence."""

    forward_flops: float
    kind: str = "flat"
    parameters: int = 10

    def flops(self, sequence: int) -> float:
        """Return the FLOP of the forward pass."""
        return self.forward_flops

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Return no limits."""
        return ()

    def work(self, shard: Shard) -> Work:
        """Return no work: the costs are given."""
        return Work()


def device(name: str, memory: float, **peaks: float) -> Device:
    return Device(
        name=name,
        memory=memory,
        memory_bandwidth=1e12,
        peak_flops=tuple(peaks.items()),
        matmul_efficiency=0.7,
        attention_efficiency=0.5,
        fused_attention=True,
    )


def group(name: str, of: Device) -> DeviceGroup:
    return DeviceGroup(
        name=name,
        device=of,
        num_nodes=2,
        devices_per_node=4,
        intra_node=Link(name="fast", bandwidth=1e11, efficiency=1.0, latency=0.0),
        inter_node=Network(name="slow", bandwidth=1e10, efficiency=1.0, latency=0.0),
    )


CLUSTER = Cluster(
    name="two kinds",
    groups=(group("new", device("new", 100.0, bf16=20.0, fp16=15.0)), group("old", device("old", 50.0, fp16=10.0))),
)
MODEL = Model(
    name="flat",
    family="flat",
    embedding=FlatLayer(0.0),
    body=FlatLayer(2.0),
    head=FlatLayer(1.0),
    num_layers=4,
    hidden=8,
    max_sequence=16,
    tied=False,
    spec=(),
)
JOB = Job(global_batch=12, sequence=16, precision="bf16", framework="megatron", headroom=0.1)
PLAN = Plan(
    stages=(
        Stage(group="new", first_layer=0, last_layer=2, strategy=Strategy(degrees=(("tp", 2),))),
        Stage(group="old", first_layer=3, last_layer=3, strategy=Strategy()),
    ),
    schedule="1f1b",
    num_replicas=2,
    micro_batch=1,
    num_microbatches=6,
    zero_stage=0,
)


def stage_cost(forward: float, backward: float, sync: float) -> StageCost:
    return StageCost(
        forward=forward,
        backward=backward,
        sync=sync,
        memory=(("weights", 30.0), ("activations", 40.0)),
        peaks=(("forward_backward", 70.0), ("optimizer_creation", 60.0), ("optimizer_step", 70.0)),
        parts=(("matmul", forward + 0.5 * backward), ("attention", 0.5 * backward)),
        in_flight=1,
    )


COSTS = PlanCost(
    stages=(stage_cost(1.0, 2.0, 0.5), stage_cost(2.0, 4.0, 0.25)),
    hops=(Hop(forward=0.5, backward=0.5),),
    step_overhead=0.25,
)


def test_prediction_by_hand() -> None:
    """Six micro-batches of 3 s on stage 0 and 6 s on stage 1, hops of 0.5 s each way.

    Stage 1 begins at 1.5 s and is never starved (stage 0 is two micro-batches ahead): it ends at 1.5 + 36 = 37.5 s. The
    last gradients arrive at 38 s, stage 0 ends at 40 s and, with its sync, at 40.5 s; 0.25 s of overhead: 40.75 s.
    Busiest is stage 1: 24 s of matmul and 12 s of attention, 0.25 s of sync, and 40.5 - 36 - 0.25 = 4.25 s of waiting.
    Idle share: 1 - (18 + 36) / (2 x 40). MFU: 12 samples of 3 x (4 x 2 + 1) FLOP in 40.75 s, of 2 x (2 x 20 + 10) FLOP/s.
    """  # noqa: E501 (arithmetic stays on a line)
    prediction = predict(PLAN, COSTS, CLUSTER, MODEL, JOB)
    assert prediction.step_time == pytest.approx(40.75)
    parts = {"matmul": 24.0, "attention": 12.0, "pipeline_bubble": 4.25, "sync": 0.25, "step_overhead": 0.25}
    assert dict(prediction.time) == pytest.approx(parts)
    assert prediction.bubble_fraction == pytest.approx(1 - 54 / 80)
    assert prediction.model_flops_utilization == pytest.approx(12 * 27 / (40.75 * 100))
    assert prediction.tokens_per_second == pytest.approx(12 * 16 / 40.75)
    assert prediction.samples_per_second == pytest.approx(12 / 40.75)
    assert prediction.num_devices == 6


def test_waiting_for_what_was_sent_is_no_work() -> None:
    """One micro-batch, 3 s on stage 0 and 4 s on stage 1, which wait 3 s for activations sent and 1 s for gradients.

    F0 0-1, sent by 4, F1 4-5, B1 5-8, sent by 9, B0 9-11. Stage 0 waits longer than stage 1, which works longer and is
    the busiest: of 11 s 4 s of passes, 1 s of transfers, and 6 s for others. Both work 7 s of 2 x 11 s.
    """
    stages = (stage_cost(1.0, 2.0, 0.0), stage_cost(1.0, 3.0, 0.0))
    costs = PlanCost(stages=stages, hops=(Hop(forward=3.0, backward=1.0),), step_overhead=0.0, blocking=True)
    plan = replace(PLAN, num_microbatches=1)
    prediction = predict(plan, costs, CLUSTER, MODEL, JOB)
    passes = {"matmul": 2.5, "attention": 1.5, "stage_transfers": 1.0}
    waiting = {"pipeline_bubble": 6.0, "sync": 0.0, "step_overhead": 0.0}
    assert dict(prediction.time) == pytest.approx(passes | waiting)
    assert prediction.bubble_fraction == pytest.approx(1 - 7 / 22)
    assert busiest_stage(plan, prediction.stages) == 1
    assert where_time_goes(plan, prediction)[0] == "where a step goes (stage 1, the busiest)"
    assert prediction_record(plan, prediction)["busiest_stage"] == 1
    assert "stage 1 on old is the bottleneck" in binding(plan, prediction)[0]


def test_the_busiest_stage_is_that_of_all_kinds_of_pipelines() -> None:
    """Beside the pipeline of 40 s one of a single stage works 10 x 3.9 s: longest of all, and it waits a second.

    Stage 1 works 36 s. The exchange of 0.5 s, that of stage 0, follows both; of the step of 40.75 s 39 s are passes.
    """
    stage = stage_cost(1.3, 2.6, 0.25)
    other = replace(PLAN, stages=(replace(PLAN.stages[1], first_layer=0),), num_microbatches=10)
    plan = replace(PLAN, other_pipelines=(other,))
    costs = replace(COSTS, others=(PlanCost(stages=(stage,), hops=(), step_overhead=0.25),))
    prediction = predict(plan, costs, CLUSTER, MODEL, JOB)
    assert busiest_stage(plan, prediction.stages) == 2
    parts = {"matmul": 26.0, "attention": 13.0, "pipeline_bubble": 1.0, "sync": 0.5, "step_overhead": 0.25}
    assert dict(prediction.time) == pytest.approx(parts)


def test_prediction_of_memory() -> None:
    """70 bytes fit into 100 less a tenth, and not into 50 less a tenth; 1f1b holds 2 and 1 micro-batches.

    Of two equal peaks the one that a run meets first is told; 70 of 50 bytes are a pressure of 1.4.
    """
    first, second = predict(PLAN, COSTS, CLUSTER, MODEL, JOB).stages
    assert (first.memory_limit, second.memory_limit) == pytest.approx((90.0, 45.0))
    assert (first.fits, second.fits) == (True, False)
    assert (first.in_flight, second.in_flight) == (2, 1)
    assert first.peak_at == "forward_backward"
    assert (first.pressure, second.pressure) == pytest.approx((0.7, 1.4))


def test_parts_sum_to_the_step_exactly() -> None:
    """The printed parts add up to the printed step, to the last bit, also where nothing waits."""
    draw = random.Random(5)
    for _ in range(200):
        stages = tuple(stage_cost(draw.uniform(0.1, 1), draw.uniform(0.1, 2), draw.uniform(0, 1)) for _ in range(2))
        costs = replace(COSTS, stages=stages)
        prediction = predict(PLAN, costs, CLUSTER, MODEL, JOB)
        assert sum(seconds for _, seconds in prediction.time) == prediction.step_time
        alone = replace(PLAN, stages=PLAN.stages[:1])
        prediction = predict(alone, replace(costs, stages=stages[:1], hops=()), CLUSTER, MODEL, JOB)
        assert sum(seconds for _, seconds in prediction.time) == prediction.step_time
        assert dict(prediction.time)["pipeline_bubble"] == pytest.approx(0.0, abs=1e-9)


def test_unknown_peak_gives_no_utilization() -> None:
    """A device without a 16-bit peak has no utilization to speak of."""
    cluster = replace(CLUSTER, groups=tuple(group(name, device(name, 100.0)) for name in ("new", "old")))
    assert predict(PLAN, COSTS, cluster, MODEL, JOB).model_flops_utilization == 0.0
