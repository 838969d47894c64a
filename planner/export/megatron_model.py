"""A model in the words of Megatron-LM, which its forks and its relatives share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.domain.model import Model

FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "gpt2")
"""Decoders that ``pretrain_gpt.py`` builds from its arguments."""
LAYER_NORM = ("gpt2",)
"""Families with layer norms, learned positions and a plain feed-forward block."""
SWIGLU = ("silu", "swish")
"""Names of the activation of SwiGLU."""


def model_settings(model: Model, sequence: int) -> dict[str, Any]:
    """Return the arguments that build `model`, by Megatron-LM's names (megatron/training/arguments.py, core 0.12 on).

    Args:
        model: of one of `FAMILIES`; see `model_reasons`.
        sequence: [tokens] of one sample.

    """
    spec: dict[str, Any] = dict(model.spec)
    plain = model.family in LAYER_NORM
    found: dict[str, Any] = {
        "num_layers": spec["num_hidden_layers"],
        "hidden_size": spec["hidden_size"],
        "ffn_hidden_size": spec["intermediate_size"],
        "num_attention_heads": spec["num_attention_heads"],
    }
    if spec["num_key_value_heads"] != spec["num_attention_heads"]:
        found |= {"group_query_attention": True, "num_query_groups": spec["num_key_value_heads"]}
    if spec["head_dim"] * spec["num_attention_heads"] != spec["hidden_size"]:
        found["kv_channels"] = spec["head_dim"]
    found |= {"seq_length": sequence, "max_position_embeddings": max(sequence, spec["max_position_embeddings"])}
    found |= _positions(spec, learned=plain)
    found["normalization"] = "LayerNorm" if plain else "RMSNorm"
    if "norm_eps" in spec:
        found["norm_epsilon"] = spec["norm_eps"]
    if not plain:
        found["swiglu"] = True
    if not model.tied:
        found["untie_embeddings_and_output_weights"] = True
    if not spec["mlp_bias"]:
        found["disable_bias_linear"] = True
    if spec["attention_bias"] and not spec["mlp_bias"]:
        found["add_qkv_bias"] = True
    if model.family == "qwen3":
        found["qk_layernorm"] = True
    found |= {"hidden_dropout": spec["hidden_dropout"], "attention_dropout": spec["attention_dropout"]}
    return found


def _positions(spec: Mapping[str, Any], *, learned: bool) -> dict[str, Any]:
    """Return what says how tokens know their places."""
    if learned:
        return {"position_embedding_type": "learned_absolute"}
    found: dict[str, Any] = {"position_embedding_type": "rope"}
    if "rope_theta" in spec:
        found["rotary_base"] = int(spec["rope_theta"])
    scaling = dict(spec.get("rope_scaling") or ())
    if scaling:
        found |= {"use_rope_scaling": True, "rope_scaling_factor": scaling["factor"]}
    return found


def model_reasons(model: Model) -> list[str]:
    """Return why arguments of Megatron-LM cannot build `model`; none if they can."""
    if model.family not in FAMILIES:
        return [
            f"arguments of Megatron-LM build {', '.join(FAMILIES)}, and {model.name} is of the family {model.family}"
        ]
    spec: dict[str, Any] = dict(model.spec)
    reasons = []
    if spec["attention_bias"] and not spec["mlp_bias"] and model.family != "qwen2":
        reasons.append(f"{model.name} has biases in attention alone, behind its output too, which no argument says")
    activation = spec.get("hidden_act", "silu")
    if model.family not in LAYER_NORM and activation not in SWIGLU:
        reasons.append(f"{model.name} gates with {activation}; only SwiGLU is known to be the same")
    scaling = dict(spec.get("rope_scaling") or ())
    kind = scaling.get("rope_type", scaling.get("type"))
    if scaling and (kind != "llama3" or "factor" not in scaling):
        reasons.append(f"{model.name} stretches rotary positions by {kind}, and only llama3 has an argument")
    return reasons
