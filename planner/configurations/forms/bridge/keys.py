"""Keys of Megatron-Bridge's configuration and what Megatron-LM calls the same inside (``dest`` of its parser).

Sources: scripts/training/run_recipe.py and scripts/translate_mlm_to_bridge.py of NVIDIA-NeMo/Megatron-Bridge at 067f987
(2026-08-22). Most fields of ``model`` are those of Megatron-Core's TransformerConfig and have one name in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.configurations.megatron.flags import Flag, flags, names

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
    "rope_scaling_factor",
    "normalization",
    "add_bias_linear",
    "add_qkv_bias",
    "layernorm_epsilon",
    "qk_layernorm",
    "multi_latent_attention",
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
    "microbatch_group_size_per_vp_stage",
    "recompute_granularity",
    "recompute_method",
    "recompute_num_layers",
    "recompute_modules",
    "distribute_saved_activations",
    "cpu_offloading",
    "cpu_offloading_num_layers",
    "fine_grained_activation_offloading",
    "offload_modules",
    "cp_comm_type",
    "hierarchical_context_parallel_sizes",
    "mtp_num_layers",
    "calculate_per_token_loss",
    "moe_ffn_hidden_size",
    "moe_shared_expert_intermediate_size",
    "moe_router_topk",
    "moe_token_dispatcher_type",
    "moe_flex_dispatcher_backend",
    "moe_enable_deepep",
    "moe_shared_expert_overlap",
    "cuda_graph_impl",
)
"""Fields of ``model`` with Megatron-LM's name."""
KEYS: Mapping[str, str] = {
    **{f"model.{name}": name for name in SAME},
    "model.virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
    "model.num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "model.num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
    "model.num_moe_experts": "num_experts",
    "model.gated_linear_unit": "swiglu",
    "model.rope_scaling": "use_rope_scaling",
    "model.seq_len_interpolation_factor": "rotary_seq_len_interpolation_factor",
    "model.vocab_size": "padded_vocab_size",
    "tokenizer.vocab_size": "vocab_size",
    "dataset.seq_length": "seq_length",
    "dataset.sequence_length": "seq_length",
    "train.micro_batch_size": "micro_batch_size",
    "train.global_batch_size": "global_batch_size",
    "train.rampup_batch_size": "rampup_batch_size",
    "train.decrease_batch_size_if_needed": "decrease_batch_size_if_needed",
    "ddp.use_distributed_optimizer": "use_distributed_optimizer",
    "ddp.overlap_grad_reduce": "overlap_grad_reduce",
    "ddp.overlap_param_gather": "overlap_param_gather",
    "ddp.use_megatron_fsdp": "use_megatron_fsdp",
    "dist.use_megatron_fsdp": "use_megatron_fsdp",
    "dist.use_torch_fsdp2": "use_torch_fsdp2",
    "ddp.data_parallel_sharding_strategy": "data_parallel_sharding_strategy",
    "ddp.num_distributed_optimizer_instances": "num_distributed_optimizer_instances",
    "dist.num_distributed_optimizer_instances": "num_distributed_optimizer_instances",
    "optimizer.optimizer": "optimizer",
    "optimizer.optimizer_cpu_offload": "optimizer_cpu_offload",
    "optimizer.optimizer_offload_fraction": "optimizer_offload_fraction",
    "optimizer.use_precision_aware_optimizer": "use_precision_aware_optimizer",
    "checkpoint.ckpt_format": "ckpt_format",
    "comm_overlap.tp_comm_overlap": "tp_comm_overlap",
    "comm_overlap.overlap_moe_expert_parallel_comm": "overlap_moe_expert_parallel_comm",
    "comm_overlap.delay_wgrad_compute": "delay_wgrad_compute",
    "dist.use_tp_pp_dp_mapping": "use_tp_pp_dp_mapping",
}
"""Key -> Megatron-LM's inner name. Of several keys the first is the one to write."""
INVERTED: Mapping[str, str] = {
    "model.share_embeddings_and_output_weights": "untie_embeddings_and_output_weights",
}
"""Key -> inner name of the switch that says the opposite."""
SEQUENCE = "model.seq_length"
"""Length that the dataset's replaces; kept under its own name."""
ALIEN: Mapping[str, Any] = {
    "num_layers_per_virtual_pipeline_stage": None,
    "encoder_num_layers": None,
    "encoder_seq_length": None,
    "hybrid_layer_pattern": None,
    "hybrid_override_pattern": None,
    "step_batch_size_schedule": None,
    "tensor_parallel_num_weight_shards": None,
    "recompute_activations": False,
}
"""Inner names for which there is no key, or none that a recipe of a plain decoder uses -> their value."""
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
) - {"train.rampup_batch_size", "model.cpu_offloading_num_layers"}
"""Keys of whole numbers from 1 on."""


def inner(key: str, value: Any) -> tuple[str, Any]:
    """Return Megatron-LM's inner name of a key and what is its value there; the key itself where it has none."""
    if key in INVERTED:
        return INVERTED[key], not value if isinstance(value, bool) else value
    return KEYS.get(key, key), value


def flag_of(key: str) -> Flag | None:
    """Return Megatron-LM's flag for what a key says, which tells the kind of its value; None where there is none."""
    return flags().get(names().get(KEYS.get(key, INVERTED.get(key, "")), ""))
