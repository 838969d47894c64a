"""Small clusters, models and jobs, of which a test states only what matters to it; and random problems by seed."""

# ruff: noqa: S311 (problems are drawn, not secrets)

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache

from planner.candidates import Space, find_space
from planner.domain.cluster import Cluster, Device, DeviceGroup, GroupLink, Level, Link, Network
from planner.domain.framework import Framework
from planner.domain.job import Constraint, Job
from planner.domain.model import Model
from planner.specs.catalog import framework as catalogued
from planner.specs.constraints import parse_constraint
from planner.specs.model import model_from_record
from planner.units import GBIT, GIB

SEQUENCE = 384
"""[tokens] a multiple of every width that is tried."""
PEAK = 1e13
"""[FLOP/s] slow, so that a step takes milliseconds and a nanosecond is little."""


def device(name: str = "chip", *, speed: float = 1.0, memory: float = 80 * GIB) -> Device:
    return Device(
        name=name,
        memory=memory,
        memory_bandwidth=1e12 * speed,
        peak_flops=(("bf16", PEAK * speed),),
        matmul_efficiency=0.7,
        attention_efficiency=0.5,
        fused_attention=True,
    )


def group(
    name: str = "chips",
    *,
    nodes: int = 1,
    per_node: int = 4,
    speed: float = 1.0,
    memory: float = 80 * GIB,
    intra: float = 1e11,
    inter: float = 1e10,
    latency: float = 0.0,
) -> DeviceGroup:
    return DeviceGroup(
        name=name,
        device=device(name, speed=speed, memory=memory),
        num_nodes=nodes,
        devices_per_node=per_node,
        intra_node=Link(name="inside", bandwidth=intra, efficiency=1.0, latency=latency),
        inter_node=Network(name="between", bandwidth=inter, efficiency=1.0, latency=latency, rails=per_node),
    )


def cluster(*groups: DeviceGroup, links: tuple[GroupLink, ...] = ()) -> Cluster:
    return Cluster(name="small", groups=groups or (group(),), links=links)


@cache
def model(
    num_layers: int = 4, *, heads: int = 4, head_dim: int = 64, vocabulary: int = 4096, tied: bool = False
) -> Model:
    hidden = 12 * head_dim
    record = {
        "name": "small",
        "family": "llama",
        "hidden_size": hidden,
        "num_hidden_layers": num_layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": head_dim,
        "intermediate_size": 4 * hidden,
        "vocab_size": vocabulary,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": tied,
    }
    return model_from_record(record, "small")


def constraints(*texts: str) -> tuple[Constraint, ...]:
    return tuple(parse_constraint(text) for text in texts)


def job(global_batch: int = 4, *texts: str, gap: float = 0.0, **rest: object) -> Job:
    base = Job(
        global_batch=global_batch,
        sequence=SEQUENCE,
        precision="bf16",
        framework="megatron",
        headroom=0.0,
        gap=gap,
        constraints=constraints(*texts),
    )
    return replace(base, **rest)  # type: ignore[arg-type]


def framework(**changes: object) -> Framework:
    """Return a framework without overheads: what a step takes is layers, links and nothing else."""
    free: dict[str, object] = {
        "launch_floor": 0.0,
        "collective_latency": 0.0,
        "hop_latency": 0.0,
        "step_overhead": 0.0,
        "fragmentation": 1.0,
        "outside_allocator": 0.0,
    }
    return replace(catalogued("megatron"), **{**free, **changes})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planning:
    """Everything that a search is asked."""

    cluster: Cluster
    model: Model
    job: Job
    framework: Framework
    target: Framework | None = None

    @property
    def space(self) -> Space:
        """What the program chooses from."""
        return find_space(self.cluster, self.model, self.job, self.framework, self.target)


def planning(
    cluster_: Cluster | None = None,
    model_: Model | None = None,
    job_: Job | None = None,
    framework_: Framework | None = None,
    target: Framework | None = None,
) -> Planning:
    return Planning(
        cluster=cluster_ or cluster(),
        model=model_ or model(),
        job=job_ or job(),
        framework=framework_ or framework(),
        target=target,
    )


