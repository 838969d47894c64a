"""The rules of Megatron-LM, all together."""

from planner.configurations.base import Rule

RULES: tuple[Rule, ...] = ()
