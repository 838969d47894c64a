"""What a pipeline schedule is: the order in which each rank runs the passes of one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeAlias

FORWARD = "F"
BACKWARD = "B"
"""The whole backward pass: both parts below."""
INPUT = "I"
"""The part of the backward pass that makes the gradient of the input, for which the stage before waits."""
WEIGHT = "W"
"""The part of the backward pass that makes the gradients of the weights, which are not needed before the step ends."""


class Operation(NamedTuple):
    """One pass of a stage, each way counted from 0."""

    kind: str
    """``F`` (forward) or ``B`` (backward)."""
    number: int
    """The micro-batch, where a stage is one chunk of layers; see `Schedule.chunk` elsewhere."""


class Pass(NamedTuple):
    """One pass of a rank, by what it works on."""

    kind: str
    """``F``, ``B``, ``I`` or ``W``."""
    microbatch: int
    """Counted from 0, over all directions."""
    stage: int
    """The virtual stage, 0 to P v - 1 in the order of the layers."""
    direction: int = 0
    """0 where virtual stage 0 lies on rank 0; 1 in the pipeline that runs the other way."""
    paired: bool = False
    """Whether it runs at once with the next pass of the rank: both wait for both inputs, and end together."""


Orders: TypeAlias = "tuple[tuple[Pass, ...], ...]"
"""The passes of every rank, in their order."""


def _only_chunk(_index: int, _num_stages: int) -> int:
    return 0


def _any_shape(_num_stages: int, _num_microbatches: int) -> str:
    return ""


def same(number: int) -> Callable[[int, int, int], int]:
    """Return a function of (rank, num_stages, num_microbatches) that is `number` everywhere."""

    def of(_rank: int, _num_stages: int, _num_microbatches: int) -> int:
        return number

    return of


_ONE, _NONE = same(1), same(0)


def _unpredicted(_rank: int, _num_stages: int, _num_microbatches: int) -> tuple[int, int]:
    return 0, 0


def loop(stage: int, num_stages: int) -> int:
    """Return the rank of a virtual stage where each round of P goes from rank 0 to rank P - 1."""
    return stage % num_stages


def vee(stage: int, num_stages: int) -> int:
    """Return the rank of a virtual stage where odd rounds go back: the last rank hands on to itself."""
    turn, place = divmod(stage, num_stages)
    return num_stages - 1 - place if turn % 2 else place


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A pipeline schedule. `in_flight` and `order` take (rank, num_stages, num_microbatches), the rank from 0.

    A stage of a plan is a rank of the pipeline. It holds `virtual_stages` chunks of layers (v), and takes each
    micro-batch through each of them: v passes each way for a micro-batch.
    """

    name: str
    """As written in job and plan files."""
    summary: str
    """One line for listings."""
    in_flight: Callable[[int, int, int], int]
    """Passes whose activations the rank holds at once: micro-batches, where it is one chunk."""
    order: Callable[[int, int, int], str]
    """The passes of the rank, a letter each (``FFBFBB``): the m-th F takes micro-batch m forward, the m-th B backward.

    With chunks, `chunk` tells which one a pass runs. A string says that in a byte a pass, and hundreds of thousands of
    passes are compared and counted at the speed of C. Where micro-batches do not pass in order, `orders` says more.
    """
    changes_semantics: bool
    """Whether training differs from one step over the whole batch (stale or several versions of the weights)."""
    lanes: tuple[tuple[str, ...], ...] = (("forward", "backward"),)
    """Parts of a stage's time that are paced together: the pipeline's pace is the sum over the lanes of the slowest
    stage's part in each."""
    orders: Callable[[int, int], Orders] | None = None
    """(num_stages, num_microbatches) -> the passes of every rank; None where letters and chunks say all of it."""
    exposes_transfers: bool = False
    """Whether a stage has nothing to do while it sends, so that a framework whose transfers block it makes it wait."""
    virtual_stages: int = 1
    """v: chunks of layers of each stage."""
    chunk: Callable[[int, int], int] = _only_chunk
    """(k, num_stages) -> the chunk that the k-th forward pass of every stage runs; the k-th backward pass runs the same
    one counted from the last."""
    placement: Callable[[int, int], int] = loop
    """(virtual stage, num_stages) -> its rank, in direction 0; in direction 1 counted from the last rank."""
    directions: int = 1
    """Pipelines that the ranks run at once, each with its share of the micro-batches and its copy of the weights."""
    eager_sync: bool = False
    """Whether a stage's gradients are exchanged as soon as its own last pass has ended, beside the passes of others."""
    gathers_once: bool = False
    """Whether all micro-batches pass a chunk before any passes the next one, so that weights that are sharded are
    gathered once a chunk and way, and gradients scattered once a chunk, and not with every micro-batch."""
    joins_steps: bool = False
    """Whether a rank begins the next step when its own is done, while other ranks still work: the norm of all gradients
    is then checked afterwards, and an update that it forbids is taken back."""
    flushes: bool = True
    """Whether a step ends before the next one begins. Where it does not, nothing idles but for unlike stages."""
    updates_each: bool = False
    """Whether a rank updates its weights after each backward pass, replicas exchanging gradients, and not once a step;
    a step is then as many micro-batches as are counted together."""
    weight_versions: Callable[[int, int, int], int] = _ONE
    """(rank, num_stages, num_microbatches) -> versions of the weights that the rank holds: older ones, of micro-batches
    that went forward on them, or predicted ones."""
    staleness: Callable[[int, int, int], int] = _NONE
    """(rank, num_stages, num_microbatches) -> updates of the rank's weights between those that a micro-batch goes
    forward on, before any prediction, and those that its gradients change."""
    predicted: Callable[[int, int, int], tuple[int, int]] = _unpredicted
    """(rank, num_stages, num_microbatches) -> updates ahead to which weights are predicted, for forward and for
    backward passes: once between two updates for each of both. 0 where passes run on the weights themselves."""
    runs_as: tuple[tuple[str, str], ...] = ()
    """(framework, what it calls the schedule)."""
    blocker: Callable[[int, int], str] = _any_shape
    """(num_stages, num_microbatches) -> why the schedule cannot run these; empty if it can."""
    with_chunks: Callable[[int], Schedule] | None = None
    """v -> the same schedule with v chunks a stage; None if it knows one number only."""
    with_group: Callable[[int], Schedule] | None = None
    """n -> the same schedule with micro-batches in groups of n; None if it knows no groups."""

    def held(self, rank: int, num_stages: int, num_microbatches: int) -> float:
        """Return the micro-batches whose activations the rank holds at once; a chunk counts as its share of one."""
        passes = self.in_flight(rank, num_stages, num_microbatches)
        return passes if self.virtual_stages == 1 else passes / self.virtual_stages

    def updates(self, num_microbatches: int) -> int:
        """Return how often a rank updates its weights in a step."""
        return num_microbatches if self.updates_each else 1

    def predictions(self, rank: int, num_stages: int, num_microbatches: int) -> int:
        """Return how often a rank predicts its weights between two updates."""
        ahead, back = self.predicted(rank, num_stages, num_microbatches)
        return (ahead > 0) + (back > 0 and not self.shares_weights(rank, num_stages, num_microbatches))

    def shares_weights(self, rank: int, num_stages: int, num_microbatches: int) -> bool:
        """Tell whether forward and backward passes of a micro-batch run on the same weights without their being kept.

        They do where no update lies between them, and both look as far ahead.
        """
        ahead, back = self.predicted(rank, num_stages, num_microbatches)
        return ahead == back and self.staleness(rank, num_stages, num_microbatches) == 0

    def rank(self, stage: int, direction: int, num_stages: int) -> int:
        """Return the rank that runs a virtual stage in one of the directions."""
        there = self.placement(stage, num_stages)
        return num_stages - 1 - there if direction else there

    @property
    def turns(self) -> bool:
        """Whether the last rank hands on to the first one's next chunk."""
        return self.virtual_stages > 1 and self.placement is loop

    @property
    def parts(self) -> int:
        """Virtual stages that a rank runs: chunks of all directions."""
        return self.virtual_stages * self.directions

    def ends(self, rank: int, num_stages: int) -> tuple[bool, bool]:
        """Tell whether a rank runs the first and the last virtual stage."""
        last, ways = num_stages * self.virtual_stages - 1, range(self.directions)
        first, final = ({self.rank(stage, way, num_stages) for way in ways} for stage in (0, last))
        return rank in first, rank in final

    def hosted(self, num_stages: int) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Return the (direction, virtual stage) pairs that every rank runs, those of a direction in their order."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(num_stages)]
        for direction in range(self.directions):
            for stage in range(num_stages * self.virtual_stages):
                found[self.rank(stage, direction, num_stages)].append((direction, stage))
        return tuple(map(tuple, found))

    def passes(self, num_stages: int, num_microbatches: int) -> Orders:
        """Return the passes of every rank, in their order."""
        if self.orders is not None:
            return self.orders(num_stages, num_microbatches)
        return tuple(tuple(self._spelled(rank, num_stages, num_microbatches)) for rank in range(num_stages))

    def _spelled(self, rank: int, num_stages: int, num_microbatches: int) -> Iterator[Pass]:
        """Yield the passes that the letters of a rank stand for; each chunk meets the micro-batches in order."""
        met = {kind: [0] * self.virtual_stages for kind in (FORWARD, BACKWARD)}
        for kind, number in operations(self.order(rank, num_stages, num_microbatches)):
            ahead = self.chunk(number, num_stages)
            chunk = ahead if kind == FORWARD else self.virtual_stages - 1 - ahead
            yield Pass(kind, met[kind][chunk], chunk * num_stages + rank)
            met[kind][chunk] += 1


