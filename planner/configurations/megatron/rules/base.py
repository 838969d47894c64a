"""How rules of Megatron-LM are written down, and how a form says them in its own words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from planner.configurations.base import Complaint, Rule
from planner.configurations.megatron.facts import Facts
from planner.domain.configuration import ERROR, Configuration

ARGUMENTS = "NVIDIA/Megatron-LM, megatron/training/arguments.py, validate_args, core 0.19.2"
CONFIG = "NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py, core 0.19.2"
PARALLEL = "NVIDIA/Megatron-LM, megatron/core/model_parallel_config.py, core 0.19.2"
STATE = "NVIDIA/Megatron-LM, megatron/core/parallel_state.py, initialize_model_parallel, core 0.19.2"
SCHEDULES = "NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py, core 0.19.2"
CUT = "NVIDIA/Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py, core 0.19.2"

Check = Callable[[Facts], Iterable[Complaint]]
Tell = Callable[[Configuration, Rule, Complaint], Complaint]
"""(configuration, rule, complaint about one of Megatron's inner names) -> the same in the words of a form."""


def rule(
    code: str,
    name: str,
    summary: str,
    check: Check,
    why: str,
    *,
    needs: tuple[str, ...] = (),
    source: str = ARGUMENTS,
    severity: str = ERROR,
    since: str = "",
    until: str = "",
    caught: bool = True,
) -> Rule:
    """Return a rule that keeps silent where one of the keys that it `needs` is left open."""

    def judge(configuration: Configuration) -> Iterable[Complaint]:
        facts = Facts(configuration)
        return () if facts.open(*needs) else tuple(check(facts))

    return Rule(
        code=code,
        name=name,
        summary=summary,
        why=why,
        source=source,
        check=judge,
        severity=severity,
        since=since,
        until=until,
        caught=caught,
        needs=needs,
    )


def told(rule: Rule, tell: Tell) -> Rule:
    """Return a rule whose complaints are in the words of a form."""

    def judge(configuration: Configuration) -> Iterable[Complaint]:
        return tuple(tell(configuration, rule, complaint) for complaint in rule.check(configuration))

    return replace(rule, check=judge)


def divisors(number: int, most: int = 12) -> str:
    """Return the numbers that divide `number`, for a message."""
    found = [str(n) for n in range(1, min(number, 4096) + 1) if number % n == 0]
    return ", ".join(found[:most]) + (", ..." if len(found) > most else "")
