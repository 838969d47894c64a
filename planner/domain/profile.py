"""Measured times of a model's layers on a device."""

from __future__ import annotations

from dataclasses import dataclass

from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTimes:
    """What one layer and micro-batch took, collectives of the tensor ranks included."""

    forward: float
    """[s]"""
    backward: float
    """[s] without recompute."""
    update: float
    """[s] of the optimizer step, nothing sharded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRow:
    """The layers at one tensor degree and micro-batch."""

    tp: int
    micro_batch: int
    """[samples]"""
    embedding: LayerTimes
    body: LayerTimes
    """Mean over the body layers."""
    head: LayerTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerProfile:
    """The layers of one model on one device, at one length of samples and in one precision."""

    device: str
    """What the profile calls the device."""
    num_layers: int
    """Body layers of the model."""
    hidden: int
    """Hidden size of the model; zero where it is not known."""
    sequence: int
    """[tokens] of a sample."""
    precision: str
    rows: tuple[ProfileRow, ...]
    """Ascending by tensor degree and micro-batch. What is not in it was not measured, and is never guessed."""

    @property
    def micro_batches(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """(tensor degree, micro-batches at which it was measured), ascending."""
        degrees = dict.fromkeys(row.tp for row in self.rows)
        return tuple((tp, tuple(row.micro_batch for row in self.rows if row.tp == tp)) for tp in degrees)

    def has(self, strategy: Strategy, micro_batch: int) -> bool:
        """Tell whether layers that are cut by `strategy` were measured at `micro_batch`."""
        tp = strategy.degree("tp")
        whole = tp == strategy.num_devices
        return whole and any((row.tp, row.micro_batch) == (tp, micro_batch) for row in self.rows)

    def row(self, tp: int, micro_batch: int) -> ProfileRow:
        """Return the times at a tensor degree and micro-batch.

        Raises:
            KeyError: they were not measured.

        """
        for row in self.rows:
            if (row.tp, row.micro_batch) == (tp, micro_batch):
                return row
        raise KeyError((tp, micro_batch))

    def mismatches(self, model: Model, job: Job) -> tuple[tuple[str, object, object], ...]:
        """Return (trait, here, measured) of each trait in which `job` on `model` differs from what was measured."""
        traits: tuple[tuple[str, object, object], ...] = (
            ("layers", model.num_layers, self.num_layers),
            ("hidden_size", model.hidden, self.hidden or model.hidden),
            ("sequence", job.sequence, self.sequence),
            ("precision", job.precision, self.precision),
        )
        return tuple((trait, here, measured) for trait, here, measured in traits if here != measured)
