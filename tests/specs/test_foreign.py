"""Files and folders that hold no model's configuration are told as what they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.specs.model import read_model


@pytest.mark.parametrize(
    ("value", "key", "message"),
    [
        (
            {"transformers_version": "4.31.0", "eos_token_id": 2},
            "eos_token_id",
            "is a key of a generation configuration, not of a model; name the folder or the config.json beside it",
        ),
        (
            {"add_bos_token": True, "tokenizer_class": "LlamaTokenizer"},
            "tokenizer_class",
            "is a key of a tokenizer's file, not of a model; name the folder or the config.json beside it",
        ),
        (
            {"metadata": {}, "weight_map": {}},
            "weight_map",
            "is a key of an index of weights, not of a model; name the folder or the config.json beside it",
        ),
        (
            {"dim": 4096, "n_layers": 32},
            "dim",
            (
                "is a key of Meta's params.json, not of a model; write a model file that says `family: llama`, with "
                "dim as hidden_size and so on"
            ),
        ),
    ],
)
def test_files_beside_a_configuration_get_one_message(
    value: dict[str, object], key: str, message: str, tmp_path: Path
) -> None:
    """The message has the line of the key that gives the file away, and what to name instead."""
    file = tmp_path / "some.json"
    file.write_text(json.dumps(value, indent=1))
    line = [*value].index(key) + 2
    with pytest.raises(SpecError) as caught:
        read_model(str(file))
    assert [str(problem) for problem in caught.value.problems] == [f"{file}:{line} {key}: {message}"]


@pytest.mark.parametrize(
    ("files", "held"),
    [
        (("tokenizer.json", "model.yaml", "notes.txt"), "it holds model.yaml, tokenizer.json"),
        ((), "it holds no spec"),
    ],
)
def test_a_folder_without_configuration_says_what_was_looked_for(
    files: tuple[str, ...], held: str, tmp_path: Path
) -> None:
    """A folder is read by its ``config.json``; without one, its specs are listed."""
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(SpecError) as caught:
        read_model(str(tmp_path))
    assert str(caught.value) == (
        f"{tmp_path}: is a folder without config.json, which was looked for; {held}; name a file"
    )


def test_a_configuration_without_model_type_gets_one_message(tmp_path: Path) -> None:
    """A configuration that lost its type says what was understood and what is missing, not that keys are unknown."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"architectures": ["X"], "n_embd": 64, "rms_norm_eps": 1e-5}))
    with pytest.raises(SpecError, match="model_type is missing; understood were hidden_size 64; missing are") as caught:
        read_model(str(file))
    assert len(caught.value.problems) == 1


def test_a_list_is_no_model(tmp_path: Path) -> None:
    """What is no mapping gets one message."""
    file = tmp_path / "config.json"
    file.write_text("[1, 2]")
    with pytest.raises(SpecError) as caught:
        read_model(str(file))
    assert [problem.message for problem in caught.value.problems] == [
        "should be a mapping of keys to values, not a list"
    ]
