"""The harness judges as SkyPilot does, and SkyPilot refuses what we say that it refuses."""

from collections.abc import Callable
from typing import Any

import pytest

from frameworks.asking import Answer, Validator

pytestmark = pytest.mark.frameworks

Ask = Callable[..., Answer]

TASK = """
name: plan
resources: {infra: aws, accelerators: "H100:8", use_spot: false}
num_nodes: 2
envs: {NCCL_DEBUG: INFO}
setup: pip install torch
run: torchrun --nnodes $SKYPILOT_NUM_NODES --node-rank $SKYPILOT_NODE_RANK train.py
"""


@pytest.fixture
def ask(validator: Callable[[str], Validator]) -> Ask:
    skypilot = validator("skypilot")
    return lambda text: skypilot.ask(text=text)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (TASK, {"name": "plan", "nodes": 2, "accelerators": [{"H100": 8}], "spot": [False]}),
        (TASK.replace('"H100:8"', "{H100: 8}"), {"accelerators": [{"H100": 8}]}),
        (
            TASK.replace('accelerators: "H100:8"', "any_of: [{accelerators: H100:8}, {accelerators: A100:8}]"),
            {"nodes": 2},
        ),
        (
            TASK.replace('accelerators: "H100:8"', "ordered: [{accelerators: H100:8}, {accelerators: A100:8}]"),
            {"accelerators": [{"H100": 8}, {"A100": 8}]},
        ),
        (TASK.replace("use_spot: false", "network_tier: best, max_hourly_cost: 100"), {"spot": [False]}),
    ],
)
def test_takes(ask: Ask, text: str, facts: dict[str, Any]) -> None:
    answer = ask(text)
    assert answer.accepted, answer.message
    assert {key: answer.facts[key] for key in facts} == facts


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TASK.replace("num_nodes", "nodes"), "Instead of 'nodes', did you mean 'num_nodes'"),
        (TASK.replace("use_spot", "spot"), "Instead of 'spot', did you mean 'use_spot'"),
        (TASK.replace("num_nodes: 2", "num_nodes: 0"), "num_nodes should be a positive int"),
        (TASK.replace("num_nodes: 2", 'num_nodes: "2"'), "not of type 'integer'"),
        (TASK.replace("infra: aws", "infra: nowhere"), "'nowhere' does not match"),
        (TASK.replace("H100:8", "H100:eight"), "should be <name> or <name>:<cnt>"),
        (TASK.replace("NCCL_DEBUG", "1NCCL"), "contains invalid keys"),
        (TASK.replace("use_spot: false", "network_tier: fast"), "Invalid network_tier"),
        ("- a", "no table"),
    ],
)
def test_refuses(ask: Ask, text: str, says: str) -> None:
    answer = ask(text)
    assert not answer.accepted
    assert says in answer.message


def test_does_not_catch_accelerators_that_nobody_has(ask: Ask) -> None:
    assert ask(TASK.replace("H100:8", "H101:3")).accepted
