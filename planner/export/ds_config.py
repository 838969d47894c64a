"""What every program that DeepSpeed drives reads of a plan: the batch, the precision and the ZeRO stage, as JSON."""

from __future__ import annotations

import json
from typing import Any

from planner.domain.plan import Plan

CONFIG = "ds_config.json"
"""Usual name of the file."""
PRECISIONS = ("bf16", "fp16", "fp32")
"""That it can say."""
BUCKET = 500_000_000
"""[elements] DeepSpeed's default, written out because it takes memory."""


def ds_config(plan: Plan, precision: str) -> dict[str, Any]:
    """Return the configuration of a plan of equal replicas as plain data; every part of the batch is written out."""
    return {
        "train_batch_size": plan.global_batch,
        "train_micro_batch_size_per_gpu": plan.micro_batch,
        "gradient_accumulation_steps": plan.num_microbatches,
        "bf16": {"enabled": precision == "bf16"},
        "fp16": {"enabled": precision == "fp16"},
        "zero_optimization": _zero(plan),
    }


def ds_text(found: dict[str, Any]) -> str:
    """Return a configuration as the text of its file."""
    return json.dumps(found, indent=2) + "\n"


def _zero(plan: Plan) -> dict[str, Any]:
    """Return the sharding; a pipeline exchanges gradients by itself, after its last micro-batch."""
    if plan.zero_stage == 0:
        return {"stage": 0}
    found: dict[str, Any] = {
        "stage": plan.zero_stage,
        "overlap_comm": plan.num_stages == 1,
        "contiguous_gradients": True,
        "reduce_bucket_size": BUCKET,
    }
    if plan.zero_stage < 3:
        return {**found, "allgather_bucket_size": BUCKET}
    return {**found, "stage3_gather_16bit_weights_on_model_save": True}
