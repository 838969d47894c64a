"""Models of Llama's kind that torchtitan has no flavor of, written out as its configuration classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.domain.model import Model

FAMILIES = ("llama", "mistral")
"""Families of Llama's layers, without biases."""
FUNCTION = "llama_like"
ARGUMENTS = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "tie_word_embeddings",
)
IMPORTS = """\
from functools import partial

import torch.nn as nn
from torchtitan.distributed.pipeline_parallel import pipeline_llm
from torchtitan.models.common import ComplexRoPE, Embedding, Linear, RMSNorm
from torchtitan.models.common.config_utils import get_attention_config, make_ffn_config, make_gqa_config
from torchtitan.models.common.param_init import depth_scaled_std, skip_param_init
from torchtitan.models.llama3 import parallelize_llama
from torchtitan.models.llama3.model import Llama3Model, Llama3TransformerBlock
from torchtitan.models.llama3.state_dict_adapter import Llama3StateDictAdapter
from torchtitan.protocols.model_spec import ModelSpec
"""
TEXT = '''\
def llama_like(
    *,
    hidden_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    num_key_value_heads: int,
    head_dim: int,
    intermediate_size: int,
    vocab_size: int,
    max_position_embeddings: int,
    tie_word_embeddings: bool,
    norm_eps: float,
    rope_theta: float,
) -> ModelSpec:
    """Return a model of Llama's kind, its weights drawn as torchtitan draws those of Llama 3."""

    def norm() -> RMSNorm.Config:
        return RMSNorm.Config(normalized_shape=hidden_size, eps=norm_eps, param_init={"weight": nn.init.ones_})

    def drawn(std: float, **bounds: float) -> dict:
        return {"weight": partial(nn.init.trunc_normal_, std=std, **bounds), "bias": nn.init.zeros_}

    def layer(number: int) -> Llama3TransformerBlock.Config:
        inner, outer = drawn(0.02), drawn(depth_scaled_std(0.02, number))
        return Llama3TransformerBlock.Config(
            attention_norm=norm(),
            ffn_norm=norm(),
            attention=make_gqa_config(
                dim=hidden_size,
                n_heads=num_attention_heads,
                n_kv_heads=num_key_value_heads,
                head_dim=head_dim,
                wqkv_param_init=inner,
                wo_param_init=outer,
                inner_attention=get_attention_config("flex"),
                fuse_qkv=True,
                rope=ComplexRoPE.Config(dim=head_dim, max_seq_len=max_position_embeddings, theta=rope_theta),
            ),
            feed_forward=make_ffn_config(
                dim=hidden_size, hidden_dim=intermediate_size, w1_param_init=inner, w2w3_param_init=outer
            ),
        )

    std = hidden_size**-0.5
    embedding = skip_param_init if tie_word_embeddings else partial(nn.init.normal_, std=1.0)
    model = Llama3Model.Config(
        dim=hidden_size,
        vocab_size=vocab_size,
        enable_weight_tying=tie_word_embeddings,
        tok_embeddings=Embedding.Config(
            num_embeddings=vocab_size, embedding_dim=hidden_size, param_init={"weight": embedding}
        ),
        norm=norm(),
        lm_head=Linear.Config(
            in_features=hidden_size, out_features=vocab_size, param_init=drawn(std, a=-3 * std, b=3 * std)
        ),
        layers=[layer(number) for number in range(num_hidden_layers)],
    )
    return ModelSpec(
        name="llama3",
        flavor="plan",
        model=model,
        parallelize_fn=parallelize_llama,
        pipelining_fn=pipeline_llm,
        post_optimizer_build_fn=None,
        state_dict_adapter=Llama3StateDictAdapter,
    )
'''
RECIPE = "llama3_8b"
"""What the rest of the configuration starts from."""


def obstacles(model: Model) -> Iterator[str]:
    """Yield why a model cannot be written out."""
    spec = dict(model.spec)
    if model.family not in FAMILIES:
        known = " and ".join(FAMILIES)
        yield f"torchtitan has no model of the sizes of {model.name}, and only those like {known} can be written out"
    elif spec.get("attention_bias") or spec.get("mlp_bias"):
        yield f"{model.name} has biases, and torchtitan's models of Llama's kind have none"
    elif spec.get("rope_scaling") is not None:
        yield f"{model.name} stretches its rotary positions, which the export does not write out; drop rope_scaling"
    elif spec.get("sliding_window") is not None:
        yield f"{model.name} attends within a window, and torchtitan's models of Llama's kind do not"


def call(model: Model) -> list[str]:
    """Return the lines of the function that give the configuration this model."""
    spec = dict(model.spec)
    sizes: Mapping[str, Any] = {
        **{key: spec[key] for key in ARGUMENTS},
        "vocab_size": spec.get("vocab_size_padded") or spec["vocab_size"],
        "norm_eps": spec.get("norm_eps", 1e-5),
        "rope_theta": spec.get("rope_theta", 10000.0),
    }
    arguments = [f"        {key}={value!r}," for key, value in sizes.items()]
    loss = f"    c.loss.loss_fn.global_vocab_size = {sizes['vocab_size']}"
    return [f"    c.model_spec = {FUNCTION}(", *arguments, "    )", loss]
