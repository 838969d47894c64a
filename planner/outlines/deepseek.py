"""DeepSeek-V2 and V3: latent attention, dense layers first, then many narrow experts and some shared ones."""

from __future__ import annotations

from planner.domain.facts import Block, ModelFacts
from planner.domain.parts import LatentAttention
from planner.outlines.base import NUM_EXPERTS, Fields, Outline


def read_v2(fields: Fields) -> ModelFacts:
    """Return the facts of DeepSeek-V2."""
    return _read(fields, "deepseek_v2")


def read_v3(fields: Fields) -> ModelFacts:
    """Return the facts of DeepSeek-V3; layers of multi-token prediction come on top of what its 671B count."""
    return _read(fields, "deepseek_v3")


def _read(fields: Fields, name: str) -> ModelFacts:
    """Read both; ``head_dim`` is the rotary part there, and tells nothing of the latent attention's size."""
    number, hidden = fields.num_layers(), fields.count("hidden_size")
    first = fields.count("first_k_dense_replace", default=0, least=0)
    every = fields.count("moe_layer_freq", default=1)
    attention = LatentAttention(
        hidden=hidden,
        num_heads=fields.count("num_attention_heads"),
        q_lora_rank=fields.optional("q_lora_rank"),
        kv_lora_rank=fields.count("kv_lora_rank"),
        qk_nope_head_dim=fields.count("qk_nope_head_dim"),
        qk_rope_head_dim=fields.count("qk_rope_head_dim"),
        v_head_dim=fields.count("v_head_dim"),
        bias=fields.flag("attention_bias", default=False),
    )
    dense = Block(
        mixer=attention, feed_forward=fields.dense(fields.count("intermediate_size")), norm_parameters=2 * hidden
    )
    sparse = dense
    if fields.has(*NUM_EXPERTS):
        size, shared = fields.count("moe_intermediate_size"), fields.count("n_shared_experts", default=0, least=0)
        experts = fields.experts(size, num_shared=shared, shared_size=shared * size, **fields.groups())
        sparse = Block(mixer=attention, feed_forward=experts, norm_parameters=2 * hidden)
    blocks = (dense if i < first or i % every else sparse for i in range(number))
    mtp = fields.count("num_nextn_predict_layers", default=0, least=0)
    return fields.facts(name, tuple(blocks), mtp=mtp)


DEEPSEEK_V2 = Outline(name="deepseek_v2", model_types=("deepseek_v2",), read=read_v2)
DEEPSEEK_V3 = Outline(name="deepseek_v3", model_types=("deepseek_v3", "kimi_k2"), read=read_v3)
