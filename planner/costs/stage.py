"""Time and memory of a pipeline stage as functions of its layers: one formula for solver, replay and report.

What does not depend on the number of layers n, of recomputed layers k and of micro-batches in flight is a
coefficient of `StageTerms`. The functions below take floats or numpy arrays of n, k and in-flight counts alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from planner.costs.compute import pass_time
from planner.costs.crossing import Beyond
from planner.costs.exchange import Exchange, replica_exchange
from planner.costs.gathering import EACH_PASS, Gathering
from planner.costs.hop import StageEnd
from planner.costs.layer import LayerCost, layer_cost
from planner.costs.measured import measured_cost
from planner.costs.sizes import gathered_bytes
from planner.domain.cluster import DeviceGroup
from planner.domain.framework import Framework
from planner.domain.job import Job
from planner.domain.model import Model, Number
from planner.domain.plan import Strategy
from planner.units import Bytes, Seconds, choose, larger


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCosts:
    """The layers of a model on one device of a group, under one strategy and micro-batch."""

    embedding: LayerCost
    body: LayerCost
    head: LayerCost
    group: DeviceGroup
    strategy: Strategy

    def edge_parameters(self, *, first: bool, last: bool) -> Number:
        """Return the parameters [-] of the embedding, if `first`, and the head, if `last`; tied ones count once."""
        held = [cost.parameters for cost, has in ((self.embedding, first), (self.head, last)) if has]
        return sum(held, start=0.0) - (self.head.tied_parameters if first and last else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTerms:
    """Coefficients of a stage's time [s] and memory [bytes]; *edge* is the embedding and head, where it has them."""

    forward_layer: Seconds
    backward_layer: Seconds
    forward_edge: Seconds
    backward_edge: Seconds
    weight_layer: Seconds
    """Of the backward pass, for the gradients of weights."""
    weight_edge: Seconds
    replay_layer: Seconds
    """Added to the backward pass by each fully recomputed layer."""
    exchange_layer: Seconds
    """Of the exchange at the end of the step, before overlap."""
    exchange_edge: Seconds
    overlap: float
    update_layer: Seconds
    """Of the optimizer step."""
    update_edge: Seconds
    tied_sync: Seconds
    """Of adding the gradients of tied weights across the ends of the pipeline."""
    predict_layer: Seconds
    """Of making the weights that passes are predicted to need: a pass over memory."""
    predict_edge: Seconds
    regather_layer: Seconds
    """Of gathering these once more."""
    regather_edge: Seconds
    weights_layer: Bytes
    weights_edge: Bytes
    gradients_layer: Bytes
    gradients_edge: Bytes
    optimizer_layer: Bytes
    optimizer_edge: Bytes
    temporary_layer: Bytes
    """While the optimizer makes or updates its states."""
    temporary_edge: Bytes
    created_gradients: float
    """[-] 1 if gradients are held while the optimizer makes its states, else 0."""
    kept_layer: Bytes
    """Per micro-batch in flight, of a layer that is not fully recomputed."""
    kept_recomputed: Bytes
    """The same of a fully recomputed layer."""
    live_layer: Bytes
    """While one recomputed layer runs backward."""
    transient: Bytes
    fragmentation: float
    """[-] of activations: what the allocator needs for them, over what they are."""
    logits: Bytes
    gathered: Bytes
    gathered_layer: Bytes
    """Of each layer of the stage, where chunks are gathered whole."""
    outside: Bytes
    parts_layer: tuple[tuple[str, Seconds], ...]
    """Forward and backward time of a layer by what it is spent on."""
    parts_edge: tuple[tuple[str, Seconds], ...]


def layer_costs(
    model: Model,
    job: Job,
    framework: Framework,
    group: DeviceGroup,
    strategy: Strategy,
    micro_batch: Number,
    *,
    pipelined: bool,
) -> LayerCosts:
    """Return the costs of the model's three kinds of layers on one device of `group`."""
    embedding, body, head = (
        layer_cost(layer, job, framework, group, strategy, micro_batch, pipelined=pipelined)
        for layer in (model.embedding, model.body, model.head)
    )
    if group.profile is not None:
        times = group.profile.row(strategy.degree("tp"), micro_batch)
        embedding, body, head = map(measured_cost, (embedding, body, head), (times.embedding, times.body, times.head))
    return LayerCosts(embedding=embedding, body=body, head=head, group=group, strategy=strategy)


