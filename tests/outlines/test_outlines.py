"""Families that are read and not planned: every parameter is counted, and those that work on a token."""

from __future__ import annotations

import pytest

import published
from planner.architectures import MODEL_TYPES
from planner.domain.parts import Experts, LatentAttention, LinearAttention, StateSpace
from planner.errors import SpecError
from planner.importers.huggingface import facts, from_config
from planner.outlines import OUTLINED, OUTLINES
from planner.specs.model import model_from_record

PUBLISHED = (
    ("mistralai/Mixtral-8x7B-v0.1", 46.7, 12.9, 2),
    ("Qwen/Qwen3-30B-A3B", 30.5, 3.3, 2),
    ("Qwen/Qwen3-235B-A22B", 235, 22, 2),
    ("Qwen/Qwen2-57B-A14B", 57.4, 14, 2),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", 80, 3, 0),
    ("deepseek-ai/DeepSeek-V2-Lite", 15.7, 2.4, 1),
    ("deepseek-ai/DeepSeek-V2", 236, 21, 1),
    ("deepseek-ai/DeepSeek-V3", 671, 37, 1),
    ("moonshotai/Kimi-K2-Base", 1026, 32, 1),
    ("zai-org/GLM-4.5-Air", 106, 12, 0),
    ("zai-org/GLM-4.5", 355, 32, 0),
    ("openai/gpt-oss-120b", 117, 5.1, 1),
    ("openai/gpt-oss-20b", 21, 3.6, 1),
    ("meta-llama/Llama-4-Scout-17B-16E", 109, 17, 2),
    ("meta-llama/Llama-4-Maverick-17B-128E", 400, 17, 2),
    ("allenai/OLMoE-1B-7B-0924", 6.9, 1.3, 2),
    ("microsoft/Phi-3.5-MoE-instruct", 42, 6.6, 2),
)
"""Repository, parameters and those that work on a token [10^9] as its publisher says, and how many of the two tables of
tokens the latter figure counts: publishers differ. Scout's 109 hold 1.2 of vision, GLM-4.5's 355 hold its MTP layer."""


@pytest.mark.parametrize(("config", "count"), published.READ_ONLY.values(), ids=published.READ_ONLY)
def test_published_models_have_their_number_of_parameters(config: dict[str, object], count: int) -> None:
    """A published model counts what the framework counts that it was published for."""
    assert facts(config).parameters == count


