"""FlagScale: a fork of Megatron-LM whose stages may run on unlike devices, with tensor and data degrees of their own.

Keys and what they mean are those of ``flagscale/train/arguments.py``, ``flagscale/train/hetero/parallel_context.py``
and ``flagscale/runner`` at da4935e (November 2025).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from planner.domain.plan import Plan, Stage
from planner.errors import CannotExpress
from planner.export.base import Exporter, Node, Part
from planner.export.machines import VISIBLE
from planner.export.megatron_model import refused, settings, vocabulary_refused
from planner.export.nodes import nodes_of
from planner.export.table import table_json, table_part
from planner.loader import dump_yaml
from planner.specs.plan import PlanFile

if TYPE_CHECKING:
    from planner.placement import Placement

NAME = "flagscale"
USUAL_ORDER = "tp-cp-dp-pp"
PRECISIONS = ("bf16", "fp16")
ADAM = "adam-fp32-states"
"""What the optimizer is without any argument."""
VOCABULARY = ("vocab_size", "make_vocab_size_divisible_by")
"""Arguments of the tokenizer."""
HEAD = """\
# What is yours to add, here or behind flagscale.sh: train.data (data_path, tokenizer), train.model.optimizer,
# train.model.train_iters, and the entry point if it is another.
"""
SCRIPT = """\
#!/bin/bash
# Start this where FlagScale lies; it reaches the nodes of the hostfile over ssh, in their order.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec python run.py --config-path "$here" --config-name flagscale action=run \\
  experiment.runner.hostfile="$here/hostfile" "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """A run of stages with one tensor degree, one data degree and one kind of node."""

    tp: int
    dp: int
    pp: int
    kind: str
    """What its nodes are called in the hostfile: ranks are sorted by these names first."""

    @property
    def numbers(self) -> list[int]:
        """Return tp, cp, ep, dp and pp, as ``hetero_process_meshes`` has them."""
        return [self.tp, 1, 1, self.dp, self.pp]


def _parts(file: PlanFile) -> tuple[Part, ...]:
    """Return the configuration, the hostfile with kinds of devices, and the command that starts it.

    Raises:
        CannotExpress: with every reason.
    """
    from planner.placement import place

    hetero = _is_hetero(file)
    reasons = _reasons(file, hetero=hetero)
    if reasons:
        raise CannotExpress(NAME, reasons)
    # Prices assume replicas of a stage side by side, too; the placement that weighs least may be another one.
    placed = place(file.plan, file.cluster, file.model, file.job, together=hetero)
    nodes = nodes_of(placed, NAME)
    if hetero:
        _refuse_mixed_nodes(placed)
    kinds = _kinds(nodes)
    found = tuple(_meshes(file.plan, nodes, kinds))
    model = _model(file)
    config = {
        "experiment": _experiment(file, nodes),
        "action": "run",
        "hydra": {"run": {"dir": "${experiment.exp_dir}/hydra"}},
        "train": {
            "system": _system(file, found, placed.order, hetero=hetero),
            "model": {key: value for key, value in model.items() if key not in VOCABULARY},
            "data": {"tokenizer": {key: value for key, value in model.items() if key in VOCABULARY}},
        },
    }
    hosts = [f"{node.name} slots={len(node.devices)} type={kind}\n" for node, kind in zip(nodes, kinds, strict=True)]
    return (
        Part(name="flagscale.yaml", text=HEAD + dump_yaml(config)),
        Part(name="hostfile", text="".join(hosts)),
        Part(name="flagscale.sh", text=SCRIPT, executable=True),
        table_part(placed),
        table_json(placed),
    )


def _kinds(nodes: Sequence[Node]) -> tuple[str, ...]:
    """Return what each node is called: its device, told apart where a device comes back behind another.

    FlagScale sorts the ranks by the first place of their kind in ``hetero_device_types``, so that a kind that came
    back would be sorted to its first nodes.
    """
    met: dict[str, int] = {}
    kinds: list[str] = []
    for device, run in groupby(nodes, key=lambda node: node.device):
        met[device] = met.get(device, 0) + 1
        name = device if met[device] == 1 else f"{device}-{met[device]}"
        kinds += [name for _ in run]
    return tuple(kinds)


def _meshes(plan: Plan, nodes: Sequence[Node], kinds: Sequence[str]) -> Iterator[Mesh]:
    """Yield the meshes in the order of the stages, as few as there can be."""
    firsts, rank = [], 0
    for stage in plan.stages:
        at = max(index for index, node in enumerate(nodes) if node.first_rank <= rank)
        firsts.append((stage.strategy.degree("tp"), plan.num_replicas * stage.split, kinds[at]))
        rank += plan.num_replicas * stage.num_devices
    for (tp, dp, kind), run in groupby(firsts):
        yield Mesh(tp=tp, dp=dp, pp=len(list(run)), kind=kind)


def _is_hetero(file: PlanFile) -> bool:
    """Tell whether plain Megatron-LM could not say it: unlike devices, degrees or layers."""
    kinds = {(file.cluster.group(stage.group).device.name, stage.strategy, stage.split) for stage in file.plan.stages}
    return len(kinds) > 1 or len({stage.num_layers for stage in file.plan.stages}) > 1


def _reasons(file: PlanFile, *, hetero: bool) -> list[str]:
    """Return what FlagScale has no words for."""
    plan = file.plan
    first, last = plan.stages[0], plan.stages[-1]
    reasons = [*refused(file), *vocabulary_refused(file, first.strategy.degree("tp"))]
    padded = dict(file.model.spec).get("vocab_size_padded")
    if padded and first.strategy.degree("tp") != last.strategy.degree("tp"):
        reasons.append("a padded vocabulary over ends with unlike tensor degrees, which pad it by their own")
    if file.job.optimizer is not None and file.job.optimizer.name != ADAM:
        reasons.append(f"the optimizer recipe {file.job.optimizer.name}; it is written for {ADAM}")
    tensors = {stage.strategy.degree("tp") for stage in plan.stages}
    cut = {stage.strategy.sequence_parallel for stage in plan.stages if stage.strategy.degree("tp") > 1}
    if file.job.precision not in PRECISIONS:
        reasons.append(f"precision {file.job.precision}; it is written for {' and '.join(PRECISIONS)}")
    if len(cut) > 1:
        reasons.append("stages that are unlike in sequence parallelism; it is one switch for all with tp above 1")
    elif len(tensors) > 1 and cut == {False}:
        reasons.append("unlike tensor degrees without sequence parallelism; its meshes hand over cuts of the sequence")
    if hetero and file.model.tied and first.strategy.degree("tp") != last.strategy.degree("tp"):
        ends = f"tp {first.strategy.degree('tp')} and {last.strategy.degree('tp')}"
        reasons.append(f"tied embeddings between ends with {ends}; both ends need the same")
    if hetero and file.model.tied and max(first.split, last.split) % min(first.split, last.split):
        reasons.append(
            f"tied embeddings between ends split {first.split} and {last.split} ways; one must divide the other"
        )
    return reasons


def _refuse_mixed_nodes(placed: Placement) -> None:
    """Stop at a node with several kinds of devices in use: a line of the hostfile has one.

    Raises:
        CannotExpress: there is such a node.
    """
    from planner.placement import slots

    for node in slots(placed.ranks):
        devices = dict.fromkeys(rank.device for rank in node.ranks)
        if len(devices) > 1:
            message = f"{node.node} with {' and '.join(devices)}; a node of its hostfile has one kind of device"
            raise CannotExpress(NAME, [message])


def _experiment(file: PlanFile, nodes: Sequence[Node]) -> dict[str, Any]:
    """Return who runs where; the runner needs to be told the devices, whose number it takes from their list."""
    vendors = {group.device.name: group.device.vendor for group in file.cluster.groups}

    def variable(node: Node) -> dict[str, str]:
        # The runner counts the devices in the first variable whose name has this end.
        name = VISIBLE.get(vendors[node.device], "")
        name = name if name.endswith("_VISIBLE_DEVICES") else VISIBLE["nvidia"]
        return {name: ",".join(map(str, node.devices))}

    usual = variable(nodes[0])
    others = {node.name: variable(node) for node in nodes if variable(node) != usual}
    return {
        "exp_name": "plan",
        "exp_dir": "./outputs",
        "task": {"type": "train", "backend": "megatron", "entrypoint": "./flagscale/train/train_gpt.py"},
        "runner": {"backend": "torchrun", "rdzv_backend": "static", "hostfile": "hostfile"},
        "envs": {"CUDA_DEVICE_MAX_CONNECTIONS": 1, **usual, **({"node_specific": others} if others else {})},
    }


def _system(file: PlanFile, meshes: Sequence[Mesh], order: str, *, hetero: bool) -> dict[str, Any]:
    """Return the degrees, and the meshes where plain degrees cannot say them."""
    plan = file.plan
    found: dict[str, Any] = {
        "tensor_model_parallel_size": meshes[0].tp,
        "pipeline_model_parallel_size": plan.num_stages,
        "context_parallel_size": 1,
        "sequence_parallel": any(stage.strategy.sequence_parallel for stage in plan.stages),
        "use_distributed_optimizer": plan.zero_stage == 1,
    }
    if order != USUAL_ORDER:
        found["use_tp_pp_dp_mapping"] = True
    if hetero:
        found["hetero"] = _hetero(file, meshes)
    recompute = _recompute(plan)
    if recompute:
        found["recompute"] = recompute
    found["precision"] = {file.job.precision: True, "accumulate_allreduce_grads_in_fp32": True}
    return found


def _hetero(file: PlanFile, meshes: Sequence[Mesh]) -> dict[str, Any]:
    used = {stage.group for stage in file.plan.stages}
    vendors = {group.device.vendor for group in file.cluster.groups if group.name in used} - {""}
    found: dict[str, Any] = {
        "enable_hetero": True,
        "hetero_process_meshes": [number for mesh in meshes for number in mesh.numbers],
        "hetero_device_types": [mesh.kind for mesh in meshes],
        "hetero_current_device_type": meshes[0].kind,
        "hetero_pipeline_layer_split": [stage.num_layers for stage in file.plan.stages],
        "standalone_embedding_stage": False,
    }
    if len(vendors) > 1:
        found["hetero_use_cpu_communication"] = True
    if file.model.tied and meshes[0].dp != meshes[-1].dp:
        found["use_partial_reduce_for_shared_embedding"] = True
    return found


def _recompute(plan: Plan) -> dict[str, Any]:
    """Return the recompute block; empty if nothing is recomputed."""
    counts = [stage.num_recomputed for stage in plan.stages]
    if not any(counts):
        selective = any(stage.recompute != "none" for stage in plan.stages)
        return {"recompute_granularity": "selective"} if selective else {}
    if all(stage.num_recomputed == stage.num_layers for stage in plan.stages):
        return {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
    found: dict[str, Any] = {
        "recompute_granularity": "full",
        "recompute_method": "block",
        "recompute_num_layers": max(counts),
    }
    if len(set(counts)) > 1:
        whole = plan.num_microbatches
        # Lists of (stages, micro-batches, value, ...); 1 is "full" in the first, "block" in the second.
        found["recompute_granularity_per_stage_micro_batch"] = [[1, whole, int(count > 0)] for count in counts]
        found["recompute_method_per_stage_micro_batch"] = [[1, whole, 1] for _ in counts]
        found["recompute_num_layers_per_stage_micro_batch"] = [[1, whole, count] for count in counts]
    return found


def _model(file: PlanFile) -> dict[str, Any]:
    """Return the model and the batch; the micro-batch is that of a copy of the first stage."""
    first: Stage = file.plan.stages[0]
    return {
        "use_mcore_models": True,
        "transformer_impl": "transformer_engine",
        **settings(file, first.strategy.degree("tp")),
        "seq_length": file.job.sequence,
        "micro_batch_size": file.plan.micro_batch // first.split,
        "global_batch_size": file.plan.global_batch,
    }


FLAGSCALE = Exporter(
    name=NAME,
    summary="Hydra YAML of FlagScale: unlike devices, tensor and data degrees stage by stage, with its hostfile",
    parts=_parts,
    framework=NAME,
)
