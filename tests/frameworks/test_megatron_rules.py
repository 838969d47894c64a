"""Megatron-LM takes what is written for it, makes the plan of it, and refuses just what our rules say."""

# ruff: noqa: S311 (problems are drawn, not secrets)

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from frameworks import megatron_plans
from frameworks.asking import BrokenError, Validator
from frameworks.megatron_mutants import MOST, Mutant, mutant
from planner.configurations.engine import broken
from planner.configurations.forms.megatron import MEGATRON as FORM
from planner.domain.configuration import ERROR, Setting, Spot
from planner.domain.model import Shard
from planner.domain.plan import Plan
from planner.export.frameworks.megatron import MEGATRON
from planner.placement import Rank, place
from planner.specs.plan import PlanFile

pytestmark = pytest.mark.frameworks

SEEDS = 320
LEAST = 45
"""Legal plans that 80 seeds must give."""
MUTANTS = 480
MOST_OF_ONE = 5
"""Mutants of a plan."""
LATER = {"MG616", "MG617"}
"""Rules that Megatron holds to when it makes an optimizer, which the driver leaves out."""
UNSEEN = re.compile(r" -\d+ are left|there is one stage for all")
"""Of MG207, more layers at the ends than there are, of which Megatron builds what comes of them."""
UNKNOWN = ("einops is not installed", "Unsupported compute capability")
"""What the driver's environment lacks, and what rules cannot know: the device."""
QUEUES = {"MG701", "MG702"}
ENVIRONMENT = {*QUEUES, "MG719"}
"""Warnings, since the variable may come from the image; those of queues count before Blackwell."""
BLACKWELL = (10, 0)
CORE = ["core_attn"]
"""What is recomputed selectively; Megatron's default, whatever the granularity."""


def asked_ranks(seed: int, file: PlanFile) -> list[int]:
    """Return the ranks whose groups are compared: the last, and any."""
    last = file.plan.num_devices - 1
    return sorted({random.Random(seed).randint(0, last), last})


def groups_of(rank: Rank, ranks: tuple[Rank, ...]) -> dict[str, list[int]]:
    """Return the ranks that work with `rank` by our table, by kind of parallelism."""

    def alike(*axes: str) -> list[int]:
        return [one.rank for one in ranks if all(getattr(one, axis) == getattr(rank, axis) for axis in axes)]

    return {
        "tp": alike("replica", "stage", "cp_rank"),
        "cp": alike("replica", "stage", "tp_rank"),
        "dp": alike("stage", "tp_rank", "cp_rank"),
        "dp_cp": alike("stage", "tp_rank"),
        "pp": alike("replica", "tp_rank", "cp_rank"),
    }


