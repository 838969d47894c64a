"""What FlagScale's YAML means as a layout: one pipeline, whose stages may be unlike, and its replicas."""

from __future__ import annotations

from math import gcd

from planner.configurations.base import Setup
from planner.configurations.forms.flagscale.arguments import parsed
from planner.configurations.forms.flagscale.layers import split
from planner.configurations.forms.flagscale.meshes import TYPES, Mesh, hetero, meshes
from planner.configurations.forms.flagscale.recompute import COUNT, GRANULARITY, stages
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.meaning import precision
from planner.configurations.megatron.model import described, unplannable
from planner.domain.configuration import Configuration
from planner.errors import Problem, SpecError
from planner.specs.layout import Layout


def setup(configuration: Configuration) -> Setup:
    """Return what a configuration without errors means.

    Meshes of data degrees d_i whose first works on b samples at once are g = gcd(d_i) replicas of a pipeline, each with
    micro-batches of d_0 b / g samples that stage i divides over d_i / g copies.

    Raises:
        SpecError: it has context or expert degrees in its meshes, recompute that changes within a step, or a model that
            no plan can be made for.
    """
    facts = Facts(parsed(configuration))
    problems = [
        Problem(str(configuration.spot(key)), f"{words} cannot be planned yet; only the rules were checked")
        for key, words in unplannable(facts)
    ]
    if problems:
        raise SpecError(problems)
    found = meshes(configuration) if hetero(configuration) else ()
    layout = _hetero(configuration, found) if found else _plain(configuration)
    world = configuration.world.value if configuration.world else None
    assumed = [] if configuration.number("num_layers") else ["the model is not described"]
    return Setup(
        layout=layout,
        world=sum(mesh.ranks for mesh in found) or world,
        model=described(facts),
        precision=precision(facts),
        assumed=tuple(assumed),
    )


def _hetero(configuration: Configuration, found: tuple[Mesh, ...]) -> Layout:
    per_stage = [mesh for mesh in found for _ in range(mesh.pp)]
    if any(mesh.cp > 1 or mesh.ep > 1 for mesh in found):
        raise SpecError.of(configuration.origin, "has context or expert degrees in its meshes, which no plan has there")
    replicas = gcd(*(mesh.dp for mesh in found))
    tensors = tuple(mesh.tp for mesh in per_stage)
    splits = tuple(mesh.dp // replicas for mesh in per_stage)
    types = configuration.get(TYPES)
    kinds = tuple(str(types[index]) for index, mesh in enumerate(found) for _ in range(mesh.pp)) if types else ()
    layers = split(configuration)
    pp = len(per_stage)
    if not layers:
        layers = [configuration.number("num_layers") // pp] * pp
    return Layout(
        tp=found[0].tp,
        pp=pp,
        dp=replicas,
        zero=int(configuration.on("use_distributed_optimizer")),
        sp=configuration.on("sequence_parallel"),
        mbs=configuration.number("micro_batch_size", 1) * found[0].dp // replicas,
        gbs=configuration.number("global_batch_size") or None,
        seq=configuration.number("seq_length") or None,
        recompute=_policy(configuration),
        schedule="1f1b",
        framework="flagscale",
        chunk_layers=tuple((number,) for number in layers) if all(layers) else (),
        recompute_layers=_uniform(configuration),
        stage_tp=tensors if len(set(tensors)) > 1 else (),
        stage_split=splits if set(splits) != {1} else (),
        stage_recompute=_by_stage(configuration),
        stage_devices=kinds,
    )


def _plain(configuration: Configuration) -> Layout:
    """Return what degrees of Megatron alone say."""
    world = configuration.world.value if configuration.world else 0
    tp, pp, cp = (
        configuration.number(f"{axis}_parallel_size", 1) for axis in ("tensor_model", "pipeline_model", "context")
    )
    chunk, layers = configuration.number("num_layers_per_virtual_pipeline_stage"), configuration.number("num_layers")
    return Layout(
        tp=tp,
        pp=pp,
        vpp=layers // pp // chunk
        if chunk and layers
        else configuration.number("num_virtual_stages_per_pipeline_rank", 1),
        dp=world // (tp * pp * cp) or None,
        cp=cp,
        ep=configuration.number("expert_model_parallel_size", 1),
        zero=int(configuration.on("use_distributed_optimizer")),
        sp=configuration.on("sequence_parallel"),
        mbs=configuration.number("micro_batch_size", 1),
        gbs=configuration.number("global_batch_size") or None,
        seq=configuration.number("seq_length") or None,
        recompute=_policy(configuration),
        framework="flagscale",
        recompute_layers=_uniform(configuration),
        stage_recompute=_by_stage(configuration),
    )


def _policy(configuration: Configuration) -> str:
    return str(configuration.get("recompute_granularity") or "none")


def _uniform(configuration: Configuration) -> int | None:
    """Return how many layers every stage recomputes; None for all that its policy means."""
    block = configuration.get("recompute_granularity") == "full" and configuration.get("recompute_method") == "block"
    return configuration.number("recompute_num_layers") if block else None


def _by_stage(configuration: Configuration) -> tuple[int, ...]:
    """Return the recomputed layers of every stage; empty where all are alike.

    Raises:
        SpecError: they change within a step.
    """
    switches, counts = stages(configuration, GRANULARITY), stages(configuration, COUNT)
    if not switches and not counts:
        return ()
    usual, length = configuration.number("recompute_num_layers", 1), len(switches or counts)
    found = []
    for index in range(length):
        on = set(switches[index]) if switches else {1}
        held = set(counts[index]) if counts else {usual}
        if len(on) > 1 or len(held) > 1:
            message = (
                f"changes the recompute of stage {index} within a step, which no plan does; write one value a stage"
            )
            raise SpecError.of(str(configuration.spot(GRANULARITY, COUNT)), message)
        found.append(held.pop() if on == {1} else 0)
    return tuple(found)
