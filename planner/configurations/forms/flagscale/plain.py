"""Megatron-LM's rules, which hold where all ranks are alike: a configuration without meshes is one of Megatron-LM.

FlagScale at da4935e brings a core of its own, whose version it does not tell: rules that are not of all cores from 0.13
on are left out, those about variables, which its runner sets by kinds of devices, and notes on what may be faster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from planner.configurations.base import Complaint, Rule
from planner.configurations.engine import numbers
from planner.configurations.forms.flagscale.arguments import flag_of, parsed
from planner.configurations.forms.flagscale.meshes import hetero
from planner.configurations.megatron.flags import flags, names
from planner.configurations.megatron.rules import CORE_RULES
from planner.configurations.megatron.words import Words
from planner.domain.configuration import NOTE, Configuration

CORE = (0, 13)
"""Version of the core from which on a rule must hold."""
VARIABLES = ("MG701", "MG702", "MG703", "MG704", "MG714")
WORDS = Words(
    key=lambda flag: flag[2:].replace("-", "_"),
    pair="{key}: {value}",
    quoted="{key}: '{value}'",
    switch=lambda _: True,
)


def _written(configuration: Configuration, inner: str) -> str:
    """Return the key that says what is known as `inner` inside, else the one that would."""
    for key in configuration.settings:
        flag = flags().get(flag_of(key))
        if flag and flag.dest == inner:
            return key
    return WORDS.key(names()[inner])


def _plain(rule: Rule) -> Rule:
    """Return a rule of Megatron-LM, for arguments that stand in YAML."""

    def judge(configuration: Configuration) -> Iterable[Complaint]:
        if hetero(configuration):
            return
        for inner, message in rule.check(parsed(configuration)):
            yield _written(configuration, inner), WORDS.of(message)

    return replace(rule, check=judge)


RULES = tuple(
    _plain(rule)
    for rule in CORE_RULES
    if not rule.until and numbers(rule.since) <= CORE and rule.code not in VARIABLES and rule.severity != NOTE
)
