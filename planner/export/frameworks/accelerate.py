"""Plans as Accelerate's YAML: FSDP 2 with a mesh, or data parallelism; and the same as variables, for torchrun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.errors import CannotExpress
from planner.export.base import Exporter, Node, Part, Program
from planner.export.nodes import nodes_in_order
from planner.loader import dump_yaml
from planner.specs.plan import PlanFile

NAME = "accelerate"
CONFIG, SCRIPT = "accelerate.yaml", "accelerate.sh"
ORDER = "tp-cp-dp-pp"
"""Of its mesh from the innermost: tp, cp, dp_shard, dp_replicate; there are no stages."""
PORT = 29500
"""Where processes meet; accelerate's default."""
PRECISIONS = {"bf16": "bf16", "fp16": "fp16", "fp32": "no"}
MESH = "parallelism_config"


def settings(file: PlanFile) -> dict[str, Any]:
    """Return the configuration of the first machine as plain data; others differ in machine_rank.

    Raises:
        CannotExpress: Accelerate has no word for something of the plan.

    """
    nodes = _nodes(file)
    uneven = {len(node.devices) for node in nodes}
    if len(uneven) > 1:
        listed = " and ".join(map(str, sorted(uneven)))
        reason = f"accelerate launch starts equally many processes on every node, not {listed}"
        raise CannotExpress(NAME, [f"{reason}; write --to torchrun --framework accelerate"])
    devices = {node.devices for node in nodes}
    if len(devices) > 1:
        reason = "the nodes use unlike devices, and accelerate launch takes one gpu_ids for all"
        raise CannotExpress(NAME, [f"{reason}; write --to torchrun --framework accelerate"])
    found: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "FSDP" if _is_sharded(file) else "MULTI_GPU",
        "mixed_precision": PRECISIONS[file.job.precision],
        "num_machines": len(nodes),
        "num_processes": file.plan.num_devices,
        "machine_rank": 0,
        "main_process_ip": nodes[0].name,
        "main_process_port": PORT,
        "rdzv_backend": "static",
        "same_network": True,
        "main_training_function": "main",
        "use_cpu": False,
        "debug": False,
    }
    if not nodes[0].in_order:
        found["gpu_ids"] = ",".join(map(str, nodes[0].devices))
    if _is_sharded(file):
        found["fsdp_config"] = _fsdp(file)
    if _has_mesh(file):
        found[MESH] = {f"{MESH}_{key}": value for key, value in _mesh(file).items()}
    return found


def _is_sharded(file: PlanFile) -> bool:
    """Return whether FSDP has ranks to shard over."""
    return file.plan.zero_stage > 0 and file.plan.num_replicas * file.plan.stages[0].strategy.degree("cp") > 1


def _has_mesh(file: PlanFile) -> bool:
    """Return whether there is more than data parallelism, or FSDP, whose degree is written out."""
    return _is_sharded(file) or file.plan.stages[0].strategy.degree("tp") > 1


def _fsdp(file: PlanFile) -> dict[str, Any]:
    return {
        "fsdp_version": 2,
        "fsdp_reshard_after_forward": file.plan.zero_stage == 3,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_offload_params": False,
        "fsdp_activation_checkpointing": file.plan.stages[0].num_recomputed > 0,
        "fsdp_cpu_ram_efficient_loading": True,
        "fsdp_sync_module_states": True,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
    }


def _mesh(file: PlanFile) -> dict[str, Any]:
    strategy, replicas, sharded = file.plan.stages[0].strategy, file.plan.num_replicas, _is_sharded(file)
    return {
        "dp_replicate_size": 1 if sharded else replicas,
        "dp_shard_size": replicas if sharded else 1,
        "tp_size": strategy.degree("tp"),
        "cp_size": strategy.degree("cp"),
        "cp_backend": "torch",
        "cp_comm_strategy": "alltoall",
        "sp_size": 1,
        "sp_backend": "deepspeed",
    }