@pytest.mark.parametrize(("name", "total", "active", "tables"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_what_works_on_a_token_is_what_the_publisher_says(name: str, total: float, active: float, tables: int) -> None:
    """Totals and active parameters are within 3% of published round figures, the publisher's tables counted."""
    found = facts(published.READ_ONLY[name][0])
    assert found.parameters == pytest.approx(total * 1e9, rel=0.015)
    counted = found.active_parameters - (2 - tables) * found.embedding_parameters
    assert counted == pytest.approx(active * 1e9, rel=0.03 if active > 3.2 else 0.09)


def test_mixtral_by_hand() -> None:
    """46,702,792,704 in all, and 12,879,925,248 with two of eight experts.

    An expert: 3 x 4,096 x 14,336 = 176,160,768. Attention: 4,096 (4,096 + 2 x 1,024) + 4,096^2 = 41,943,040. Router:
    8 x 4,096. Norms: 2 x 4,096. Ends: 2 x 32,000 x 4,096 + 4,096 = 262,148,096.
    """
    found = facts(published.READ_ONLY["mistralai/Mixtral-8x7B-v0.1"][0])
    common = 41_943_040 + 32_768 + 8_192
    assert found.parameters == 32 * (common + 8 * 176_160_768) + 262_148_096
    assert found.active_parameters == 32 * (common + 2 * 176_160_768) + 262_148_096 == 12_879_925_248


def test_deepseek_v3_is_settled() -> None:
    """Latent attention everywhere, three dense layers, then experts with a shared one; one MTP layer on top."""
    found = facts({**published.READ_ONLY["deepseek-ai/DeepSeek-V3"][0], "head_dim": 64})
    mixer = found.blocks[0].mixer
    assert isinstance(mixer, LatentAttention)
    assert (mixer.q_lora_rank, mixer.kv_lora_rank, mixer.v_head_dim) == (1536, 512, 128)
    assert found.expert_layers == tuple(range(3, 61))
    assert (found.num_hidden_layers, found.num_mtp_layers, found.intermediate_size) == (61, 1, 18_432)
    assert (found.num_attention_heads, found.num_key_value_heads) == (128, 128)
    assert found.experts == Experts(
        hidden=7168,
        num_experts=256,
        experts_per_token=8,
        expert_size=2048,
        num_shared=1,
        shared_size=2048,
        num_groups=8,
        groups_per_token=4,
    )


def test_layers_of_hybrids_are_told_apart() -> None:
    """Nemotron 3 Nano has 23 state spaces, 6 attentions and 23 mixtures; Qwen3-Next three linear ones in four."""
    nano = facts(published.READ_ONLY["nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-Base"][0])
    assert sum(isinstance(block.mixer, StateSpace) for block in nano.blocks) == 23
    assert len(nano.expert_layers) == 23
    assert (nano.num_attention_heads, nano.num_key_value_heads) == (32, 2)
    following = facts(published.READ_ONLY["Qwen/Qwen3-Next-80B-A3B-Instruct"][0])
    kinds = [isinstance(block.mixer, LinearAttention) for block in following.blocks]
    assert kinds == [True, True, True, False] * 12


def test_words_of_layers_mean_what_letters_mean() -> None:
    """``layers_block_type`` of transformers 5 and ``hybrid_override_pattern`` of 4 give the same model."""
    old = published.READ_ONLY["nvidia/Nemotron-H-8B-Base-8K"][0]
    words = {"M": "linear_attention", "*": "full_attention", "-": "mlp", "E": "moe"}
    new = {key: value for key, value in old.items() if key not in {"hybrid_override_pattern", "num_hidden_layers"}}
    pattern = str(old["hybrid_override_pattern"])
    assert facts({**new, "layers_block_type": [words[letter] for letter in pattern]}) == facts(old)


@pytest.mark.parametrize("key", ["num_local_experts", "num_experts", "n_routed_experts"])
def test_experts_have_one_number_under_every_name(key: str) -> None:
    """Transformers 5 and older files name the number of experts differently."""
    config = published.READ_ONLY["Qwen/Qwen3-30B-A3B"][0]
    renamed = {name: value for name, value in config.items() if name != "num_experts"}
    assert facts({**renamed, key: 128}) == facts(config)


@pytest.mark.parametrize(
    ("more", "layers"),
    [
        ({"decoder_sparse_step": 2}, tuple(range(1, 48, 2))),
        ({"mlp_only_layers": [0, 47]}, tuple(range(1, 47))),
    ],
)
def test_dense_layers_among_experts_are_known(more: dict[str, object], layers: tuple[int, ...]) -> None:
    """``decoder_sparse_step`` counts from one, ``mlp_only_layers`` from zero."""
    assert facts({**published.READ_ONLY["Qwen/Qwen3-30B-A3B"][0], **more}).expert_layers == layers


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"num_experts_per_tok": 200}, "num_experts_per_tok: 200 is more than the 128 experts"),
        ({"num_experts": None}, "num_local_experts: is missing, as num_experts or n_routed_experts too"),
        ({"num_local_experts": 64}, "num_experts: is 128 but num_local_experts, the same thing, is 64; keep one"),
        ({"moe_intermediate_size": "768"}, "moe_intermediate_size: should be a whole number of at least 1, not '768'"),
        ({"mlp_only_layers": [48]}, "mlp_only_layers: names layer 48, but there are layers 0 to 47"),
        ({"mlp_only_layers": 3}, r"mlp_only_layers: should be a list of layers, as \[0, 1\], not 3"),
        ({"num_key_value_heads": 5}, "num_key_value_heads: 5 does not divide num_attention_heads 32"),
        ({"num_hidden_layers": 3000}, "num_hidden_layers: should be a whole number from 1 to 2,000, not 3000"),
        ({"attention_bias": 1}, "attention_bias: should be true or false, not 1"),
    ],
)
def test_wrong_fields_are_told_once(more: dict[str, object], problem: str) -> None:
    """A missing or wrong field has its name, and comes once however often it is needed."""
    with pytest.raises(SpecError, match=problem) as caught:
        facts({**published.READ_ONLY["Qwen/Qwen3-30B-A3B"][0], **more})
    assert len(caught.value.problems) == 1


