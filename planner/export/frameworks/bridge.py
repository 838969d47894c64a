"""Megatron-Bridge: the plan as overrides of the recipe that brings no model of its own, so that nothing is left to it.

Fields are those of ConfigContainer (NVIDIA-NeMo/Megatron-Bridge at 067f987, 2026-08-22), whose ``model`` is
Megatron-Core's TransformerConfig. Every value is one that a shell leaves as it is.
"""

from __future__ import annotations

from typing import Any

from planner.configurations.layout_text import text_of
from planner.domain.plan import Plan
from planner.errors import CannotExpress
from planner.export.base import Exporter, Part, Program
from planner.export.megatron_model import refused, settings, vocabulary_refused
from planner.export.megatron_recompute import block_layers
from planner.export.nodes import nodes_in_order
from planner.specs.plan import PlanFile

NAME = "megatron-bridge"
RECIPE = "vanilla_gpt_pretrain_config"
SCRIPT = "scripts/training/run_recipe.py"
PRECISIONS = {
    "bf16": "bf16_mixed",
    "fp16": "fp16_mixed",
    "fp8": "bf16_with_fp8_current_scaling_mixed",
    "mxfp8": "bf16_with_mxfp8_mixed",
    "nvfp4": "bf16_with_nvfp4_mixed",
}
"""Ours -> name of a recipe of precision."""
STRATEGIES = {2: "optim_grads", 3: "optim_grads_params"}
"""ZeRO stage -> what Megatron-FSDP shards."""
USUAL_ORDER = "tp-cp-dp-pp"
ADAM = "adam-fp32-states"
"""What the optimizer of the recipe is."""
FIELDS = {
    "norm_epsilon": "layernorm_epsilon",
    "use_rope_scaling": "rope_scaling",
    "swiglu": "gated_linear_unit",
    "rotary_seq_len_interpolation_factor": "seq_len_interpolation_factor",
}
"""Argument of Megatron-LM -> field of ``model`` with another name."""


def _overrides(file: PlanFile) -> tuple[str, ...]:
    """Return ``KEY=VALUE`` for all that a plan and its model say.

    Raises:
        CannotExpress: with every reason.
    """
    plan = file.plan
    reasons = [*refused(file), *vocabulary_refused(file, plan.stages[0].strategy.degree("tp"))]
    if dict(file.model.spec).get("sliding_window"):
        reasons.append("a sliding window, which no override can say without brackets that a shell expands")
    if file.job.optimizer is not None and file.job.optimizer.name != ADAM:
        reasons.append(f"the optimizer recipe {file.job.optimizer.name}; it is written for {ADAM}")
    if file.job.precision not in PRECISIONS:
        reasons.append(f"precision {file.job.precision}; it has recipes for {', '.join(PRECISIONS)}")
    cut = {stage.strategy.sequence_parallel for stage in plan.stages}
    if len(cut) > 1:
        reasons.append("stages that are unlike in sequence parallelism; it is one switch for all")
    if block_layers(plan) == 0:
        reasons.append("recomputed layers that no one number in every chunk comes to; ask for recompute != full")
    order, _ = nodes_in_order(file, NAME)
    if order != USUAL_ORDER and plan.zero_stage > 1:
        reasons.append(f"ZeRO stage {plan.zero_stage} with ranks in the order {order}, which Megatron-FSDP excludes")
    if reasons:
        raise CannotExpress(NAME, reasons)
    values = {**_model(file), **_degrees(file, order), **_recompute(plan), **_training(file)}
    return tuple(f"{key}={_text(value)}" for key, value in values.items())