def operations(order: str) -> Iterator[Operation]:
    """Yield the passes that `order` stands for."""
    seen = {FORWARD: 0, BACKWARD: 0}
    for kind in order:
        yield Operation(kind, seen[kind])
        seen[kind] += 1


def letters(orders: Callable[[int, int], Orders]) -> Callable[[int, int, int], str]:
    """Return `Schedule.order` of a schedule that is given by its `orders`."""

    def order(rank: int, num_stages: int, num_microbatches: int) -> str:
        return "".join([run.kind for run in orders(num_stages, num_microbatches)[rank]])

    return order


def counted(orders: Callable[[int, int], Orders]) -> Callable[[int, int, int], int]:
    """Return `Schedule.in_flight` of a schedule that is given by its `orders`: what is held is counted in them."""

    @cache
    def peaks(num_stages: int, num_microbatches: int) -> tuple[int, ...]:
        spelled = letters(orders)
        return tuple(peak_in_flight(spelled(rank, num_stages, num_microbatches)) for rank in range(num_stages))

    def in_flight(rank: int, num_stages: int, num_microbatches: int) -> int:
        return peaks(num_stages, num_microbatches)[rank]

    return in_flight


def peak_in_flight(order: str) -> int:
    """Return the most micro-batches that have gone forward and not yet backward at any time in `order`.

    Where the backward pass is split, activations stay until its second part: products need their inputs for the
    gradients of their weights, and the gradients of their outputs have come to lie beside them.
    """
    steady = (FORWARD + BACKWARD) * 2
    while steady in order:  # a repeated pair peaks where the first one does, and a short string is counted faster
        order = order.replace(steady, FORWARD + BACKWARD)
    held = peak = 0
    for kind in order:
        if kind == FORWARD:
            held += 1
            peak = max(peak, held)
        elif kind != INPUT:
            held -= 1
    return peak


def most_held(passes: Iterable[Pass], sizes: Mapping[tuple[int, int], float]) -> float:
    """Return the most that is held at any time in `passes`, counted in `sizes` by (direction, virtual stage)."""
    held = peak = 0.0
    for kind, _, stage, direction, _ in passes:
        if kind == FORWARD:
            held += sizes[direction, stage]
            peak = max(peak, held)
        elif kind != INPUT:
            held -= sizes[direction, stage]
    return peak
