"""What may be secret is never shown, whatever is wrong with it."""

from __future__ import annotations

import pytest

from planner.configurations import Form
from planner.configurations.engine import broken
from planner.configurations.forms.bridge import BRIDGE
from planner.configurations.forms.megatron import MEGATRON
from planner.configurations.secrets import public


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("--seed", 7, "7"),
        ("--bf16", True, "on"),
        ("--tokenizer-type", "NullTokenizer", "NullTokenizer"),
        ("--moe-token-dispatcher-type", "alltoall", "alltoall"),
        ("--load", "x" * 50, "x" * 40),
        ("--hf-token", "x", "another"),
        ("logger.wandb_api_key", "x", "another"),
        ("--load", "https://name:word@host/x", "another"),
        ("--data-path", "name:word@host", "another"),
    ],
)
def test_what_is_shown(name: str, value: object, wanted: str) -> None:
    """By the name of the setting, and by what looks like an address with a password."""
    assert public(name, value) == wanted


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (BRIDGE, "python run_recipe.py --recipe x logger.wandb_api_key=hush1 logger.wandb_api_key=hush2 {}"),
        (BRIDGE, "python run_recipe.py --recipe x checkpoint.load=s3://a:hush1@h checkpoint.load=s3://a:hush2@h {}"),
        (MEGATRON, "--num-layers 2 --wandb-project a:hush1@b --wandb-project a:hush2@b"),
        (MEGATRON, "--num-layers 2 --my-token=hush1 --other-token hush2 hush3"),
    ],
)
def test_repeated_settings(form: Form, text: str) -> None:
    """That a value was given twice is told without either."""
    found = form.read(text.format("model.tensor_model_parallel_size=2"), "run.sh" if form is BRIDGE else "a.txt")
    assert "hush" not in str([one.message for one in broken(form, found)])
    assert any("keep only one" in one.message or "no flag" in one.message for one in found.findings)