def _nodes(file: PlanFile) -> tuple[Node, ...]:
    """Return the nodes of a plan that Accelerate can say.

    Raises:
        CannotExpress: with every reason.

    """
    plan, reasons = file.plan, []
    if plan.num_stages > 1:
        reasons.append(f"it has no pipeline ({plan.num_stages} stages); plan with --constraint pp=1")
    if file.job.precision not in PRECISIONS:
        reasons.append(f"its mixed_precision is {', '.join(PRECISIONS)}, not {file.job.precision}")
    if any(stage.recompute != "none" for stage in plan.stages):
        reasons.append("selective recompute is the model's own and nothing that it says; plan with recompute=none")
    strategies = [stage.strategy for stage in plan.stages]
    if any(one.sequence_parallel and one.degree("tp") > 1 for one in strategies):
        reasons.append("the tensor plans of Transformers keep norms whole; name the layout with sp=0")
    if plan.num_stages == 1 and strategies[0].degree("tp") > 1 and plan.num_replicas > 1 and plan.zero_stage == 0:
        reasons.append("its tensor axis goes with FSDP, not with whole replicas; plan with zero=2 or zero=3")
    order, nodes = nodes_in_order(file, NAME)
    if order != ORDER:
        reasons.append(f"its mesh counts ranks in the order {ORDER}, and the plan in {order}")
    if reasons:
        raise CannotExpress(NAME, reasons)
    return nodes


def _arguments(file: PlanFile) -> tuple[str, ...]:
    """Return what Accelerate leaves to the script, in the words of the Trainer of Transformers: batch and recompute."""
    plan = file.plan
    found = [
        "--per_device_train_batch_size",
        str(plan.micro_batch),
        "--gradient_accumulation_steps",
        str(plan.num_microbatches),
    ]
    if plan.stages[0].num_recomputed and not _is_sharded(file):
        found += ["--gradient_checkpointing", "true"]
    return tuple(found)


def _variables(file: PlanFile) -> tuple[tuple[str, str], ...]:
    """Return what ``accelerate launch`` would set for the processes, so that torchrun can start them instead."""
    found = {"ACCELERATE_MIXED_PRECISION": PRECISIONS[file.job.precision]}
    if _is_sharded(file):
        found["ACCELERATE_USE_FSDP"] = "true"
        found |= {key.upper(): _word(value) for key, value in _fsdp(file).items()}
    if _has_mesh(file):
        found["ACCELERATE_USE_PARALLELISM_CONFIG"] = "true"
        mesh = _mesh(file)
        kept = {key: value for key, value in mesh.items() if key != "cp_comm_strategy" or mesh["cp_size"] > 1}
        found |= {f"PARALLELISM_CONFIG_{key.upper()}": _word(value) for key, value in kept.items()}
    return tuple(found.items())


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _script(file: PlanFile) -> str:
    """Return a script that starts one machine: its number is the argument."""
    nodes = _nodes(file)
    order = ", ".join(f"{number} {node.name}" for number, node in enumerate(nodes))
    return "\n".join(
        (
            "#!/bin/sh",
            f"# Run on every machine with its number: {order}.",
            "# What follows the number goes to train.py, which stands for your own script.",
            "machine=${1:?number of this machine}",
            "shift",
            f'exec accelerate launch --config_file {CONFIG} --machine_rank "$machine" \\',
            f'    train.py {" ".join(_arguments(file))} "$@"',
            "",
        )
    )


def _yaml(found: Mapping[str, Any]) -> str:
    """Return blocks of one key a line, as ``accelerate config`` writes them."""
    lines = []
    for key, value in found.items():
        inner = value.items() if isinstance(value, dict) else ()
        lines.append(f"{key}:" if inner else f"{key}: {_scalar(value)}")
        lines += [f"  {name}: {_scalar(word)}" for name, word in inner]
    return "\n".join(lines) + "\n"


def _scalar(value: Any) -> str:
    return dump_yaml(value).strip()


def _parts(file: PlanFile) -> tuple[Part, ...]:
    return (
        Part(name=CONFIG, text=_yaml(settings(file))),
        Part(name=SCRIPT, text=_script(file), executable=True),
    )


def _program(file: PlanFile) -> Program:
    _nodes(file)
    return Program(command=("train.py", *_arguments(file)), environment=_variables(file))


ACCELERATE = Exporter(
    name=NAME,
    summary="accelerate.yaml: FSDP 2 with tensor and context ranks, or data parallelism",
    framework=NAME,
    parts=_parts,
    program=_program,
    document=settings,
)