def stage_terms(
    costs: LayerCosts,
    job: Job,
    framework: Framework,
    *,
    policy: str,
    num_replicas: int,
    zero_stage: int,
    first: bool,
    last: bool,
    beyond: Beyond | None = None,
    apart: bool = False,
    ends_meet: bool = False,
    gathering: Gathering = EACH_PASS,
) -> StageTerms:
    """Return the coefficients of a stage that holds the embedding if `first` and the head if `last`.

    `num_replicas` are all copies of it that exchange gradients, those `beyond` the group included. `apart` says that
    embedding and head are known to lie on several nodes; else they do where the group has several. `ends_meet` says
    that one rank of a pipeline of several holds both. `gathering` says what is gathered at once of sharded weights.
    """
    alone = first and last and not ends_meet
    exchange = replica_exchange(
        costs.group,
        costs.strategy,
        framework,
        job,
        num_replicas=num_replicas,
        zero_stage=zero_stage,
        pipelined=not alone,
        beyond=beyond,
        sharers=gathering.sharers,
    )
    body, per = costs.body, exchange.per
    edges = [cost for cost, held in ((costs.embedding, first), (costs.head, last)) if held]
    waits, edge_waits = exchange.layer_times(body), [exchange.layer_times(edge) for edge in edges]
    edge_parameters = costs.edge_parameters(first=first, last=last)
    kept, replay = dict(body.kept), dict(body.replay)
    unit = reduce(larger, [edge.parameters for edge in edges], 0.0 if gathering.chunks else body.parameters)
    cut = exchange.zero.weights and exchange.ranks > 1
    return StageTerms(
        forward_layer=body.forward + waits[0],
        backward_layer=body.backward + replay[policy] + waits[1],
        forward_edge=sum((edge.forward for edge in edges), start=sum(wait[0] for wait in edge_waits)),
        backward_edge=sum((edge.backward for edge in edges), start=sum(wait[1] for wait in edge_waits)),
        weight_layer=body.backward * body.weight_share,
        weight_edge=sum((edge.backward * edge.weight_share for edge in edges), start=0.0),
        replay_layer=replay["full"] - replay[policy],
        exchange_layer=exchange.step_time(body.parameters),
        exchange_edge=exchange.step_time(edge_parameters) if edges else 0.0,
        overlap=exchange.overlap,
        update_layer=_update_time(costs, [body], body.parameters, exchange),
        update_edge=_update_time(costs, edges, edge_parameters, exchange),
        tied_sync=_tied_sync(costs, exchange, num_replicas, apart=apart) if first != last and not ends_meet else 0.0,
        predict_layer=pass_time(per.predict * body.parameters, costs.group.device),
        predict_edge=pass_time(per.predict * edge_parameters, costs.group.device) if edges else 0.0,
        regather_layer=exchange.gather_time(body.parameters),
        regather_edge=exchange.gather_time(edge_parameters) if edges else 0.0,
        weights_layer=per.weights * body.parameters,
        weights_edge=per.weights * edge_parameters,
        gradients_layer=per.gradients * body.parameters,
        gradients_edge=per.gradients * edge_parameters,
        optimizer_layer=per.optimizer * body.parameters,
        optimizer_edge=per.optimizer * edge_parameters,
        temporary_layer=per.temporary * body.parameters,
        temporary_edge=per.temporary * edge_parameters,
        created_gradients=float(framework.gradients_at_creation),
        kept_layer=kept[policy],
        kept_recomputed=kept["full"],
        live_layer=kept["none"],
        transient=body.transient,
        fragmentation=framework.fragmentation,
        logits=costs.head.logits * framework.logit_bytes if last else 0.0,
        gathered=gathered_bytes(framework, job, unit) * cut,
        gathered_layer=gathered_bytes(framework, job, body.parameters) / gathering.chunks * cut
        if gathering.chunks
        else 0.0,
        outside=framework.outside_allocator,
        parts_layer=(*body.parts, ("recompute", replay[policy]), ("gather_weights", waits[0] + waits[1])),
        parts_edge=(
            *(part for edge in edges for part in edge.parts),
            ("gather_weights", sum((sum(wait) for wait in edge_waits), start=0.0)),
        ),
    )


def _update_time(costs: LayerCosts, layers: list[LayerCost], parameters: Number, exchange: Exchange) -> Seconds:
    """Return the time [s] of the optimizer step of `parameters`, those of `layers`: measured, or memory traffic."""
    if costs.group.profile is not None:
        return sum((layer.update for layer in layers), start=0.0) / (exchange.ranks if exchange.zero.optimizer else 1)
    return pass_time(exchange.per.update * parameters, costs.group.device)


