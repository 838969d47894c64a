"""The model that arguments of Megatron-LM describe, as a Hugging Face configuration says it."""

from __future__ import annotations

from typing import Any

from planner.domain.configuration import Configuration

NEEDED = ("num_layers", "hidden_size", "num_attention_heads")


def hugging_face(configuration: Configuration) -> dict[str, Any] | None:
    """Return a ``config.json`` of the model; None if the arguments, by Megatron's inner names, say too little.

    The families are told apart by what only they have: layer norms and learned positions are GPT-2's, a norm of queries
    and keys Qwen3's, a bias of queries, keys and values alone Qwen2's; all else is Llama's. Widths that are not written
    are Megatron's: 4 hidden, or 2/3 of that in multiples of 64 with SwiGLU (megatron/training/arguments.py).
    """
    if not all(configuration.number(key) for key in NEEDED):
        return None
    layers, hidden, heads = (configuration.number(key) for key in NEEDED)
    groups = configuration.number("num_query_groups") if configuration.on("group_query_attention") else heads
    sequence = configuration.number("seq_length")
    found: dict[str, Any] = {
        "model_type": _family(configuration),
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": groups or heads,
        "head_dim": configuration.number("kv_channels") or hidden // heads,
        "intermediate_size": configuration.number("ffn_hidden_size") or _width(configuration, hidden),
        "max_position_embeddings": configuration.number("max_position_embeddings") or sequence,
        "tie_word_embeddings": not configuration.on("untie_embeddings_and_output_weights"),
    }
    if vocabulary := configuration.number("vocab_size"):
        found["vocab_size"] = vocabulary
    if found["model_type"] in {"llama", "qwen3"}:
        biased = bool(configuration.get("add_bias_linear", not configuration.on("disable_bias_linear")))
        found |= {"attention_bias": biased} | ({"mlp_bias": biased} if found["model_type"] == "llama" else {})
    return found


def _width(configuration: Configuration, hidden: int) -> int:
    """Return the width of the feed-forward block that Megatron takes by itself; FlagScale may round it up."""
    if not configuration.on("swiglu"):
        return 4 * hidden
    if multiple := configuration.number("multiple_of"):
        factor = configuration.get("hidden_dim_multiplier")
        wanted = int(int(4 * hidden * 2 / 3) * (factor if isinstance(factor, int | float) else 1))
        return -(-wanted // multiple) * multiple
    return int((4 * hidden * 2 / 3) / 64) * 64


def _family(configuration: Configuration) -> str:
    if not configuration.on("swiglu"):
        return "gpt2" if configuration.get("position_embedding_type", "learned_absolute") != "rope" else "gpt_neox"
    if configuration.on("qk_layernorm"):
        return "qwen3"
    return "qwen2" if configuration.on("add_qkv_bias") else "llama"


def precision(configuration: Configuration) -> str | None:
    """Return the precision that the arguments ask for; None where they name none that is known."""
    if configuration.get("fp8_format", configuration.get("fp8")):
        return "mxfp8" if configuration.get("fp8_recipe") == "mxfp8" else "fp8"
    return next((name for name in ("bf16", "fp16") if configuration.on(name)), None)
