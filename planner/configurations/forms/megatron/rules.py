"""The rules of Megatron-LM, whose complaints name its flags."""

from __future__ import annotations

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.megatron.stories import READING
from planner.configurations.megatron.flags import names
from planner.configurations.megatron.rules import CORE_RULES
from planner.configurations.megatron.rules.base import told
from planner.domain.configuration import Configuration


def _tell(configuration: Configuration, _: Rule, complaint: Complaint) -> Complaint:
    """Return a complaint under the flag of a setting that is not written."""
    key, message = complaint
    return (key if key in configuration else names().get(key, key)), message


RULES: tuple[Rule, ...] = (*READING, *(told(rule, _tell) for rule in CORE_RULES))
