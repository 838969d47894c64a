"""Hugging Face configurations: what is understood, and what is said where something is not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from planner.domain.model import Model
from planner.errors import SpecError
from planner.importers.huggingface import from_config
from planner.layers import TransformerLayer
from planner.specs.model import model_from_record, read_model

LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "max_position_embeddings": 2048,
}


def problems_of(config: Mapping[str, object]) -> dict[str, str]:
    """Return key -> message of a configuration that must be refused."""
    with pytest.raises(SpecError) as caught:
        from_config(config, "config.json")
    return {problem.place.removeprefix("config.json "): problem.message for problem in caught.value.problems}


def body_of(model: Model) -> TransformerLayer:
    assert isinstance(model.body, TransformerLayer)
    return model.body


def test_null_and_missing_heads_are_settled_alike() -> None:
    """Null key-value heads mean as many as heads, a null head size means hidden size over heads."""
    model = from_config({**LLAMA, "num_key_value_heads": None, "head_dim": None}, "config.json")
    assert (body_of(model).num_kv_heads, body_of(model).head_dim) == (8, 64)
    assert model == from_config(LLAMA, "config.json")


def test_a_head_size_may_be_independent_of_the_hidden_size() -> None:
    """Qwen3's heads of 128 need not add up to the hidden size."""
    assert body_of(from_config({**LLAMA, "model_type": "qwen3"}, "config.json")).query_size == 8 * 128


def test_old_and_new_rotary_keys_mean_the_same() -> None:
    """``rope_parameters`` of transformers 5 and ``rope_theta`` with ``rope_scaling`` of 4 give the same model."""
    scaling = {"rope_type": "llama3", "factor": 8.0}
    old = from_config({**LLAMA, "rope_theta": 5e5, "rope_scaling": scaling}, "config.json")
    new = from_config({**LLAMA, "rope_parameters": {"rope_theta": 5e5, **scaling}}, "config.json")
    assert old == new


def test_plain_rotary_positions_are_not_stretched() -> None:
    """``rope_type: default`` is no scaling."""
    new = from_config({**LLAMA, "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}}, "config.json")
    assert new == from_config({**LLAMA, "rope_theta": 5e5}, "config.json")


def test_a_nested_language_model_is_taken_and_said() -> None:
    """``text_config`` is the model, and a note says what was left out."""
    notes: list[str] = []
    config = {"model_type": "llava", "text_config": LLAMA, "vision_config": {"hidden_size": 64}}
    assert from_config(config, "config.json", note=notes.append) == from_config(LLAMA, "config.json")
    assert notes == ["config.json: only text_config, the language model, is read; left out: vision"]


def test_problems_of_a_nested_language_model_name_the_nested_key() -> None:
    """A wrong value in ``text_config`` is placed there."""
    config = {"text_config": {**LLAMA, "hidden_size": "512"}}
    assert problems_of(config) == {"text_config.hidden_size": "should be a whole number of at least 1, not '512'"}


def test_a_sliding_window_in_use_is_said() -> None:
    """A window below the model's length is noted, one that is switched off is not."""
    notes: list[str] = []
    from_config({**LLAMA, "sliding_window": 1024, "use_sliding_window": False}, "config.json", note=notes.append)
    assert not notes
    from_config({**LLAMA, "sliding_window": 1024}, "config.json", note=notes.append)
    assert "sliding window of 1024 tokens" in notes[0]


def test_all_problems_come_at_once_each_with_its_key() -> None:
    """Types, ranges, missing keys and divisibility are reported together."""
    config = {**LLAMA, "hidden_size": 500, "num_key_value_heads": 3, "tie_word_embeddings": "no", "vocab_size": 0}
    del config["intermediate_size"]
    assert problems_of(config) == {
        "tie_word_embeddings": "should be true or false, not 'no'",
        "vocab_size": "should be a whole number of at least 1, not 0",
        "intermediate_size": "is missing; family llama needs it",
        "num_attention_heads": "8 does not divide hidden_size 500; give head_dim, or a number of heads that divides it",
        "num_key_value_heads": (
            "3 does not divide num_attention_heads 8; each key-value head serves the same number of query heads"
        ),
    }


def test_a_missing_key_is_asked_for_under_the_familys_name_too() -> None:
    """GPT-2 calls its hidden size ``n_embd``, and its feed-forward width need not be given."""
    problems = problems_of({"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_positions": 64, "vocab_size": 100})
    assert problems == {"hidden_size": "is missing, as n_embd too; family gpt2 needs it"}


def test_two_names_of_one_thing_must_agree() -> None:
    """A value under both of its names must be the same."""
    gpt2 = {**LLAMA, "model_type": "gpt2", "n_embd": 768}
    assert problems_of(gpt2) == {"n_embd": "is 768 but hidden_size, the same thing, is 512; keep one"}


def test_padding_never_takes_rows_away() -> None:
    """A padded vocabulary below the vocabulary is refused."""
    assert "vocab_size_padded" in problems_of({**LLAMA, "vocab_size_padded": 10})


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("num_local_experts", "mixture of experts"),
        ("num_experts", "mixture of experts"),
        ("n_routed_experts", "mixture of experts"),
        ("kv_lora_rank", "latent attention"),
    ],
)
def test_what_cannot_be_planned_yet_is_named(key: str, word: str) -> None:
    """Experts and latent attention are refused with the key that tells of them; zero and null tell nothing."""
    assert word in problems_of({**LLAMA, key: 8})[key]
    assert f"{key} 8" in problems_of({**LLAMA, key: 8})[key]
    assert from_config({**LLAMA, key: 0}, "config.json") == from_config({**LLAMA, key: None}, "config.json")


