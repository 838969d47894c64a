"""Megatron-Bridge: override lists and command lines of its recipes, under Megatron-LM's inner names."""

from planner.configurations.base import Form
from planner.configurations.forms.bridge.meaning import setup
from planner.configurations.forms.bridge.reading import FORM, read, recognises
from planner.configurations.forms.bridge.rules import RULES

BRIDGE = Form(
    name=FORM,
    summary="KEY=VALUE overrides of a Megatron-Bridge recipe, or its run_recipe.py command",
    framework="megatron",
    recognises=recognises,
    read=read,
    rules=RULES,
    setup=setup,
    fills_cluster=lambda _: True,
)

__all__ = ["BRIDGE"]
