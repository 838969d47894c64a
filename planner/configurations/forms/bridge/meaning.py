"""What overrides of a Bridge recipe mean as a layout."""

from __future__ import annotations

from dataclasses import replace

from planner.configurations.base import Setup
from planner.configurations.forms.bridge.recipes import PLAIN, UNSAID
from planner.configurations.forms.bridge.words import in_words
from planner.configurations.megatron import meaning
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.model import described
from planner.domain.configuration import Configuration

PRECISIONS = {
    "bf16_mixed": "bf16",
    "fp16_mixed": "fp16",
    "bf16_with_fp8_current_scaling_mixed": "fp8",
    "bf16_with_fp8_delayed_scaling_mixed": "fp8",
    "bf16_with_mxfp8_mixed": "mxfp8",
    "bf16_with_nvfp4_mixed": "nvfp4",
}
"""Name of a recipe of precision (src/megatron/bridge/training/mixed_precision.py) -> ours."""
ASKED = {
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "micro_batch_size": "micro_batch_size",
}


def setup(configuration: Configuration) -> Setup:
    """Return what overrides without errors mean; what neither they nor a known recipe say is taken as 1, and said.

    Raises:
        SpecError: they ask for what no plan has.
    """
    missing = [name for name, key in ASKED.items() if not configuration.number(key)]
    settings = {key: one for key, one in configuration.settings.items() if one.value is not None}
    usual = {**PLAIN, **UNSAID, "micro_batch_size": 1, **configuration.defaults}
    filled = replace(configuration, settings=settings, defaults=usual)
    found = meaning.setup(filled, in_words)
    assumed = [f"{name} is taken as 1, for nothing that is known says it" for name in missing]
    return replace(
        found,
        model=described(Facts(filled)),
        precision=PRECISIONS.get(str(configuration.get("mixed_precision"))),
        assumed=(*assumed, *found.assumed),
    )