def _text(value: Any) -> str:
    """Return a value in the grammar of Hydra."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _model(file: PlanFile) -> dict[str, Any]:
    """Return the model, under the fields of TransformerConfig and GPTModelProvider."""
    found = settings(file, file.plan.stages[0].strategy.degree("tp"))
    vocabulary = found.pop("vocab_size")
    plain = found.pop("disable_bias_linear", False)
    untied = found.pop("untie_embeddings_and_output_weights", False)
    found.pop("group_query_attention", None)
    found.setdefault("num_query_groups", found["num_attention_heads"])
    fields = {f"model.{FIELDS.get(key, key)}": value for key, value in found.items()}
    if found.get("swiglu"):
        fields["model.activation_func"] = "silu"
    return {
        **fields,
        "model.add_bias_linear": not plain,
        "model.share_embeddings_and_output_weights": not untied,
        "tokenizer.vocab_size": vocabulary,
    }


def _degrees(file: PlanFile, order: str) -> dict[str, Any]:
    """Return the degrees; in the other order Megatron Core wants as many replicas of experts as of everything else."""
    plan = file.plan
    strategy = plan.stages[0].strategy
    sizes = [stage.chunk_sizes for stage in plan.stages]
    even = len({size for chunks in sizes for size in chunks}) == 1
    found: dict[str, Any] = {
        "model.tensor_model_parallel_size": strategy.degree("tp"),
        "model.pipeline_model_parallel_size": plan.num_stages,
        "model.virtual_pipeline_model_parallel_size": plan.virtual_stages if plan.virtual_stages > 1 else None,
        "model.microbatch_group_size_per_vp_stage": plan.microbatch_group or None,
        "model.pipeline_model_parallel_layout": None if even else text_of(tuple(sizes)),
        "model.context_parallel_size": strategy.degree("cp"),
        "model.expert_model_parallel_size": 1,
        "model.expert_tensor_parallel_size": strategy.num_devices if order != USUAL_ORDER else 1,
        "model.sequence_parallel": strategy.sequence_parallel,
    }
    if strategy.degree("cp") > 1:
        found["model.cp_comm_type"] = strategy.cp_comm_type
    found["dist.use_tp_pp_dp_mapping"] = order != USUAL_ORDER
    return found


def _recompute(plan: Plan) -> dict[str, Any]:
    kind: str | None = None
    method: str | None = None
    count: int | None = None
    if all(stage.num_recomputed == stage.num_layers for stage in plan.stages):
        kind, method, count = "full", "uniform", 1
    elif number := block_layers(plan):
        kind, method, count = "full", "block", number
    elif plan.stages[0].recompute != "none":
        kind = "selective"
    values = {"granularity": kind, "method": method, "num_layers": count, "modules": None}
    return {f"model.recompute_{key}": value for key, value in values.items()}


def _training(file: PlanFile) -> dict[str, Any]:
    plan = file.plan
    sharded = plan.zero_stage > 0
    found: dict[str, Any] = {
        "train.micro_batch_size": plan.micro_batch,
        "train.global_batch_size": plan.global_batch,
        "dataset.seq_length": file.job.sequence,
        "mixed_precision": PRECISIONS[file.job.precision],
        "ddp.use_distributed_optimizer": sharded,
        "ddp.overlap_grad_reduce": True,
        "ddp.overlap_param_gather": sharded,
    }
    if plan.zero_stage in STRATEGIES:
        found["ddp.use_megatron_fsdp"] = True
        found["ddp.data_parallel_sharding_strategy"] = STRATEGIES[plan.zero_stage]
        found["checkpoint.ckpt_format"] = "fsdp_dtensor"
    return found


def _parts(file: PlanFile) -> tuple[Part, ...]:
    return (Part(name="overrides.txt", text="\n".join(_overrides(file)) + "\n"),)


def _program(file: PlanFile) -> Program:
    """Return the command; Megatron-FSDP wants several connections, tensor and context ranks one (before Blackwell)."""
    connections = "8" if file.plan.zero_stage in STRATEGIES else "1"
    return Program(
        command=(SCRIPT, "--recipe", RECIPE, "--mode", "pretrain", *_overrides(file)),
        environment=(("CUDA_DEVICE_MAX_CONNECTIONS", connections),),
        parts=_parts(file),
    )


BRIDGE = Exporter(
    name=NAME,
    summary="KEY=VALUE overrides for a Megatron-Bridge recipe (run_recipe.py)",
    parts=_parts,
    framework="megatron",
    program=_program,
)
