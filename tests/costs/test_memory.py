"""The three peaks of a stage's memory, each worked out by hand, and how much recompute they ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import framework
from planner.candidates.table import recompute_needed, stack_terms
from planner.costs import StageCost, plan_cost
from planner.costs.peaks import largest, optimizer_peak, peak_memory, stage_peaks, total
from planner.costs.stage import StageTerms, layer_costs, stage_terms
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.specs.cluster import read_cluster
from planner.specs.model import model_from_record

CLUSTER = read_cluster("1x8:a100-sxm-80gb")
JOB = Job(global_batch=8, sequence=128, precision="bf16", framework="megatron")
EAGER = framework(fragmentation=1.5, outside_allocator=1e6, update_temporary_bytes=4)
"""Megatron's bytes (2 + 4 + 12) with temporaries like those of torch's foreach Adam."""
few = settings(max_examples=60, derandomize=True, deadline=None, database=None)


def model() -> Model:
    """Return a Llama with four layers of 48 x 10^6 weights and 2 x 65 x 10^6 at its ends."""
    sizes = {"intermediate_size": 5504, "vocab_size": 32000, "max_position_embeddings": 4096}
    record = {"family": "llama", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16}
    return model_from_record({**record, **sizes}, "test")


def cost(profile: Framework, *, zero: int = 0, replicas: int = 8, recomputed: int = 0) -> StageCost:
    """Return the cost of the model as one stage on eight devices."""
    stage = Stage(
        group="a100-sxm-80gb", first_layer=0, last_layer=3, strategy=Strategy(degrees=()), num_recomputed=recomputed
    )
    plan = Plan(
        stages=(stage,),
        schedule="1f1b",
        num_replicas=replicas,
        micro_batch=1,
        num_microbatches=8 // replicas,
        zero_stage=zero,
    )
    return plan_cost(plan, CLUSTER, model(), JOB, profile).stages[0]


def terms(profile: Framework = EAGER, *, zero: int = 1, replicas: int = 2) -> StageTerms:
    """Return the coefficients of a stage in the middle."""
    costs = layer_costs(model(), JOB, profile, CLUSTER.groups[0], Strategy(degrees=()), 1, pipelined=True)
    return stage_terms(
        costs, JOB, profile, policy="none", num_replicas=replicas, zero_stage=zero, first=False, last=False
    )


def test_the_optimizer_can_be_the_peak() -> None:
    """With P parameters, nothing sharded: 18 P beside the activations of 128 tokens, and 22 P in the optimizer step.

    The step is the peak, its activations are gone; it and creation are alike, and the first of both is met first.
    """
    found = cost(EAGER)
    peaks, parameters = dict(found.peaks), dict(found.memory)["weights"] / 2
    assert parameters == pytest.approx(4 * 50.6e6 + 131e6, rel=0.01)
    assert peaks["optimizer_step"] == pytest.approx(22 * parameters + 1e6)
    assert peaks["optimizer_creation"] == peaks["optimizer_step"] > peaks["forward_backward"] > 18 * parameters
    assert dict(found.memory)["update_temporaries"] == pytest.approx(4 * parameters)
    assert dict(found.memory)["activations"] == dict(found.memory)["logits"] == 0
    assert total(found.memory) == peaks["optimizer_step"]


def test_temporaries_are_sharded_as_the_states() -> None:
    """ZeRO 1 over 8 ranks: (4 + 12) / 8 beside 6 bytes, 8 in all; without gradients at creation 4 of them."""
    whole = dict(cost(EAGER).memory)["weights"] / 2
    peaks = dict(cost(replace(EAGER, gradients_at_creation=False), zero=1).peaks)
    assert peaks["optimizer_step"] == pytest.approx(8 * whole + 1e6)
    assert peaks["optimizer_creation"] == pytest.approx(4 * whole + 1e6)


def test_a_fused_optimizer_never_binds() -> None:
    """Without temporaries the step holds what the passes hold, less their activations."""
    peaks = dict(cost(replace(EAGER, update_temporary_bytes=0)).peaks)
    assert peaks["forward_backward"] == max(peaks.values())
    assert peaks["optimizer_step"] < peaks["forward_backward"]


def test_fragmentation_is_a_part() -> None:
    """A factor of 1.5 is half of the activations, and of nothing else."""
    found = dict(cost(replace(EAGER, update_temporary_bytes=0)).memory)
    assert found["fragmentation"] == pytest.approx(0.5 * found["activations"])
    assert found["activations"] > 0


def test_the_largest_peak_is_found_elementwise() -> None:
    """Of two moments with unlike parts, the parts of the fuller one are kept for each number of layers."""
    passes = (("weights", np.array([1.0, 2.0])), ("activations", np.array([5.0, 5.0])))
    step = (("weights", np.array([1.0, 2.0])), ("temporaries", np.array([4.0, 8.0])))
    found = {name: list(sizes) for name, sizes in largest([passes, step])}
    assert found == {"weights": [1.0, 2.0], "activations": [5.0, 0.0], "temporaries": [0.0, 8.0]}


@few
@given(temporary=st.sampled_from([0, 4, 40]), layers=st.integers(1, 12), held=st.integers(1, 8), more=st.integers(0, 3))
def test_memory_rises_with_everything(temporary: int, layers: int, held: int, more: int) -> None:
    """Layers, micro-batches in flight and temporaries never lower the peak; micro-batches leave the optimizer alone."""
    found = terms(replace(EAGER, update_temporary_bytes=temporary))
    fatter = terms(replace(EAGER, update_temporary_bytes=temporary + more))
    peak = peak_memory(found, layers, 0, held)
    assert peak <= peak_memory(found, layers + more, 0, held)
    assert peak <= peak_memory(found, layers, 0, held + more)
    assert peak <= peak_memory(fatter, layers, 0, held)
    assert peak == max(total(parts) for _, parts in stage_peaks(found, layers, 0, held))
    assert peak >= optimizer_peak(found, layers)


@few
@given(temporary=st.sampled_from([0, 4, 40]), held=st.integers(1, 8), share=st.floats(0.01, 1.2))
def test_no_recompute_helps_the_optimizer(temporary: int, held: int, share: float) -> None:
    """The fewest recomputed layers in closed form are those that trying one after the other finds, at any limit."""
    found = terms(replace(EAGER, update_temporary_bytes=temporary))
    limit = share * peak_memory(found, 12, 0, held)
    layers = np.arange(1, 13)
    counts = recompute_needed(stack_terms([found]), layers, np.array([[[held]]]), np.array([[limit]]), "any")[0, 0]
    for number, count in zip(layers.tolist(), counts.tolist(), strict=True):
        fitting = (k for k in range(number + 1) if peak_memory(found, number, k, held) <= limit)
        assert min(count, number + 1) == next(fitting, number + 1)
