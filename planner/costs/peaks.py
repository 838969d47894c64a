"""The three peaks of a stage's memory: its passes, the optimizer making its states, and every later optimizer step.

The optimizer runs when no activation is held, but in pipelines that never drain. Its temporaries are the framework's
(`update_temporary_bytes`): fused Adam has none, torch's foreach Adam needs as much as the fp32 parameters (PyTorch
documentation, torch.optim.Adam).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from planner.costs.stage import StageTerms, kept_memory, stage_memory
from planner.domain.model import Number
from planner.domain.prediction import FORWARD_BACKWARD, OPTIMIZER_CREATION, OPTIMIZER_STEP
from planner.units import Bytes, choose, larger

Parts = tuple[tuple[str, Bytes], ...]
"""[bytes] by part."""


def optimizer_memory(
    terms: StageTerms, num_layers: Number, *, creation: bool, held: tuple[Number, Number] = (0.0, 0.0)
) -> Parts:
    """Return the memory [bytes] of a stage by part while the optimizer steps, at `creation` for the first time.

    Both hold weights, states and temporaries; gradients are missing at creation where the framework makes its states
    before them. Activations are those of `held`: (layers that are recomputed, micro-batches in flight).
    """
    recomputed, in_flight = held
    gradients = num_layers * terms.gradients_layer + terms.gradients_edge
    activations = in_flight * kept_memory(terms, num_layers, recomputed)
    return (
        ("weights", num_layers * terms.weights_layer + terms.weights_edge),
        ("gradients", gradients * terms.created_gradients if creation else gradients),
        ("optimizer", num_layers * terms.optimizer_layer + terms.optimizer_edge),
        ("activations", activations),
        ("fragmentation", (terms.fragmentation - 1) * activations),
        ("update_temporaries", num_layers * terms.temporary_layer + terms.temporary_edge),
        ("outside_allocator", terms.outside),
    )


def stage_peaks(
    terms: StageTerms, num_layers: Number, num_recomputed: Number, in_flight: Number, at_update: Number = 0.0
) -> tuple[tuple[str, Parts], ...]:
    """Return the memory [bytes] of a stage by part at each of its peaks, in the order in which a run meets them.

    While passes run it holds `in_flight` micro-batches, and `at_update` while the optimizer does.
    """
    held = num_recomputed, at_update
    return (
        (FORWARD_BACKWARD, stage_memory(terms, num_layers, num_recomputed, in_flight)),
        (OPTIMIZER_CREATION, optimizer_memory(terms, num_layers, creation=True, held=held)),
        (OPTIMIZER_STEP, optimizer_memory(terms, num_layers, creation=False, held=held)),
    )


def peak_memory(
    terms: StageTerms, num_layers: Number, num_recomputed: Number, in_flight: Number, at_update: Number = 0.0
) -> Bytes:
    """Return the largest peak [bytes] of a stage."""
    peaks = stage_peaks(terms, num_layers, num_recomputed, in_flight, at_update)
    return reduce(larger, [total(parts) for _, parts in peaks])


def optimizer_peak(terms: StageTerms, num_layers: Number, at_update: Number = 0.0) -> Bytes:
    """Return the larger peak [bytes] of the optimizer without recompute, `at_update` micro-batches being in flight."""
    held = 0.0, at_update
    return larger(
        *(total(optimizer_memory(terms, num_layers, creation=creation, held=held)) for creation in (True, False))
    )


def largest(peaks: Iterable[Parts]) -> Parts:
    """Return the parts of the peak whose sum is largest, the first of equal ones; elementwise where they are arrays.

    A part that a peak does not have is zero in it.
    """
    found = [dict(parts) for parts in peaks]
    names = list(dict.fromkeys(name for parts in found for name in parts))
    best, most = found[0], total(found[0].items())
    for other in found[1:]:
        size = total(other.items())
        best = {name: choose(size > most, other.get(name, 0.0), best.get(name, 0.0)) for name in names}
        most = larger(most, size)
    return tuple((name, best.get(name, 0.0)) for name in names)


def total(parts: Iterable[tuple[str, Bytes]]) -> Bytes:
    """Return the sum [bytes] of parts."""
    return sum((size for _, size in parts), start=0.0)
