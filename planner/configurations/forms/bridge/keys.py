"""Keys of Megatron-Bridge's configuration and what Megatron-LM calls the same inside (``dest`` of its parser).

Sources: scripts/training/run_recipe.py and scripts/translate_mlm_to_bridge.py of NVIDIA-NeMo/Megatron-Bridge at 067f987
(2026-08-22). Most fields of ``model`` are those of Megatron-Core's TransformerConfig and have one name in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SECTIONS = (
    "model",
    "train",
    "dataset",
    "optimizer",
    "scheduler",
    "ddp",
    "dist",
    "comm_overlap",
    "mixed_precision",
    "tokenizer",
    "checkpoint",
    "logger",
    "validation",
    "profiling",
    "rng",
    "peft",
    "ft",
    "straggler",
    "nvrx_straggler",
    "rerun_state_machine",
    "env_vars",
    "optimizer_config_override_provider",
    "tensor_inspect",
    "inprocess_restart",
)
"""Fields of ConfigContainer."""
SAME = (
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "num_attention_heads",
    "num_query_groups",
    "kv_channels",
    "max_position_embeddings",
    "position_embedding_type",
    "rotary_base",
    "normalization",
    "add_bias_linear",
    "add_qkv_bias",
    "layernorm_epsilon",
    "qk_layernorm",
    "hidden_dropout",
    "attention_dropout",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "sequence_parallel",
    "pipeline_model_parallel_layout",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
    "recompute_granularity",
    "recompute_method",
    "recompute_num_layers",
    "recompute_modules",
    "cp_comm_type",
    "mtp_num_layers",
    "calculate_per_token_loss",
)
"""Fields of ``model`` with Megatron-LM's name."""
KEYS: Mapping[str, str] = {
    **{f"model.{name}": name for name in SAME},
    "model.virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
    "model.num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "model.num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
    "model.num_moe_experts": "num_experts",
    "model.gated_linear_unit": "swiglu",
    "model.vocab_size": "padded_vocab_size",
    "tokenizer.vocab_size": "vocab_size",
    "dataset.seq_length": "seq_length",
    "dataset.sequence_length": "seq_length",
    "train.micro_batch_size": "micro_batch_size",
    "train.global_batch_size": "global_batch_size",
    "ddp.use_distributed_optimizer": "use_distributed_optimizer",
    "ddp.overlap_grad_reduce": "overlap_grad_reduce",
    "ddp.overlap_param_gather": "overlap_param_gather",
    "ddp.use_megatron_fsdp": "use_megatron_fsdp",
    "ddp.data_parallel_sharding_strategy": "data_parallel_sharding_strategy",
    "checkpoint.ckpt_format": "ckpt_format",
    "comm_overlap.tp_comm_overlap": "tp_comm_overlap",
    "dist.use_tp_pp_dp_mapping": "use_tp_pp_dp_mapping",
}
"""Key -> Megatron-LM's inner name."""
INVERTED: Mapping[str, str] = {
    "model.share_embeddings_and_output_weights": "untie_embeddings_and_output_weights",
}
"""Key -> inner name of the switch that says the opposite."""
SEQUENCE = "model.seq_length"
"""Length that the dataset's replaces; kept under its own name."""
OPTIONS: Mapping[str, str] = {
    "-ms": "train.train_iters",
    "--max_steps": "train.train_iters",
    "-gb": "train.global_batch_size",
    "--global_batch_size": "train.global_batch_size",
    "-mb": "train.micro_batch_size",
    "--micro_batch_size": "train.micro_batch_size",
    "-sl": "dataset.seq_length",
    "--seq_length": "dataset.seq_length",
    "-tp": "model.tensor_model_parallel_size",
    "--tensor_model_parallel_size": "model.tensor_model_parallel_size",
    "-pp": "model.pipeline_model_parallel_size",
    "--pipeline_model_parallel_size": "model.pipeline_model_parallel_size",
    "-cp": "model.context_parallel_size",
    "--context_parallel_size": "model.context_parallel_size",
    "-vp": "model.virtual_pipeline_model_parallel_size",
    "--virtual_pipeline_model_parallel_size": "model.virtual_pipeline_model_parallel_size",
    "-ep": "model.expert_model_parallel_size",
    "--expert_model_parallel_size": "model.expert_model_parallel_size",
    "-etp": "model.expert_tensor_parallel_size",
    "--expert_tensor_parallel_size": "model.expert_tensor_parallel_size",
}
"""Convenience option of run_recipe.py -> key that it sets."""
COUNTS = frozenset(
    {
        *(key for key in KEYS if key.endswith(("_size", "_heads", "_groups", "_layers", "seq_length", "_experts"))),
        "model.num_layers_in_first_pipeline_stage",
        "model.num_layers_in_last_pipeline_stage",
        SEQUENCE,
    }
)
"""Keys of whole numbers; null stands for none of them."""
SWITCHES = frozenset(
    {
        *INVERTED,
        "model.add_bias_linear",
        "model.sequence_parallel",
        "model.account_for_embedding_in_pipeline_split",
        "model.account_for_loss_in_pipeline_split",
        "model.gated_linear_unit",
        "ddp.use_distributed_optimizer",
        "ddp.overlap_grad_reduce",
        "ddp.overlap_param_gather",
        "ddp.use_megatron_fsdp",
        "dist.use_tp_pp_dp_mapping",
    }
)
"""Keys that are true or false."""


def inner(key: str, value: Any) -> tuple[str, Any]:
    """Return Megatron-LM's inner name of a key and what is its value there; the key itself where it has none."""
    if key in INVERTED:
        return INVERTED[key], not value if isinstance(value, bool) else value
    return KEYS.get(key, key), value
