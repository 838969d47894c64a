"""Plans as DeepSpeed's JSON: ZeRO and Ulysses; its pipelines are cut in code, so that no JSON can say them."""

from __future__ import annotations

from typing import Any

from planner.domain.plan import Plan
from planner.errors import CannotExpress
from planner.export.base import Exporter, Part, Program
from planner.export.ds_config import CONFIG, PRECISIONS, ds_config, ds_text
from planner.export.nodes import nodes_in_order
from planner.specs.plan import PlanFile

NAME = "deepspeed"
NOTES = "ds_config_notes.txt"
ORDER = "tp-cp-dp-pp"
"""DeepSpeed's own: the mesh is (data, sequence), sequence ranks innermost."""


def settings(file: PlanFile) -> dict[str, Any]:
    """Return the configuration as plain data.

    Raises:
        CannotExpress: DeepSpeed's JSON has no word for something of the plan.

    """
    plan = file.plan
    _refuse(file)
    stage = plan.stages[0]
    sequence = stage.strategy.degree("cp")
    found = ds_config(plan, file.job.precision)
    if sequence > 1:
        found |= {"sequence_parallel_size": sequence, "data_parallel_size": plan.num_replicas}
    if stage.num_recomputed:
        found["activation_checkpointing"] = {
            "partition_activations": False,
            "cpu_checkpointing": False,
            "number_checkpoints": stage.num_layers,
        }
    return found


def _refuse(file: PlanFile) -> None:
    """Stop at what DeepSpeed's JSON cannot say.

    Raises:
        CannotExpress: with every reason.

    """
    plan, reasons = file.plan, []
    if plan.num_stages > 1:
        reasons.append(
            f"its JSON has no pipeline ({plan.num_stages} stages): PipelineModule cuts the layers in the script's code;"
            " plan with --constraint pp=1, or write --to megatron-deepspeed"
        )
    if file.job.precision not in PRECISIONS:
        reasons.append(f"it trains in {', '.join(PRECISIONS)}, not in {file.job.precision}")
    if any(stage.recompute != "none" for stage in plan.stages):
        reasons.append(
            "selective recompute is the model's own and nothing that its JSON says; plan with recompute=none"
        )
    order, _ = nodes_in_order(file, NAME)
    if order != ORDER:
        reasons.append(f"its mesh counts ranks in the order {ORDER}, and the plan in {order}")
    if reasons:
        raise CannotExpress(NAME, reasons)


def _notes(file: PlanFile) -> str:
    """Return what the script must do for the plan to hold: what the JSON cannot say."""
    plan: Plan = file.plan
    stage = plan.stages[0]
    sequence = stage.strategy.degree("cp")
    lines = [
        f"{CONFIG} is read by deepspeed.initialize; what it cannot say, the training script must do:",
        f"- samples of {file.job.sequence} tokens, {plan.micro_batch} in each micro-batch",
        f"- gradients added up over {plan.num_microbatches} micro-batches, one call of engine.step for each",
    ]
    if stage.num_recomputed:
        lines.append(
            "- every layer recomputed: model.gradient_checkpointing_enable(), or deepspeed.checkpointing.checkpoint"
        )
    else:
        lines.append("- no layer recomputed: no gradient checkpointing")
    if sequence > 1:
        lines.append(
            f"- Ulysses over {sequence} consecutive ranks: UlyssesSPAttentionHF.register_with_transformers"
            f"(sequence_parallel_size={sequence}), and UlyssesSPDataLoaderAdapter around the data"
        )
    return "\n".join(lines) + "\n"


def _parts(file: PlanFile) -> tuple[Part, ...]:
    return (Part(name=CONFIG, text=ds_text(settings(file))), Part(name=NOTES, text=_notes(file)))


def _program(file: PlanFile) -> Program:
    """Return a training script with the arguments that deepspeed.add_config_arguments defines."""
    return Program(command=("train.py", "--deepspeed", "--deepspeed_config", CONFIG), parts=_parts(file))


DEEPSPEED = Exporter(
    name=NAME,
    summary="ds_config.json: ZeRO and Ulysses, for a training script that calls deepspeed.initialize",
    framework=NAME,
    parts=_parts,
    program=_program,
    document=settings,
)