def test_an_unknown_family_says_what_is_known_and_what_was_understood() -> None:
    """The message lists the families and the common fields, whatever the family calls them."""
    message = problems_of({"model_type": "mpt", "n_embd": 512, "num_hidden_layers": 2})["model_type"]
    assert message.startswith(
        "model_type 'mpt' is no known family; understood were hidden_size 512, num_hidden_layers 2; missing are "
        "num_attention_heads, intermediate_size, vocab_size, max_position_embeddings; if its layers are those of a "
        "known family, write a model file that says `family: llama`, or another of bert, bloom, "
    )
    assert "explicit lists of layers come in a later version" in message


def test_an_unknown_family_with_experts_reports_both() -> None:
    """A family that is not even read is refused for its name, its experts and its attention at once."""
    config = {"model_type": "deepseek_v9", "n_routed_experts": 256, "kv_lora_rank": 512}
    assert set(problems_of(config)) == {"model_type", "n_routed_experts", "kv_lora_rank"}


def test_rotary_settings_by_kind_of_layer_are_those_of_full_attention() -> None:
    """Gemma 3 under transformers 5 has two bases; the one of full attention is kept."""
    rope = {"sliding_attention": {"rope_theta": 1e4}, "full_attention": {"rope_theta": 1e6, "rope_type": "default"}}
    found = from_config({**LLAMA, "model_type": "gemma3_text", "rope_parameters": rope}, "config.json")
    assert dict(found.spec)["rope_theta"] == 1e6


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}, "vision_config": {}}, "text_config"),
        ({"model_type": "internvl_chat", "llm_config": {"model_type": "qwen2"}, "vision_config": {}}, "llm_config"),
        ({"thinker_config": {"text_config": {"model_type": "qwen2"}}}, "thinker_config.text_config"),
    ],
)
def test_a_nested_configuration_leaves_usual_sizes_out(config: dict[str, object], path: str) -> None:
    """What a nested configuration does not say is what its class takes, and a note has every such size."""
    notes: list[str] = []
    nested: object = config
    for key in path.split("."):
        nested = nested[key] if isinstance(nested, dict) else None
    assert isinstance(nested, dict)
    nested.update(hidden_size=2560, intermediate_size=10_240, num_hidden_layers=34)
    model = from_config(config, "config.json", note=notes.append)
    assert (model.hidden, model.num_layers) == (2560, 34)
    assert notes[0].startswith(f"config.json: only {path}, the language model, is read")
    heads = body_of(model).num_heads
    assert any(f"{path} leaves out what is usual" in text and f"num_attention_heads {heads}" in text for text in notes)


def test_gemma_3_4b_counts_its_language_model() -> None:
    """google/gemma-3-4b-pt says five sizes of its text; with the usual others it is 3,880,263,168 parameters."""
    text = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10_240, "num_hidden_layers": 34}
    assert from_config({"model_type": "gemma3", "text_config": text}, "config.json").parameters == 3_880_263_168


