"""Parameter counts of published models, to the last one."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from planner.architectures import ARCHITECTURES, KEYS, Architecture, Hyper
from planner.importers.huggingface import from_config
from planner.specs.model import ModelRecord, model_from_record, model_record, read_model

SPECS = Path(__file__).parents[2] / "model_specs"

COUNTS_OF_SPECS = {
    "llama-2-7b.json": 6_738_415_616,
    "llama-2-13b.json": 13_015_864_320,
    "llama-3-8b.json": 8_030_261_248,
    "llama-3-70b.json": 70_553_706_496,
    "llama-3-405b.json": 405_853_388_800,
    "qwen3-8b.json": 8_190_735_360,
    "qwen3-32b.json": 32_762_123_264,
    "gpt2.json": 124_439_808,
    "bert-large.json": 336_226_108,
}
"""BERT with pooler, transform and both heads of pre-training; without the last three it is 335,141,888."""


def _config(
    model_type: str, hidden: int, layers: int, heads: int, kv_heads: int, ffn: int, vocabulary: int, **more: object
) -> dict[str, object]:
    return {
        "model_type": model_type,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "intermediate_size": ffn,
        "vocab_size": vocabulary,
        "max_position_embeddings": 8192,
        **more,
    }


COUNTS_OF_CONFIGS = {
    "mistral-7b": (_config("mistral", 4096, 32, 32, 8, 14336, 32000), 7_241_732_096),
    "qwen2-7b": (_config("qwen2", 3584, 28, 28, 4, 18944, 152064), 7_615_616_512),
    "qwen2.5-0.5b": (_config("qwen2", 896, 24, 14, 2, 4864, 151936, tie_word_embeddings=True), 494_032_768),
    "qwen3-0.6b": (_config("qwen3", 1024, 28, 16, 8, 3072, 151936, tie_word_embeddings=True), 596_049_920),
    "gpt-neox-20b": (_config("gpt_neox", 6144, 44, 64, 64, 24576, 50432), 20_554_567_680),
    "pythia-160m": (_config("gpt_neox", 768, 12, 12, 12, 3072, 50304), 162_322_944),
    "gemma-2b": (_config("gemma", 2048, 18, 8, 1, 16384, 256000), 2_506_172_416),
    "gemma-7b": (_config("gemma", 3072, 28, 16, 16, 24576, 256000), 8_537_680_896),
    "gemma2-9b": (_config("gemma2", 3584, 42, 16, 8, 14336, 256000), 9_241_705_984),
    "gpt2-xl": (
        {"model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25, "n_positions": 1024, "vocab_size": 50257},
        1_557_611_200,
    ),
    "bert-base": (_config("bert", 768, 12, 12, 12, 3072, 30522, max_position_embeddings=512), 110_106_428),
}


@pytest.mark.parametrize(("file", "count"), COUNTS_OF_SPECS.items())
def test_shipped_specs_have_the_published_number_of_parameters(file: str, count: int) -> None:
    """Every shipped specification of a published model counts what its publisher counts."""
    assert read_model(str(SPECS / file)).parameters == count


@pytest.mark.parametrize(("config", "count"), COUNTS_OF_CONFIGS.values(), ids=COUNTS_OF_CONFIGS.keys())
def test_families_have_the_published_number_of_parameters(config: dict[str, object], count: int) -> None:
    """Every family counts what the publisher of one of its models counts."""
    assert from_config(config, "config.json").parameters == count


def test_llama_3_405b_by_hand() -> None:
    """405,853,388,800 is the sum of its matrices and norms.

    Attention: 16384 x (16384 + 2 x 1024) + 16384 x 16384 = 570,425,344. Feed-forward: 3 x 16384 x 53248
    = 2,617,245,696. Norms: 2 x 16384 = 32,768. A layer: 3,187,703,808; 126 of them: 401,650,679,808.
    Embedding and head: 2 x 128256 x 16384 = 4,202,692,608. Last norm: 16,384.
    """
    model = read_model(str(SPECS / "llama-3-405b.json"))
    assert model.body.parameters == 570_425_344 + 2_617_245_696 + 32_768
    assert model.parameters == 401_650_679_808 + 4_202_692_608 + 16_384


def test_bert_large_by_hand() -> None:
    """BERT-large is 335,141,888 with its pooler, and 336,226,108 with the heads of its pre-training.

    Beyond the pooler: transform 1024 x 1024 + 1024 = 1,049,600, its norm 2,048, the projection's bias 30,522, and
    next sentence 2 x 1024 + 2 = 2,050; the projection itself is the embedding.
    """
    assert read_model(str(SPECS / "bert-large.json")).parameters == 335_141_888 + 1_049_600 + 2_048 + 30_522 + 2_050


@pytest.mark.parametrize(("file", "size"), [("llama-140b.yaml", 140e9), ("gpt3-175b.yaml", 175e9)])
def test_specs_known_by_size_only_have_about_that_size(file: str, size: float) -> None:
    """Where only a rounded size is published, the specification is within half a percent of it."""
    assert read_model(str(SPECS / file)).parameters == pytest.approx(size, rel=0.005)


@pytest.mark.parametrize("file", sorted(path.name for path in SPECS.iterdir()))
def test_a_record_rebuilds_its_model(file: str) -> None:
    """Writing a model's record and reading it back gives the same model."""
    model = read_model(str(SPECS / file))
    assert model_from_record(model_record(model), "plan.yaml") == model


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=lambda architecture: architecture.name)
def test_every_family_is_complete(architecture: Architecture) -> None:
    """A listed family builds a model of its name that survives a record, and speaks of known hyper-parameters only."""
    config = _config(architecture.model_types[0], 512, 2, 8, 4, 1024, 1000, name="small")
    model = from_config(config, "config.json")
    assert (model.family, model.name, model.num_layers) == (architecture.name, "small", 2)
    assert model_from_record(model_record(model), "plan.yaml") == model
    assert {*architecture.aliases.values(), *architecture.defaults} <= set(KEYS)


def test_padding_adds_rows_to_both_ends() -> None:
    """A padded vocabulary adds its rows to embedding and head, and only there."""
    config = _config("llama", 512, 2, 8, 8, 1024, 1000)
    plain, padded = from_config(config, "a"), from_config({**config, "vocab_size_padded": 1024}, "a")
    assert padded.parameters - plain.parameters == 2 * 24 * 512


def test_the_schema_knows_every_hyper_parameter() -> None:
    """The record that editors check against has the hyper-parameters, a name and a family, and nothing else."""
    assert {*ModelRecord.model_fields} == {field.name for field in fields(Hyper)} | {"family"}
