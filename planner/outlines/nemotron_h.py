"""Nemotron-H and Nemotron 3: each layer is a state space, attention, a feed-forward block or a mixture of experts."""

from __future__ import annotations

from collections.abc import Mapping

from planner.domain.facts import Block, ModelFacts
from planner.domain.parts import Attention, Experts, FeedForward, StateSpace
from planner.outlines.base import LAYERS_MAX, NUM_EXPERTS, Fields, Outline

LETTERS: Mapping[str, str] = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
"""Of ``hybrid_override_pattern``, as files of transformers 4 write it."""
WORDS: Mapping[str, str] = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "mlp": "mlp",
    "moe": "moe",
}
"""Of ``layers_block_type``: what the family and transformers 5 call the kinds of layers."""


def read(fields: Fields) -> ModelFacts:
    """Return the facts; every layer has one part and one norm."""
    hidden, kinds = fields.count("hidden_size"), _kinds(fields)
    parts: dict[str, Block] = {}
    if "mamba" in kinds:
        parts["mamba"] = Block(mixer=_mamba(fields), norm_parameters=hidden)
    if "attention" in kinds:
        parts["attention"] = Block(mixer=_attention(fields), norm_parameters=hidden)
    if "mlp" in kinds:
        parts["mlp"] = Block(feed_forward=_dense(fields), norm_parameters=hidden)
    if "moe" in kinds:
        parts["moe"] = Block(feed_forward=_experts(fields), norm_parameters=hidden)
    mtp = fields.count("num_nextn_predict_layers", default=0, least=0)
    return fields.facts("nemotron_h", tuple(parts[kind] for kind in kinds), mtp=mtp)


def _kinds(fields: Fields) -> tuple[str, ...]:
    """Return the kind of each layer, from the list of transformers 5 or the pattern of 4."""
    for key in ("layers_block_type", "layer_types"):
        if fields.has(key):
            return tuple(WORDS[word] for word in fields.words(key, tuple(WORDS)) or ("mlp",))
    pattern = fields.text("hybrid_override_pattern", "")
    if not pattern:
        fields.refuse("layers_block_type", "is missing, as hybrid_override_pattern too; the family needs one of both")
    elif set(pattern) - set(LETTERS) or len(pattern) > LAYERS_MAX:
        fields.refuse("hybrid_override_pattern", f"should hold a letter of {' '.join(LETTERS)} for each layer")
    elif fields.count("num_hidden_layers", default=len(pattern)) != len(pattern):
        fields.refuse("num_hidden_layers", f"is not the number of letters of hybrid_override_pattern, {len(pattern)}")
    else:
        return tuple(LETTERS[letter] for letter in pattern)
    return ("mlp",)


def _mamba(fields: Fields) -> StateSpace:
    return StateSpace(
        hidden=fields.count("hidden_size"),
        num_heads=fields.count("mamba_num_heads"),
        head_dim=fields.count("mamba_head_dim"),
        num_groups=fields.count("n_groups", "mamba_n_groups"),
        state_size=fields.count("ssm_state_size"),
        conv_kernel=fields.count("conv_kernel", "mamba_d_conv", default=4),
        bias=fields.flag("use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", "mamba_conv_bias", default=True),
    )


def _attention(fields: Fields) -> Attention:
    """Return the attention, which has no biases whatever ``attention_bias`` says; its heads are 128 wide."""
    return fields.attention(head_dim=128)


def _dense(fields: Fields) -> FeedForward:
    """Return the feed-forward block: squared ReLU, two matrices."""
    return FeedForward(
        hidden=fields.count("hidden_size"),
        size=fields.count("intermediate_size"),
        gated=False,
        bias=fields.flag("mlp_bias", default=False),
    )


def _experts(fields: Fields) -> Experts:
    """Return the experts, which may work in a latent between the hidden size and their width."""
    shared = fields.count("n_shared_experts", default=1, least=0)
    if not fields.has(*NUM_EXPERTS):
        fields.refuse("n_routed_experts", "is missing; layers with experts need it")
        return Experts(hidden=1, num_experts=1, experts_per_token=1, expert_size=1)
    return fields.experts(
        fields.count("moe_intermediate_size"),
        gated=False,
        num_shared=shared,
        shared_size=fields.count("moe_shared_expert_intermediate_size") if shared else 0,
        latent_size=fields.optional("moe_latent_size"),
        **fields.groups(),
    )


NEMOTRON_H = Outline(name="nemotron_h", model_types=("nemotron_h",), read=read)
