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

SHARED = (
    *(101, 102, 103, 106, 107, 108, 109, 110, 111, 112),
    *(201, 203, 206, 207, 208, 209, 210, 211, 212, 213, 214, 216, 219, 221, 225, 226, 227),
    *(302, 305),
    *(401, 402, 403, 404, 408, 409, 410, 411, 413, 414),
    *(501, 502, 504, 506, 507, 509, 510, 511, 512, 514, 516),
    *(601, 603, 604, 607, 608, 610, 614, 615, 616, 620, 641, 642, 643, 644, 647, 648, 649, 650),
    713,
)
"""Numbers of Megatron-Core's rules that hold of a recipe."""
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


RULES: tuple[Rule, ...] = (*READING, *OWN, *(_of_bridge(rule) for rule in CORE_RULES if int(rule.code[2:]) in SHARED))
