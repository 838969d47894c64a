"""Hetu v2: a JSON that gives every weight of every layer the ranks of each pipeline, which may be unlike.

The form is that of ``python/hetu/models/llama/generate_llama_hetero_4d_config.py`` of PKU-DAIR/Hetu at 9e47240
(2025-07-18), as ``python/hetu/utils/parallel/read_ds.py`` reads it. Every leaf has, for each pipeline, into how many
parts its weight is cut (``split``), how many pipelines hold it (``dup``), and on which ranks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.domain.plan import Plan
from planner.errors import CannotExpress
from planner.export.base import Exporter, Part
from planner.export.nodes import nodes_of
from planner.export.table import table_json, table_part
from planner.specs.plan import PlanFile

NAME = "hetu"
FAMILIES = ("llama", "mistral")
ADAM = "adam-fp32-states"
VARIABLE, PLACEHOLDER = "variable", "placeholder"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """Where one layer is, pipeline by pipeline."""

    ranks: tuple[tuple[int, ...], ...]
    recomputed: tuple[bool, ...]

    @property
    def degrees(self) -> list[int]:
        """Tensor degree in each pipeline."""
        return [len(one) for one in self.ranks]

    def leaf(self, cut: str, kind: str = VARIABLE) -> dict[str, Any]:
        """Return a weight that tensor ranks cut along a dimension, or an input that pipelines divide."""
        copies = [len(self.ranks)] * len(self.ranks)
        split, dup = (self.degrees, copies) if kind == VARIABLE else (copies, self.degrees)
        return {
            "split": {cut: split},
            "dup": dup,
            "device_group_union": [list(one) for one in self.ranks],
            "type": kind,
        }


def _parts(file: PlanFile) -> tuple[Part, ...]:
    """Return the JSON and the arguments that go with it.

    Raises:
        CannotExpress: with every reason.
    """
    from planner.placement import place

    reasons = list(_reasons(file))
    if reasons:
        raise CannotExpress(NAME, reasons)
    placed = place(file.plan, file.cluster, file.model, file.job)
    hosts = [f"{node.name} slots={len(node.devices)}\n" for node in nodes_of(placed, NAME)]
    return (
        Part(name="ds_parallel_config.json", text=json.dumps(_document(file), indent=2) + "\n"),
        Part(name="batch.txt", text=_batch(file.plan)),
        Part(name="hostfile", text="".join(hosts)),
        table_part(placed),
        table_json(placed),
    )


def _batch(plan: Plan) -> str:
    """Return the arguments of Hetu's training scripts that the JSON does not hold."""
    numbers = [number for one in plan.pipelines for number in _micro_batches(one)]
    return (
        f"--global_batch_size {plan.global_batch}\n"
        f"--micro_batch_size {plan.micro_batch}\n"
        f"--micro_batch_num_list {json.dumps(numbers, separators=(',', ':'))}\n"
    )


def _micro_batches(pipeline: Plan) -> list[int]:
    """Return the micro-batches of each replica of one kind; the last ones may have one less."""
    full = pipeline.num_replicas - pipeline.short_replicas
    return [pipeline.num_microbatches] * full + [pipeline.num_microbatches - 1] * pipeline.short_replicas


def _reasons(file: PlanFile) -> Iterator[str]:
    """Yield what Hetu has no words for."""
    plan, model, optimizer = file.plan, file.model, file.job.optimizer
    stages = plan.all_stages
    partly = [stage for stage in stages if stage.num_recomputed < stage.num_layers]
    wide = [stage for stage in stages if stage.strategy.degree("tp") > 1]
    found = (
        (model.family not in FAMILIES, f"the family {model.family}; it is written for {' and '.join(FAMILIES)}"),
        (model.tied, "tied embeddings; wte and lm_head are weights of their own"),
        (optimizer is not None and optimizer.name != ADAM, f"another optimizer recipe than {ADAM}"),
        (plan.virtual_stages > 1 or plan.schedule != "1f1b", f"schedule {plan.schedule}; it runs 1f1b without chunks"),
        (plan.zero_stage > 1, f"ZeRO stage {plan.zero_stage}; it shards the optimizer alone"),
        (
            any(stage.split > 1 for stage in stages),
            "stages that divide micro-batches; each stage of a pipeline is one tensor group",
        ),
        (
            any(stage.strategy.degree("cp") > 1 for stage in stages),
            "context parallelism; pipelines of the form that is written have none",
        ),
        (
            not all(stage.strategy.sequence_parallel for stage in wide),
            "tensor parallelism without sequence parallelism; its norms are cut, too",
        ),
        (
            any(stage.recompute != "none" for stage in partly),
            "selective recompute; layers are recomputed in full or not",
        ),
        (
            len({one.micro_batch for one in plan.pipelines}) > 1,
            "pipelines with unlike micro-batches; one size holds of all",
        ),
    )
    yield from (reason for holds, reason in found if holds)


def _layers(file: PlanFile) -> tuple[_Layer, ...]:
    """Return every layer with its ranks in each pipeline."""
    from planner.placement import place

    groups: dict[tuple[int, int, int], list[int]] = {}
    for rank in place(file.plan, file.cluster, file.model, file.job).ranks:
        groups.setdefault((rank.pipeline, rank.replica, rank.stage), []).append(rank.rank)
    pipelines = [(kind, replica) for kind, one in enumerate(file.plan.pipelines) for replica in range(one.num_replicas)]
    found = []
    for layer in range(file.model.num_layers):
        ranks, recomputed = [], []
        for kind, replica in pipelines:
            stages = file.plan.pipelines[kind].stages
            index = next(i for i, stage in enumerate(stages) if stage.first_layer <= layer <= stage.last_layer)
            ranks.append(tuple(groups[kind, replica, index]))
            recomputed.append(layer - stages[index].first_layer < stages[index].num_recomputed)
        found.append(_Layer(ranks=tuple(ranks), recomputed=tuple(recomputed)))
    return tuple(found)


def _document(file: PlanFile) -> dict[str, Any]:
    """Return the configuration."""
    layers = _layers(file)
    first, last = layers[0], layers[-1]
    number = len(first.ranks)
    again = [[index for index, layer in enumerate(layers) if layer.recomputed[one]] for one in range(number)]
    return {
        "zero": file.plan.zero_stage == 1 and number > 1,
        "devices": list(range(file.plan.num_devices)),
        "recompute_granularity": ["full" if one else None for one in again],
        "recompute_layer_idxs_list": again,
        "input": first.leaf("0", PLACEHOLDER),
        "llama": {
            "wte": first.leaf("0"),
            "blocks": {f"blocks{index}": _block(index, layer) for index, layer in enumerate(layers)},
            "rmsnorm_final": last.leaf("0"),
        },
        "lm_head": last.leaf("1"),
        "label": last.leaf("0", PLACEHOLDER),
    }


def _block(index: int, layer: _Layer) -> Mapping[str, Any]:
    return {
        "range": [index],
        "recompute": list(layer.recomputed),
        "output_recompute": [False] * len(layer.recomputed),
        "cpu_offload": [False] * len(layer.recomputed),
        "rmsnorm1": layer.leaf("0"),
        "attn": {"qkv": layer.leaf("1"), "dense": layer.leaf("0")},
        "rmsnorm2": layer.leaf("0"),
        "mlp": {"dense_h_to_4h": layer.leaf("1"), "dense_4h_to_h": layer.leaf("0"), "activation_func": {}},
    }


HETU = Exporter(
    name=NAME,
    summary="ds_parallel_config of Hetu v2: unlike pipelines, tensor degrees stage by stage",
    parts=_parts,
    document=_document,
)
