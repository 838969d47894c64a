"""The model that Megatron-LM's flags describe, as a Hugging Face configuration of the family that it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.configurations.megatron.facts import Facts

SIZES = {
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "max_position_embeddings": "max_position_embeddings",
}
"""Flags that must be given -> their names in a model file."""
NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads")
"""Keys without which a model is not described."""


def model(facts: Facts) -> dict[str, Any] | None:
    """Return what the flags say of the model; None if they say nothing."""
    if not any(key in facts.of or facts.value(key) for key in (*SIZES, "encoder_num_layers")):
        return None
    vocabulary, padded = facts.vocabulary
    found: dict[str, Any] = {
        "model_type": family(facts),
        "hidden_size": facts.count("hidden_size"),
        "num_hidden_layers": facts.layers or None,
        "num_attention_heads": facts.heads or None,
        "num_key_value_heads": facts.groups or None,
        "head_dim": _head_dim(facts),
        "intermediate_size": _ffn(facts),
        "vocab_size": vocabulary or None,
        "vocab_size_padded": padded or None,
        "max_position_embeddings": facts.count("max_position_embeddings"),
        "tie_word_embeddings": not facts.on("untie_embeddings_and_output_weights"),
        "attention_bias": facts.on("add_bias_linear") or facts.on("add_qkv_bias"),
        "mlp_bias": facts.on("add_bias_linear"),
        "hidden_dropout": facts.value("hidden_dropout"),
        "attention_dropout": facts.value("attention_dropout"),
        "norm_eps": facts.value("layernorm_epsilon"),
        **_rotary(facts),
    }
    return {key: value for key, value in found.items() if value is not None}


def described(facts: Facts) -> dict[str, Any] | None:
    """Return the same where it is enough to plan for; None otherwise."""
    found = model(facts) or {}
    return found if found.keys() >= {"model_type", *NEEDED} else None


def family(facts: Facts) -> str | None:
    """Return the family of the layers; None if it is none that is known."""
    rotary = rotates(facts)
    if gated(facts) and facts.value("normalization") == "RMSNorm" and rotary:
        biased = facts.on("add_qkv_bias") and not facts.on("add_bias_linear")
        if facts.on("qk_layernorm"):
            return None if biased or facts.on("add_bias_linear") else "qwen3"
        return "qwen2" if biased else "llama"
    plain = not (gated(facts) or facts.on("squared_relu") or facts.on("qk_layernorm"))
    even_bias = facts.on("add_bias_linear") or not facts.on("add_qkv_bias")
    if plain and even_bias and facts.value("normalization") == "LayerNorm":
        if rotary:
            return "gpt_neox"
        return "gpt2" if facts.value("position_embedding_type") == "learned_absolute" else None
    return None


def gated(facts: Facts) -> bool:
    """Return whether the feed-forward block is SwiGLU."""
    return facts.on("swiglu")


def rotates(facts: Facts) -> bool:
    """Return whether positions are rotary."""
    return facts.on("use_rotary_position_embeddings") or facts.value("position_embedding_type") == "rope"


def unplannable(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield (key, what) of everything in the model that no plan can be made for yet."""
    what = {
        "num_experts": "a mixture of experts",
        "multi_latent_attention": "multi-head latent attention",
        "mtp_num_layers": "multi-token prediction",
        "hybrid_layer_pattern": "a hybrid of attention and state-space layers",
        "hybrid_override_pattern": "a hybrid of attention and state-space layers",
        "heterogeneous_layers_config_path": "layers of unlike shapes",
        "heterogeneous_layers_config_encoded_json": "layers of unlike shapes",
        "experimental_attention_variant": "an experimental attention",
        "linear_attention_freq": "linear attention",
        "squared_relu": "squared ReLU",
        "quick_geglu": "GeGLU",
        "decoder_num_layers": "an encoder with a decoder",
    }
    for key, words in what.items():
        if facts.value(key):
            yield key, words
    if any(key in facts.of for key in SIZES) and family(facts) is None and not facts.open(*_FAMILY):
        positions = "rope" if rotates(facts) else facts.value("position_embedding_type")
        block = "SwiGLU" if gated(facts) else "GELU"
        norms = " and norms on queries and keys" if facts.on("qk_layernorm") else ""
        described = f"a model of {facts.value('normalization')}, {block} and {positions} positions{norms}"
        yield next(key for key in (*_FAMILY, *SIZES) if key in facts.of), f"{described} is of no known family, and"


_FAMILY = ("swiglu", "normalization", "position_embedding_type", "qk_layernorm", "add_bias_linear", "add_qkv_bias")


def _head_dim(facts: Facts) -> int | None:
    hidden, given = facts.size("hidden_size"), facts.count("kv_channels")
    return given or (hidden // facts.heads if hidden and facts.heads else None)


def _ffn(facts: Facts) -> int | None:
    """Return the feed-forward width; by default 4 h, and of SwiGLU two thirds of it in multiples of 64."""
    given, hidden = facts.count("ffn_hidden_size"), facts.size("hidden_size")
    if given or not hidden or facts.open("ffn_hidden_size"):
        return given
    return int((4 * hidden * 2 / 3) / 64) * 64 if gated(facts) else 4 * hidden


def _rotary(facts: Facts) -> dict[str, Any]:
    """Return base and scaling of rotary positions, and the window of attention."""
    found: dict[str, Any] = {}
    if rotates(facts):
        found["rope_theta"] = facts.value("rotary_base")
        if facts.on("use_rope_scaling"):
            found["rope_scaling"] = llama3_scaling(facts.value("rope_scaling_factor"))
        elif facts.value("rotary_seq_len_interpolation_factor"):
            found["rope_scaling"] = {"type": "linear", "factor": facts.value("rotary_seq_len_interpolation_factor")}
    window = str(facts.value("window_size") or "").strip("()").split(",")[0]
    if window.isdecimal():
        found["sliding_window"] = int(window) + 1
    return found


def llama3_scaling(factor: Any) -> dict[str, Any]:
    """Return the scaling that --use-rope-scaling means.

    Source: NVIDIA/Megatron-LM, megatron/core/models/common/embeddings/rotary_pos_embedding.py, ``_apply_scaling``.
    """
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
