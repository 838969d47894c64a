"""Configurations with keys removed, replaced or misplaced never end in a traceback."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

import published
from planner.errors import Problem, SpecError
from planner.importers.huggingface import facts
from planner.specs.model import model_from_record, read_model

STRANGE: tuple[object, ...] = (
    None,
    True,
    0,
    -1,
    1,
    3,
    10**30,
    1.5,
    float("nan"),
    "",
    "many",
    [],
    [1, "a", None],
    ["full_attention"],
    {},
    {"a": {"b": 1}},
)
"""What a key may be replaced by."""
KEYS = (
    "layer_types",
    "mlp_only_layers",
    "moe_layers",
    "layers_block_type",
    "hybrid_override_pattern",
    "head_dim",
    "rope_parameters",
    "rope_scaling",
    "rope_theta",
    "text_config",
    "vision_config",
    "tie_word_embeddings",
    "q_lora_rank",
    "num_local_experts",
    "feed_forward_proj",
    "_name_or_path",
    "name",
    "architectures",
)
"""Keys that are not in every configuration, and are put into all of them."""
MODELS = {**published.DENSE, **published.READ_ONLY}


def problems(read: Callable[[], object]) -> tuple[Problem, ...]:
    """Return what is wrong according to a reader, nothing where it can read."""
    try:
        read()
    except SpecError as error:
        return error.problems
    return ()


def survives(config: dict[str, object]) -> None:
    """Read a configuration both ways; a SpecError with a place for every problem is an answer, too."""
    found = (*problems(lambda: model_from_record(config, "config.json")), *problems(lambda: facts(config)))
    assert all(problem.place and problem.message for problem in found)


@pytest.mark.parametrize("name", MODELS)
def test_every_key_may_be_missing_or_strange(name: str) -> None:
    """Each key alone is removed, and replaced by every strange value."""
    config = MODELS[name][0]
    for key in {*config, *KEYS}:
        survives({other: value for other, value in config.items() if other != key})
        for value in STRANGE:
            survives({**config, key: value})


@pytest.mark.parametrize("seed", range(20))
def test_several_keys_may_be_strange_at_once(seed: int) -> None:
    """Some keys are removed and some replaced, in the order of a fixed seed."""
    chance = random.Random(seed)  # noqa: S311 a fixed seed draws test cases, no secret
    for config, _ in MODELS.values():
        damaged = {key: value for key, value in config.items() if chance.random() < 0.9}
        for key in chance.sample([*config, *KEYS], 3):
            damaged[key] = chance.choice(STRANGE)
        survives(damaged)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99])
def test_a_file_cut_short_is_told_with_its_line(share: float, tmp_path: Path) -> None:
    """JSON that ends early names the line where it ends."""
    text = json.dumps(published.DENSE["facebook/opt-350m"][0], indent=1)
    text = text[: int(share * len(text))]
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(SpecError, match=rf"config\.json:{text.count(chr(10)) + 1}: is not valid JSON") as caught:
        read_model(str(file))
    assert len(caught.value.problems) == 1
