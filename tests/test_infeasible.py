"""Why there is no plan: the reason that holds, and what is missing."""

from __future__ import annotations

import pytest

import builders
from planner.errors import NoFeasiblePlan
from planner.pipeline import make_plan
from planner.specs.cluster import read_cluster
from planner.specs.model import read_model
from planner.units import GIB

CLUSTER = builders.cluster(builders.group(nodes=1, per_node=4))


def refusal(*texts: str, target: str = "") -> NoFeasiblePlan:
    """Return why a small model has no plan on four devices."""
    with pytest.raises(NoFeasiblePlan) as refused:
        make_plan(CLUSTER, builders.model(8), builders.job(8, *texts, target=target), references=False)
    return refused.value


@pytest.mark.parametrize(
    ("texts", "target", "reason"),
    [
        (("schedule = zbv",), "megatron", "megatron runs 1f1b, interleaved; none satisfies 'schedule = zbv'"),
        (
            ("schedule = 1f1b", "schedule = zbv"),
            "",
            "no schedule satisfies 'schedule = 1f1b', 'schedule = zbv' together",
        ),
        (
            ("schedule = interleaved", "vpp = 3"),
            "",
            "interleaved takes 2 chunks a stage or more, of numbers that divide the 8",
        ),
        (("schedule = zbv", "vpp = 3"), "", "zbv has 2 chunks a stage"),
        (("schedule = zbv", "pp = 1"), "", "zbv needs several stages"),
        (("schedule = search", "pp = 1"), "", "there are 1 to 4 stages on 4 devices"),
        (("schedule = dualpipe", "pp = 3"), "", "no plan satisfies 'schedule = dualpipe', 'pp = 3': "),
        (("pp = 3", "dp = 2"), "", "no numbers of replicas, stages and devices satisfy 'pp = 3', 'dp = 2'"),
    ],
)
def test_the_reason_is_told(texts: tuple[str, ...], target: str, reason: str) -> None:
    """And not that of another kind; without memory in the way there is no shortage of it."""
    refused = refusal(*texts, target=target)
    assert reason in str(refused)
    assert refused.shortage is None


def test_memory_that_constraints_make_short_is_a_shortage() -> None:
    """Layers would fit one by one, but no split of them over two stages does."""
    job = builders.job(16, "pp = 2", "schedule = 1f1b", headroom=0.1, sequence=4096)
    with pytest.raises(
        NoFeasiblePlan, match="'pp = 2', 'schedule = 1f1b' fits on the devices and in the mem"
    ) as refused:
        make_plan(read_cluster("1x2:a100-sxm-80gb"), read_model("model_specs/llama-3-8b.json"), job, references=False)
    shortage = refused.value.shortage
    assert shortage is not None
    assert (shortage.num_stages, shortage.limit_bytes) == (2, 0.9 * 80 * GIB)
    assert 0 < shortage.missing_bytes < 8 * GIB
    assert refused.value.repairs
