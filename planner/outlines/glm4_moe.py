"""GLM-4.5: grouped queries, dense layers first, then experts and shared ones as in DeepSeek-V3."""

from __future__ import annotations

from planner.domain.facts import Block, ModelFacts
from planner.outlines.base import Fields, Outline


def read(fields: Fields) -> ModelFacts:
    """Return the facts; layers of multi-token prediction come on top."""
    number, norms = fields.num_layers(), 2 * fields.count("hidden_size")
    attention = fields.attention(
        bias=fields.flag("attention_bias", default=False),
        extra=2 if fields.flag("use_qk_norm", default=False) else 0,
    )
    size, shared = fields.count("moe_intermediate_size"), fields.count("n_shared_experts", default=1, least=0)
    experts = fields.experts(size, num_shared=shared, shared_size=shared * size, **fields.groups())
    first = fields.count("first_k_dense_replace", default=1, least=0)
    dense = Block(mixer=attention, feed_forward=fields.dense(fields.count("intermediate_size")), norm_parameters=norms)
    sparse = Block(mixer=attention, feed_forward=experts, norm_parameters=norms)
    blocks = (dense if i < first else sparse for i in range(number))
    mtp = fields.count("num_nextn_predict_layers", default=0, least=0)
    return fields.facts("glm4_moe", tuple(blocks), mtp=mtp)


GLM4_MOE = Outline(
    name="glm4_moe",
    model_types=(
        "glm4_moe",
        "glm4v_moe_text",
    ),
    read=read,
)
