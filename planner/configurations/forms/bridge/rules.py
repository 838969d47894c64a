"""The rules of a Bridge recipe: those of Megatron-Core that it can break, in its own words, and its own.

Left out of Megatron-LM's are rules about flags that only its parser has (defaults of its own, required flags, chunks by
their size, group_query_attention, fp16 and bf16), about the padding of vocabularies and the overlap of exchanges, which
Bridge decides by itself, about the environment, and about versions of the core before the first Bridge.
"""

from __future__ import annotations

from dataclasses import replace

from planner.configurations.base import Complaint, Rule
from planner.configurations.engine import numbers
from planner.configurations.forms.bridge.own import OWN
from planner.configurations.forms.bridge.stories import READING
from planner.configurations.forms.bridge.words import in_words, key_of
from planner.configurations.megatron.rules import CORE_RULES
from planner.configurations.megatron.rules.base import told
from planner.domain.configuration import Configuration

SHARED = frozenset(
    (
        "MG101",
        "MG102",
        "MG103",
        "MG106",
        "MG107",
        "MG108",
        "MG109",
        "MG110",
        "MG111",
        "MG112",
        "MG201",
        "MG203",
        "MG206",
        "MG207",
        "MG208",
        "MG209",
        "MG210",
        "MG211",
        "MG212",
        "MG213",
        "MG214",
        "MG216",
        "MG219",
        "MG221",
        "MG225",
        "MG226",
        "MG227",
        "MG302",
        "MG305",
        "MG401",
        "MG402",
        "MG403",
        "MG404",
        "MG408",
        "MG409",
        "MG410",
        "MG411",
        "MG413",
        "MG414",
        "MG501",
        "MG502",
        "MG504",
        "MG506",
        "MG507",
        "MG509",
        "MG510",
        "MG511",
        "MG512",
        "MG514",
        "MG516",
        "MG601",
        "MG603",
        "MG604",
        "MG607",
        "MG608",
        "MG610",
        "MG614",
        "MG615",
        "MG616",
        "MG620",
        "MG641",
        "MG642",
        "MG643",
        "MG644",
        "MG647",
        "MG648",
        "MG649",
        "MG650",
        "MG713",
    )
)
"""Codes of Megatron-Core's rules that hold of a recipe."""
FIRST_CORE = (0, 14)
"""Core of the first Bridge."""
VERSIONS = {"0.15": "0.2", "0.16": "0.3", "0.17": "0.4"}
"""Core -> the Bridge that brings it (docs/releases/software-versions.md of NVIDIA-NeMo/Megatron-Bridge at 2075a5b)."""


def _tell(configuration: Configuration, rule: Rule, complaint: Complaint) -> Complaint:
    """Return a complaint in Bridge's words, at what is written: its key, another that it asks for, or the recipe."""
    key, message = complaint
    known = (one for one in (key, *rule.needs) if configuration.get(one) is not None and one in configuration)
    at = next(known, key if key in configuration else "recipe" if "recipe" in configuration else key_of(key))
    return at, in_words(message)


def _of_bridge(rule: Rule) -> Rule:
    """Return a rule of Megatron-Core for the versions of Bridge that bring such a core."""
    since = "" if numbers(rule.since) <= FIRST_CORE else VERSIONS[rule.since]
    return replace(told(rule, _tell), since=since, until=VERSIONS[rule.until] if rule.until else "")


RULES: tuple[Rule, ...] = (*READING, *OWN, *(_of_bridge(rule) for rule in CORE_RULES if rule.code in SHARED))