def drawn(
    seed: int,
    *,
    most_devices: int = 8,
    most_layers: int = 8,
    target: bool = False,
    context: bool = False,
    topology: bool = False,
) -> Planning:
    """Return the random problem of a seed, small enough to try every plan.

    Groups of 1-4 (sometimes 6) devices a node and of unlike speed; memory that holds the model easily, barely or not;
    links from fast to so slow that transfers pace the pipeline. With `context`, context degrees are asked for; with
    `topology`, some groups have levels below the node, unlike rails and slow small messages.
    """
    draw = random.Random(seed)
    num_groups = draw.choice((1, 1, 2, 2, 2, 3))
    left = draw.randint(max(2, num_groups), most_devices)
    wanted = model(
        draw.randint(2, most_layers),
        heads=draw.choice((1, 2, 3, 4, 6, 12)),
        head_dim=draw.choice((32, 64)),
        vocabulary=draw.choice((1200, 24000)),
        tied=draw.random() < 0.4,
    )
    tight = draw.choice((0.5, 1.0, 1.5, 2.0, 3.0, 1000.0))
    share = 18 * wanted.parameters / left
    groups = []
    for index in range(num_groups):
        most = max(1, left - (num_groups - 1 - index))
        per_node = draw.choice([size for size in (1, 2, 3, 3, 4, 6) if size <= most])
        nodes = draw.randint(1, max(1, most // per_node)) if index < num_groups - 1 else max(1, most // per_node)
        left -= nodes * per_node
        groups.append(
            group(
                f"g{index}",
                nodes=nodes,
                per_node=per_node,
                speed=draw.choice((1.0, 1.0, 0.5, 2.0, 3.3)),
                memory=share * tight * draw.choice((1.0, 1.0, 0.7, 2.0)) + 5e7,
                intra=draw.choice((1e12, 1e11, 1e10, 1e9)),
                inter=draw.choice((1e11, 1e10, 1e9, 2e8)),
                latency=draw.choice((0.0, 1e-5, 1e-3)),
            )
        )
    links = []
    if num_groups > 1 and draw.random() < 0.4:
        rate = draw.choice((1e10, 1e9, 1e8))
        links.append(GroupLink(first="g0", second="g1", transport="tcp", bandwidth=rate, efficiency=1.0, latency=1e-5))
    if topology:
        groups = [_with_topology(one, random.Random(f"{seed} {one.name}")) for one in groups]
    second = "deepspeed" if context else "megatron-deepspeed"
    return Planning(
        cluster=cluster(*groups, links=tuple(links)),
        model=wanted,
        job=job(
            draw.choice((1, 2, 3, 4, 4, 5, 6, 7, 8, 8)), *_some_constraints(draw), *(("cp <= 4",) if context else ())
        ),
        framework=framework(
            hop_latency=draw.choice((0.0, 1e-5)),
            launch_floor=draw.choice((0.0, 1e-4)),
            overlap_replicated=draw.choice((0.0, 0.5, 1.0)),
        ),
        target=catalogued(draw.choice(("megatron", second, "torchtitan"))) if target else None,
    )


def _with_topology(group: DeviceGroup, draw: random.Random) -> DeviceGroup:
    """Return the group, every second with parts of its nodes on a faster link, unlike rails and slow small messages."""
    if draw.random() < 0.5:
        return group
    inside, between = group.intra_node, group.inter_node
    if parts := [size for size in (2, 3) if group.devices_per_node % size == 0 and group.devices_per_node > size]:
        faster = replace(inside, bandwidth=4 * inside.bandwidth, latency=inside.latency / 2)
        inside = replace(inside, levels=(Level(num_devices=draw.choice(parts), link=faster),))
    rate = round(between.bandwidth / between.rails / GBIT, 3)
    rails = tuple(rate * draw.choice((1.0, 1.0, 0.5)) * GBIT for _ in range(between.rails))
    striping = draw.choice(("pooled", "static"))
    bandwidth = sum(rails) if striping == "pooled" else len(rails) * min(rails)
    half = draw.choice((0.0, 4096.0, 1e6))
    between = replace(between, bandwidth=bandwidth, rail_rates=rails, striping=striping, half_size=half)
    return replace(group, intra_node=replace(inside, half_size=half / 8), inter_node=between)


def _some_constraints(draw: random.Random) -> tuple[str, ...]:
    if draw.random() < 0.7:
        return ()
    texts = (
        "tp <= 2",
        "tp = 1",
        "pp <= 3",
        "pp >= 2",
        "zero = 1",
        "zero <= 2",
        "dp = 1",
        "micro_batch = 1",
        "recompute = none",
        "recompute = full",
        "recompute != full",
        "schedule = gpipe",
        "schedule = 1f1b",
        "schedule = interleaved",
        "vpp <= 1",
        "vpp >= 2",
        "devices <= 3",
        "group g0 unused",
    )
    return tuple(draw.sample(texts, draw.choice((1, 1, 2))))