def recompute_of(plan: Plan) -> list[object]:
    """Return what Megatron's configuration of a layer must hold of recompute."""
    first = plan.stages[0]
    if all(stage.num_recomputed == stage.num_layers for stage in plan.stages):
        return ["full", "uniform", 1, CORE]
    if first.num_recomputed:
        return ["full", "block", first.num_recomputed // plan.virtual_stages, CORE]
    return ["selective" if first.recompute == "selective" else None, None, None, CORE]


def parameters_of(rank: Rank, file: PlanFile) -> float:
    """Return how many parameters a rank holds by our count, its part of the padded vocabulary included."""
    plan, model = file.plan, file.model
    stage = plan.stages[rank.stage]
    shard = Shard(micro_batch=1, sequence=file.job.sequence, weight_split=stage.strategy.degree("tp"))
    held = stage.num_layers * model.body.work(shard).parameters
    first, last = rank.stage == 0, rank.stage == plan.num_stages - 1
    embedding, head = model.embedding.work(shard), model.head.work(shard)
    twice = head.tied_parameters if first and last else 0.0
    return float(held + first * embedding.parameters + last * head.parameters - twice)


@pytest.mark.parametrize("first", range(0, SEEDS, 80))
def test_megatron_takes_what_is_written_for_it(validator: Callable[[str], Validator], first: int) -> None:
    """And makes of it what the plan and the rank table say."""
    megatron = validator("megatron")
    taken = 0
    for seed, file in megatron_plans.plans(range(first, first + 80)):
        plan, strategy = file.plan, file.plan.stages[0].strategy
        assert MEGATRON.program is not None
        program = MEGATRON.program(file)
        asked = asked_ranks(seed, file)
        answer = megatron.ask(
            argv=program.command[1:],
            world=plan.num_devices,
            env=dict(program.environment),
            capability=megatron_plans.capability(file),
            ranks=asked,
        )
        assert answer.accepted, (seed, answer.message)
        facts = answer.facts
        degrees = {"tp": strategy.degree("tp"), "cp": strategy.degree("cp"), "pp": plan.num_stages}
        degrees |= {"dp": plan.num_replicas, "ep": 1}
        assert {key: facts[key] for key in degrees} == degrees, seed
        assert facts["vpp"] == (plan.virtual_stages if plan.virtual_stages > 1 else None), seed
        assert facts["microbatches"] == plan.num_microbatches, seed
        assert facts["global_batch_size"] == plan.global_batch, seed
        assert facts["sequence_parallel"] == strategy.sequence_parallel, seed
        assert facts["recompute"] == recompute_of(plan), seed
        layers = [[chunk["layers"] for chunk in stage] for stage in facts["stages"]]
        assert layers == [list(stage.chunk_sizes) for stage in plan.stages], seed
        ranks = place(plan, file.cluster, file.model, file.job).ranks
        for number in asked:
            wanted = groups_of(ranks[number], ranks)
            found = facts["groups"][str(number)]
            assert {kind: found[kind] for kind in wanted} == wanted, (seed, number)
            if "vocab_size_padded" in dict(file.model.spec):
                held = sum(sum(chunk.values()) for chunk in facts["parameters"][str(number)])
                assert held == parameters_of(ranks[number], file), (seed, number)
        taken += 1
    assert taken >= LEAST


def refused_by_it(validator: Validator, one: Mutant) -> str | None:
    """Return why Megatron refuses, empty if it does not, None if it could not judge."""
    try:
        answer = validator.ask(argv=one.argv, world=one.world, env=one.environment, capability=one.capability, ranks=[])
    except BrokenError as error:
        message = str(error)
    else:
        message = "" if answer.accepted else answer.message
    return None if any(words in message for words in UNKNOWN) else message


def refused_by_us(one: Mutant) -> tuple[set[str], set[str]]:
    """Return the codes of our errors, and of those by which Megatron should refuse where the driver asks it."""
    spot = Spot("arguments.txt")
    configuration = replace(
        FORM.read("\n".join(one.argv), "arguments.txt"),
        world=Setting(name="world size", value=one.world, spot=spot),
        environment={key: Setting(name=key, value=value, spot=spot) for key, value in one.environment.items()},
    )
    variables = ENVIRONMENT if one.capability < BLACKWELL else ENVIRONMENT - QUEUES
    found = [
        finding for finding in broken(FORM, configuration) if finding.severity == ERROR or finding.code in variables
    ]
    caught = {rule.code for rule in FORM.rules if rule.caught} - LATER
    held = {finding.code for finding in found if finding.code in caught and not UNSEEN.search(finding.message)}
    return {finding.code for finding in found}, held


@pytest.mark.parametrize("first", range(1000, 1000 + MUTANTS, 60))
def test_megatron_refuses_what_breaks_its_rules(validator: Callable[[str], Validator], first: int) -> None:
    """All that it refuses is one of our errors; and all that we say it catches, it refuses."""
    megatron = validator("megatron")
    wrong = []
    for seed, file in megatron_plans.plans(range(first, first + 60)):
        for number in range(MOST_OF_ONE if file.plan.num_devices <= MOST else 0):
            one = mutant(seed * MOST_OF_ONE + number, file)
            message, (errors, caught) = refused_by_it(megatron, one), refused_by_us(one)
            if message is None or "step-batch-size-schedule" in one.changes:
                continue
            if (message and not errors) or (caught and not message):
                wrong.append((seed, one.changes, sorted(caught), message[-200:]))
    assert not wrong
