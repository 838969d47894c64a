"""What some recipes of Megatron-Bridge say by themselves, under Megatron-LM's inner names.

Recipes are Python; these figures are copied from src/megatron/bridge/recipes of NVIDIA-NeMo/Megatron-Bridge at 067f987
(2026-08-22), sizes of models from their public Hugging Face configurations. A recipe that is not here may say anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Values = Mapping[str, Any]


def _dense(layers: int, hidden: int, heads: int, groups: int, ffn: int, vocabulary: int) -> dict[str, Any]:
    return {
        "num_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_query_groups": groups,
        "group_query_attention": True,
        "ffn_hidden_size": ffn,
        "vocab_size": vocabulary,
        "num_experts": None,
        "swiglu": True,
        "normalization": "RMSNorm",
        "position_embedding_type": "rope",
        "add_bias_linear": False,
        "add_qkv_bias": False,
        "qk_layernorm": False,
        "untie_embeddings_and_output_weights": True,
    }


EVEN = {
    "pipeline_model_parallel_layout": None,
    "decoder_first_pipeline_num_layers": None,
    "decoder_last_pipeline_num_layers": None,
    "account_for_embedding_in_pipeline_split": False,
    "account_for_loss_in_pipeline_split": False,
}
"""Layers divided by number alone, as in recipes of models whose number of layers has divisors."""


MODELS: Mapping[str, Values] = {
    "llama3_8b": _dense(32, 4096, 32, 8, 14336, 128256),
    "llama31_8b": _dense(32, 4096, 32, 8, 14336, 128256),
    "llama3_70b": _dense(80, 8192, 64, 8, 28672, 128256),
    "llama31_70b": _dense(80, 8192, 64, 8, 28672, 128256),
    "llama31_405b": _dense(126, 16384, 128, 8, 53248, 128256),
    "qwen3_8b": {**_dense(36, 4096, 32, 8, 12288, 151936), "qk_layernorm": True, "kv_channels": 128},
    "qwen3_32b": {**_dense(64, 5120, 64, 8, 25600, 151936), "qk_layernorm": True, "kv_channels": 128},
    "qwen3_30b_a3b": {**EVEN, "num_layers": 48, "num_attention_heads": 32, "num_query_groups": 4, "num_experts": 128},
    "qwen3_235b_a22b": {"num_layers": 94, "num_attention_heads": 64, "num_query_groups": 4, "num_experts": 128},
    "qwen35_vl_35b_a3b": {**EVEN, "num_layers": 40, "num_experts": 256},
    "deepseek_v3": {"num_layers": 61, "num_attention_heads": 128, "num_experts": 256},
    "gpt_oss_20b": {"num_layers": 24, "num_attention_heads": 64, "num_query_groups": 8, "num_experts": 32},
    "gpt_oss_120b": {"num_layers": 36, "num_attention_heads": 64, "num_query_groups": 8, "num_experts": 128},
}
"""Begin of a recipe's name -> its model, as far as rules ask."""


def _degrees(tp: int, pp: int, vpp: int | None, cp: int, ep: int = 1, *, sp: bool) -> dict[str, Any]:
    return {
        "tensor_model_parallel_size": tp,
        "pipeline_model_parallel_size": pp,
        "num_virtual_stages_per_pipeline_rank": vpp,
        "context_parallel_size": cp,
        "expert_model_parallel_size": ep,
        "sequence_parallel": sp,
    }


def _batch(total: int, sequence: int) -> dict[str, Any]:
    return {"global_batch_size": total, "micro_batch_size": 1, "seq_length": sequence}


_ENDS = {"account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True}
_SHARDED = {"use_distributed_optimizer": True, "overlap_grad_reduce": True, "overlap_param_gather": True}
VANILLA = "vanilla_gpt_pretrain_config"
"""Recipe without a model of its own."""
UNSAID: Values = {
    **EVEN,
    "tensor_model_parallel_size": 1,
    "pipeline_model_parallel_size": 1,
    "num_virtual_stages_per_pipeline_rank": None,
    "context_parallel_size": 1,
    "expert_model_parallel_size": 1,
    "expert_tensor_parallel_size": 1,
    "sequence_parallel": False,
    "cp_comm_type": None,
    "hierarchical_context_parallel_sizes": None,
    "microbatch_group_size_per_vp_stage": None,
    "num_distributed_optimizer_instances": 1,
    "use_tp_pp_dp_mapping": False,
    "use_megatron_fsdp": False,
    "use_torch_fsdp2": False,
    "num_experts": None,
    "mtp_num_layers": None,
    "recompute_granularity": None,
    "recompute_method": None,
    "recompute_num_layers": None,
    "recompute_modules": None,
    "rampup_batch_size": None,
    "ckpt_format": "torch_dist",
    "optimizer_cpu_offload": False,
    "use_precision_aware_optimizer": False,
}
"""What fields are that a recipe does not set (defaults of the configurations in src/megatron/bridge at 067f987)."""
PLAIN: Values = {
    "normalization": "LayerNorm",
    "position_embedding_type": "learned_absolute",
    "swiglu": False,
    "add_bias_linear": True,
    "add_qkv_bias": False,
    "qk_layernorm": False,
    "kv_channels": None,
    "untie_embeddings_and_output_weights": False,
}
"""The same of a model (GPTModelProvider)."""
RECIPES: Mapping[str, Values] = {
    VANILLA: {
        **_degrees(1, 1, None, 1, sp=False),
        "global_batch_size": 32,
        "micro_batch_size": 2,
        "seq_length": 1024,
        "use_distributed_optimizer": False,
    },
    "llama3_8b_pretrain_2gpu_h100_bf16_config": {**_degrees(1, 1, None, 2, sp=False), **_batch(512, 8192), **_SHARDED},
    "llama3_70b_pretrain_32gpu_h100_bf16_config": {**_degrees(4, 4, 5, 2, sp=True), **_batch(512, 8192), **_SHARDED},
    "llama31_405b_pretrain_256gpu_h100_bf16_config": {
        **_degrees(8, 8, 2, 4, sp=True),
        **_batch(512, 131072),
        **_SHARDED,
        **_ENDS,
    },
    "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config": {
        **_degrees(1, 1, None, 1, 16, sp=False),
        **_batch(1024, 4096),
        "expert_tensor_parallel_size": 1,
    },
    "qwen3_235b_a22b_pretrain_256gpu_h100_bf16_config": {
        **_degrees(4, 16, None, 2, 8, sp=True),
        "micro_batch_size": 1,
        "seq_length": 4096,
        "expert_tensor_parallel_size": 1,
        **_ENDS,
    },
}
"""Full name -> degrees and batch."""
ALIASES: Mapping[str, str] = {
    "vanilla_gpt_pretrain_1gpu_h100_bf16_config": VANILLA,
    "llama3_8b_pretrain_config": "llama3_8b_pretrain_2gpu_h100_bf16_config",
    "llama3_70b_pretrain_config": "llama3_70b_pretrain_32gpu_h100_bf16_config",
    "llama31_405b_pretrain_config": "llama31_405b_pretrain_256gpu_h100_bf16_config",
}


def known(recipe: str) -> tuple[dict[str, Any], bool]:
    """Return what is known of a recipe, and whether that is all that rules ask for."""
    name = ALIASES.get(recipe, recipe)
    stem = max((one for one in MODELS if name.startswith(f"{one}_")), key=len, default="")
    unsaid = {**UNSAID, **(PLAIN if name == VANILLA else {})} if name in RECIPES else {}
    return {**unsaid, **MODELS.get(stem, {}), **RECIPES.get(name, {})}, name in RECIPES
