"""Megatron-LM: launch scripts and arguments of its training programs."""

from planner.configurations.base import Form
from planner.configurations.forms.megatron.reading import FORM, read, recognises
from planner.configurations.forms.megatron.rules import RULES
from planner.configurations.megatron.meaning import setup

MEGATRON = Form(
    name=FORM,
    summary="Megatron-LM launch script or arguments",
    framework="megatron",
    recognises=recognises,
    read=read,
    rules=RULES,
    setup=setup,
    fills_cluster=lambda _: True,
)

__all__ = ["MEGATRON"]