REFUSALS = {
    "Qwen/Qwen3-30B-A3B": (
        "config.json model_type: qwen3_moe was understood as 48 layers of hidden size 2048, attention of 32 "
        "heads (4 for keys and values), a mixture of 128 experts, 8 per token, expert width 768, in every "
        "layer; 30.5B parameters of which 3.35B work on a token (3.04B without the embedding's table); "
        "mixtures of experts cannot be planned yet: give a dense model of equal layers"
    ),
    "deepseek-ai/DeepSeek-V3": (
        "config.json model_type: deepseek_v3 was understood as 61 layers of hidden size 7168, latent "
        "attention of 128 heads (ranks 1536 for queries and 512 for keys and values), a mixture of 256 "
        "experts, 8 per token, expert width 2048, 1 shared of width 2048, in every layer but the first 3; "
        "671B parameters of which 37.6B work on a token (36.6B without the embedding's table), 1 layer of "
        "multi-token prediction left out; mixtures of experts, latent attention and layers that differ cannot"
        " be planned yet: give a dense model of equal layers"
    ),
    "meta-llama/Llama-4-Maverick-17B-128E": (
        "config.json model_type: llama4_text was understood as 48 layers of hidden size 5120, attention of 40"
        " heads (8 for keys and values), a mixture of 128 experts, 1 per token, expert width 8192, 1 shared "
        "of width 8192, in every 2nd layer; 401B parameters of which 17.2B work on a token (16.2B without the"
        " embedding's table); mixtures of experts and layers that differ cannot be planned yet: give a dense "
        "model of equal layers"
    ),
    "google-t5/t5-base": (
        "config.json model_type: t5 was understood as an encoder of 12 and a decoder of 12 layers, hidden "
        "size 768, 12 heads; 223M parameters; encoders beside a decoder cannot be planned yet: give a dense "
        "model of equal layers"
    ),
    "google/vit-base-patch16-224": (
        "config.json model_type: vit was understood as 12 layers of hidden size 768 and 12 heads on images of"
        " 224 pixels in patches of 16; 85.8M parameters; models of images cannot be planned yet: give a dense"
        " model of equal layers"
    ),
    "state-spaces/mamba2-2.7b": (
        "config.json model_type: mamba2 was understood as 64 layers of hidden size 2560, state spaces of 80 "
        "heads (state size 128); 2.70B parameters; state-space layers cannot be planned yet: give a dense "
        "model of equal layers"
    ),
}
"""Repository -> what is said of it."""


@pytest.mark.parametrize(("name", "message"), REFUSALS.items(), ids=REFUSALS)
def test_the_refusal_says_what_was_understood(name: str, message: str) -> None:
    """One sentence has layers, experts, both counts, and what stands in the way."""
    with pytest.raises(SpecError) as caught:
        from_config(published.READ_ONLY[name][0], "config.json")
    assert str(caught.value) == message


def test_every_family_has_a_published_model_and_no_family_is_both() -> None:
    """What is read only is counted against a published model, and is not planned as something else."""
    counted = {config["model_type"] for config, _ in published.READ_ONLY.values()}
    assert {outline.name for outline in OUTLINES} == counted
    assert not set(OUTLINED) & set(MODEL_TYPES)


def test_a_model_file_may_name_such_a_family() -> None:
    """``family: mixtral`` gets the answer that its configuration gets, not a suggestion of a similar word."""
    config = published.READ_ONLY["mistralai/Mixtral-8x7B-v0.1"][0]
    record = {"family": "mixtral", **{key: value for key, value in config.items() if key != "model_type"}}
    with pytest.raises(SpecError, match=r"family: mixtral was understood as 32 layers .* 46.7B parameters"):
        model_from_record(record, "model.yaml")
