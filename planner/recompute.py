"""Recompute policies: what the forward pass keeps, and what the backward pass runs again."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RecomputePolicy:
    """A policy for one layer."""

    name: str
    keeps: frozenset[str]
    """Tags of the saved tensors that stay (see `planner.domain.model.SavedTensor`)."""
    replays: str
    """``nothing``, ``attention`` (scores and softmax), ``half`` (of the products, and all passes) or ``layer``."""


RECOMPUTE_POLICIES = (
    RecomputePolicy(name="none", keeps=frozenset({"input", "products", "inner", "scores"}), replays="nothing"),
    RecomputePolicy(name="selective", keeps=frozenset({"input", "products", "inner"}), replays="attention"),
    RecomputePolicy(name="op", keeps=frozenset({"input", "products"}), replays="half"),
    RecomputePolicy(name="full", keeps=frozenset({"input"}), replays="layer"),
)
