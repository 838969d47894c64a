"""Families against published models: every parameter is counted, old and new names mean the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import published
from planner.architectures import ARCHITECTURES
from planner.domain.model import Shard
from planner.errors import SpecError
from planner.importers.huggingface import facts, from_config
from planner.specs.model import model_from_record, model_record

CASES = pytest.mark.parametrize(("config", "count"), published.DENSE.values(), ids=published.DENSE)


def part(config: Mapping[str, object], **more: object) -> dict[str, object]:
    return {**config, **more}


@CASES
def test_published_models_have_their_number_of_parameters(config: dict[str, object], count: int) -> None:
    """A published model counts what the framework counts that it was published for."""
    assert from_config(config, "config.json").parameters == count


@CASES
def test_records_and_facts_say_the_same(config: dict[str, object], count: int) -> None:
    """A record rebuilds the model although it has only common names, and facts count alike, layer by layer."""
    model = from_config(config, "config.json")
    assert model_from_record(model_record(model), "plan.yaml") == model
    found = facts(config)
    assert (found.parameters, found.active_parameters, found.obstacles) == (count, count, ())
    assert {block.parameters for block in found.blocks} == {model.body.parameters}


@CASES
def test_one_device_holds_every_parameter(config: dict[str, object], count: int) -> None:
    """What the layers say that a device holds adds up to the whole model, copies of tied weights left out."""
    model, shard = from_config(config, "config.json"), Shard(micro_batch=1, sequence=128)
    embedding, body, head = (layer.work(shard) for layer in (model.embedding, model.body, model.head))
    held = embedding.parameters + model.num_layers * body.parameters + head.parameters - head.tied_parameters
    assert held == count


def test_every_family_has_a_published_model() -> None:
    """No family is without a model whose parameters are known; the older ones stand in test_parameter_counts."""
    older = {"bert", "gemma", "gemma2", "gpt2", "gpt_neox", "llama", "mistral", "qwen2", "qwen3"}
    counted = {config["model_type"] for config, _ in published.DENSE.values()}
    assert {architecture.name for architecture in ARCHITECTURES} <= counted | older


def test_opt_350m_by_hand() -> None:
    """331,196,416: rows of 512 channels, two products to and from 1,024, two spare positions, no last norm.

    Rows: 50,272 x 512 = 25,739,264, the head's too. Products: 2 x 512 x 1,024 = 1,048,576. Positions: 2,050 x 1,024
    = 2,099,200. A layer: 4 (1,024^2 + 1,024) + 2 x 1,024 x 4,096 + 4,096 + 1,024 + 4 x 1,024 = 12,596,224; 24 of them
    302,309,376.
    """
    config, count = published.DENSE["facebook/opt-350m"]
    model = from_config(config, "config.json")
    assert 25_739_264 + 1_048_576 + 2_099_200 + 302_309_376 == count == model.parameters
    assert model.embedding.flops(2048) == 2 * 2048 * 512 * 1024
    assert model.head.flops(2048) == 2 * 2048 * (512 * 1024 + 50_272 * 512)


@pytest.mark.parametrize(
    ("name", "more", "same"),
    [
        ("tiiuae/falcon-7b", {"num_kv_heads": 71}, True),
        ("tiiuae/falcon-7b", {"multi_query": False, "num_kv_heads": 71}, False),
        ("tiiuae/falcon-7b", {"num_ln_in_parallel_attn": 2}, False),
        ("tiiuae/falcon-40b", {"n_head_kv": 8}, True),
        ("tiiuae/falcon-40b", {"num_ln_in_parallel_attn": 1}, False),
        ("bigscience/bloom-560m", {"n_head": 16}, True),
        ("facebook/opt-125m", {"enable_bias": False}, False),
        ("facebook/opt-125m", {"_remove_final_layer_norm": True}, False),
        ("bigcode/starcoderbase", {"multi_query": False}, False),
        ("microsoft/phi-2", {"qk_layernorm": True}, False),
        ("baidu/ERNIE-4.5-0.3B-PT", {"use_bias": True}, False),
    ],
)
def test_switches_of_a_family_mean_what_they_say(name: str, more: dict[str, object], same: bool) -> None:
    """A number of key-value heads counts only where Falcon's switches make it count; other switches change weights."""
    config, count = published.DENSE[name]
    assert (from_config(part(config, **more), "config.json").parameters == count) is same


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"multi_query": "yes"}, "multi_query: should be true or false, not 'yes'"),
        ({"num_kv_heads": 0}, "num_kv_heads: should be a whole number from 1 to 1,000,000,000, not 0"),
    ],
)
def test_wrong_switches_are_told(more: dict[str, object], problem: str) -> None:
    """A switch of the wrong type is a problem with its own name."""
    with pytest.raises(SpecError, match=problem):
        from_config(part(published.DENSE["tiiuae/falcon-40b"][0], **more), "config.json")


def test_a_choice_that_a_family_does_not_leave_is_refused() -> None:
    """Llama has two norms a layer, and none on queries; saying that it has none is no contradiction."""
    record: dict[str, object] = {
        "family": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "vocab_size": 8,
        "max_position_embeddings": 8,
    }
    with pytest.raises(SpecError, match="norms_per_layer: is no choice that family llama leaves; remove it"):
        model_from_record(part(record, norms_per_layer=1), "model.yaml")
    assert model_from_record(part(record, use_qk_norm=False), "a") == model_from_record(record, "a")
