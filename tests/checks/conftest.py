"""A small plan that passes every check; a test replaces only what matters to it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from planner.checks import Context
from planner.domain.cluster import Cluster, Device, DeviceGroup, Link, Network
from planner.domain.job import Job
from planner.domain.model import Model, Shard, Work
from planner.domain.plan import Plan, Stage, Strategy
from planner.units import GIB


@dataclass(frozen=True, slots=True)
class FakeLayer:
    """A layer of which only the limits matter."""

    heads: int = 0
    kind: str = "fake"
    parameters: int = 1

    def flops(self, sequence: int) -> float:
        """Return one FLOP a token."""
        return float(sequence)

    def limits(self) -> tuple[tuple[str, int], ...]:
        """Return the heads, if there are any."""
        return (("attention heads", self.heads),) if self.heads else ()

    def work(self, shard: Shard) -> Work:  # noqa: ARG002 (the protocol's argument)
        """Return no work."""
        return Work()


@dataclass(frozen=True, slots=True)
class FakeMemory:
    """Memory of a stage by part [bytes]."""

    memory: tuple[tuple[str, float], ...]
    moment: str = "forward_backward"
    """When it is fullest."""

    @property
    def peaks(self) -> tuple[tuple[str, float], ...]:
        """Return the one peak."""
        return ((self.moment, sum(size for _, size in self.memory)),)


def device(name: str, memory: float) -> Device:
    return Device(
        name=name,
        memory=memory,
        memory_bandwidth=1e12,
        peak_flops=(("bf16", 1e14),),
        matmul_efficiency=0.7,
        attention_efficiency=0.5,
        fused_attention=True,
    )


def group(name: str, of: Device, num_nodes: int, devices_per_node: int) -> DeviceGroup:
    return DeviceGroup(
        name=name,
        device=of,
        num_nodes=num_nodes,
        devices_per_node=devices_per_node,
        intra_node=Link(name="fast", bandwidth=1e11, efficiency=1.0, latency=0.0),
        inter_node=Network(name="slow", bandwidth=1e10, efficiency=1.0, latency=0.0),
    )


@pytest.fixture
def sound() -> Context:
    """Two stages of 5 and 3 layers, tp 4 on 8 new and tp 2 on 4 old devices, two replicas of 6 micro-batches."""
    return Context(
        plan=Plan(
            stages=(
                Stage(group="new", first_layer=0, last_layer=4, strategy=Strategy(degrees=(("tp", 4),))),
                Stage(group="old", first_layer=5, last_layer=7, strategy=Strategy(degrees=(("tp", 2),))),
            ),
            schedule="1f1b",
            num_replicas=2,
            micro_batch=1,
            num_microbatches=6,
            zero_stage=1,
        ),
        cluster=Cluster(
            name="two kinds",
            groups=(group("new", device("new-80gb", 80 * GIB), 1, 8), group("old", device("old-16gb", 16 * GIB), 2, 2)),
        ),
        model=Model(
            name="fake",
            family="fake",
            embedding=FakeLayer(),
            body=FakeLayer(heads=12),
            head=FakeLayer(),
            num_layers=8,
            hidden=8,
            max_sequence=1024,
            tied=False,
            spec=(),
        ),
        job=Job(global_batch=12, sequence=1024, precision="bf16", framework="megatron", headroom=0.25),
        stages=(
            FakeMemory((("weights", 20 * GIB), ("activations", 40 * GIB))),
            FakeMemory((("weights", 5 * GIB), ("activations", 7 * GIB))),
        ),
    )