def _tied_sync(costs: LayerCosts, exchange: Exchange, num_replicas: Number, *, apart: bool) -> Seconds:
    """Return the time [s] of the all-reduce of tied gradients between the first and the last stage.

    All replicas exchange at the same time and share the adapters of their nodes, as in a transfer between stages.
    """
    group, size = costs.group, exchange.per.sent_gradients * costs.head.tied_parameters
    end = StageEnd(group=group, strategy=costs.strategy, num_replicas=num_replicas)
    across = end.node_rate(size) / end.senders
    rate = across if apart else choose(group.num_nodes > 1, across, group.intra_node.rate_at(size))
    return size / rate


def forward_time(terms: StageTerms, num_layers: Number, edge: Number = 1.0) -> Seconds:
    """Return the forward time [s] of one micro-batch: n f + edge, of which a chunk of a stage has all or nothing."""
    return num_layers * terms.forward_layer + edge * terms.forward_edge


def backward_time(terms: StageTerms, num_layers: Number, num_recomputed: Number, edge: Number = 1.0) -> Seconds:
    """Return the backward time [s] of one micro-batch: n b + k r + edge."""
    return num_layers * terms.backward_layer + num_recomputed * terms.replay_layer + edge * terms.backward_edge


def weight_time(terms: StageTerms, num_layers: Number, edge: Number = 1.0) -> Seconds:
    """Return the part of `backward_time` [s] that makes the gradients of weights: W, where the rest is I."""
    return num_layers * terms.weight_layer + edge * terms.weight_edge


def sync_time(terms: StageTerms, num_layers: Number, backward: Seconds) -> Seconds:
    """Return the seconds between a stage's last backward pass and the end of its optimizer step.

    The exchange T hides behind the last backward pass B, never wholly: max(T - o B, (1 - o) T).
    """
    exchange = num_layers * terms.exchange_layer + terms.exchange_edge
    exposed = larger(exchange - terms.overlap * backward, (1 - terms.overlap) * exchange)
    return exposed + update_time(terms, num_layers) + terms.tied_sync


def predict_time(terms: StageTerms, num_layers: Number) -> Seconds:
    """Return the time [s] of predicting a stage's weights once.

    W - s lr v reads all that the optimizer keeps of a weight and writes the weight (Chen et al. 2018 with momentum,
    Guan et al. 2019 with the moments of Adam): a pass over memory, of the rank's shard where ZeRO shards the optimizer.
    """
    return num_layers * terms.predict_layer + terms.predict_edge


def regather_time(terms: StageTerms, num_layers: Number) -> Seconds:
    """Return the time [s] of gathering predicted weights, where forward and backward passes run on unlike ones."""
    return num_layers * terms.regather_layer + terms.regather_edge


def update_time(terms: StageTerms, num_layers: Number) -> Seconds:
    """Return the time [s] of the optimizer's step."""
    return num_layers * terms.update_layer + terms.update_edge


def kept_memory(terms: StageTerms, num_layers: Number, num_recomputed: Number) -> Bytes:
    """Return the activations [bytes] of one micro-batch in flight."""
    return (num_layers - num_recomputed) * terms.kept_layer + num_recomputed * terms.kept_recomputed


def stage_memory(
    terms: StageTerms, num_layers: Number, num_recomputed: Number, in_flight: Number
) -> tuple[tuple[str, Bytes], ...]:
    """Return the memory [bytes] of a stage by part, at the peak of its forward and backward passes.

    Activations: ((n - k) kept + k kept_recomputed) in_flight, and one live layer while a recomputed one runs
    backward. `planner.costs.peaks` has the peaks of the optimizer.
    """
    live = (num_recomputed > 0) * terms.live_layer
    activations = in_flight * kept_memory(terms, num_layers, num_recomputed) + live + terms.transient
    return (
        ("weights", num_layers * terms.weights_layer + terms.weights_edge),
        ("gradients", num_layers * terms.gradients_layer + terms.gradients_edge),
        ("optimizer", num_layers * terms.optimizer_layer + terms.optimizer_edge),
        ("activations", activations),
        ("fragmentation", (terms.fragmentation - 1) * activations),
        ("logits", terms.logits),
        ("gathered_weights", num_layers * terms.gathered_layer + terms.gathered),
        ("outside_allocator", terms.outside),
    )