def test_a_flat_configuration_with_images_is_read_and_said() -> None:
    """Qwen2-VL of transformers 4 keeps the language model's sizes beside ``vision_config``."""
    notes: list[str] = []
    config = {**LLAMA, "model_type": "qwen2_5_vl", "vision_config": {"depth": 32}, "quantization_config": {"bits": 4}}
    assert from_config(config, "config.json", note=notes.append).family == "qwen2"
    assert notes == ["config.json: only the language model is read; left out: vision"]


def test_a_nested_configuration_that_is_none_is_told() -> None:
    """``text_config`` must be a mapping."""
    assert problems_of({"model_type": "llava", "text_config": 5}) == {
        "text_config": "should be a mapping of keys to values, not 5"
    }


@pytest.mark.parametrize(
    ("more", "origin", "name"),
    [
        ({"name": "a/b", "_name_or_path": "x/y"}, "z.json", "a/b"),
        ({"_name_or_path": "meta-llama/Llama-2-7b-hf"}, "z.json", "Llama-2-7b-hf"),
        ({}, "models/tiny/config.json", "tiny"),
        ({}, "models/tiny.json", "tiny"),
        ({"_name_or_path": ""}, "config.json", "llama"),
        ({}, "<stdin>", "llama"),
    ],
)
def test_the_name_is_the_first_that_is_given(more: dict[str, object], origin: str, name: str) -> None:
    """A model is called as its configuration, its file or folder, or its family is."""
    assert from_config({**LLAMA, **more}, origin).name == name


def test_a_folder_is_read_by_its_configuration_with_lines(tmp_path: Path) -> None:
    """A folder stands for its ``config.json``, and problems have the line."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    assert read_model(str(folder)).name == "tiny"
    (folder / "config.json").write_text(json.dumps({**LLAMA, "vocab_size": 0}, indent=1))
    with pytest.raises(SpecError, match=r"config\.json:7 vocab_size: should be"):
        read_model(str(folder))


def test_a_model_file_reports_unknown_keys_and_wrong_values_at_once(tmp_path: Path) -> None:
    """A typing error gets a suggestion, and what the family needs is asked for in the same breath."""
    file = tmp_path / "model.yaml"
    file.write_text("family: gpt2\nn_embd: 510\nnum_layer: 2\nnum_attention_heads: 4\nvocab_size: 1e3\n")
    with pytest.raises(SpecError) as caught:
        read_model(str(file))
    found = [str(problem).removeprefix(f"{file}") for problem in caught.value.problems]
    assert any(":3 num_layer: unknown key num_layer; did you mean num_hidden_layers" in line for line in found), found
    assert any(":5 vocab_size: should be a whole number" in line for line in found), found
    assert any("max_position_embeddings: is missing, as n_positions too" in line for line in found), found
    assert any(":4 num_attention_heads: 4 does not divide n_embd 510" in line for line in found), found


def test_a_model_file_takes_the_familys_own_names(tmp_path: Path) -> None:
    """``n_embd`` in a model file of family gpt2 is ``hidden_size``."""
    file = tmp_path / "small.yaml"
    file.write_text("family: gpt2\nn_embd: 512\nn_layer: 2\nn_head: 4\nvocab_size: 1000\nn_positions: 64\n")
    model = read_model(str(file))
    assert (model.name, model.hidden, model.max_sequence) == ("small", 512, 64)


def test_an_explicit_list_of_layers_is_refused_with_its_reason() -> None:
    """``layers`` is known, and not possible yet."""
    with pytest.raises(SpecError, match="later version"):
        model_from_record({"layers": [{"kind": "conv"}]}, "model.yaml")


def test_an_unknown_family_in_a_model_file_gets_a_suggestion() -> None:
    """A misspelt family is answered with the nearest one."""
    with pytest.raises(SpecError, match="did you mean llama"):
        model_from_record({"family": "lama"}, "model.yaml")


def test_a_file_of_no_family_says_how_to_name_one() -> None:
    """What is neither a model file nor a configuration gets the families and the other way in."""
    with pytest.raises(SpecError, match=r"family: is missing; name one of bert, .* config\.json with its model_type"):
        model_from_record({"hidden_size": 5}, "model.yaml")


def test_rotary_settings_nested_by_kind_of_layer_are_refused() -> None:
    """A mapping inside ``rope_scaling`` belongs to families with several kinds of layers."""
    config = {**LLAMA, "rope_parameters": {"rope_type": "linear", "full_attention": {"factor": 8.0}}}
    assert "plain values" in problems_of(config)["rope_scaling"]
