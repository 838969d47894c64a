"""torchtitan itself judges what is written for it, and what was then spoilt: it and the rules refuse the same.

Needs the environments that ``tests/frameworks/environments.sh torchtitan_03 torchtitan_02`` makes.
"""

# ruff: noqa: S311 (texts are spoilt by chance, not in secret)

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

import titan_plans
from frameworks.asking import Answer, BrokenError, Validator
from planner.configurations.engine import broken
from planner.configurations.forms.torchtitan import TORCHTITAN as FORM
from planner.configurations.forms.torchtitan.degrees import degrees
from planner.configurations.forms.torchtitan.rules import RULES
from planner.domain.configuration import ERROR, Configuration, Setting, Spot
from planner.errors import CannotExpress, SpecError
from planner.export import Exporter
from planner.export.frameworks.torchtitan import TORCHTITAN, TORCHTITAN_TOML
from planner.specs.plan import PlanFile

pytestmark = pytest.mark.frameworks

MOST_RANKS = 512
NUMBER = 160
"""Plans that are written, and texts that are spoilt."""
CAUGHT = {rule.code for rule in RULES if rule.severity == ERROR and rule.caught}


@dataclass(frozen=True, slots=True)
class Version:
    """A torchtitan."""

    environment: str
    exporter: Exporter

    def question(self, text: str, world: int, ranks: list[int]) -> dict[str, Any]:
        """Return what the driver is asked of a text: to start these ranks of that world."""
        common = {"world": world, "ranks": ranks}
        if self.exporter is TORCHTITAN_TOML:
            return {**common, "text": text}
        return {**common, "files": {"plan_titan.py": text}, "argv": ["--module", "plan_titan", "--config", "plan"]}


VERSIONS = (Version("torchtitan_03", TORCHTITAN), Version("torchtitan_02", TORCHTITAN_TOML))
each_version = pytest.mark.parametrize("version", VERSIONS, ids=lambda one: one.environment)
Validators = Callable[[str], Validator]


def written(version: Version) -> list[tuple[PlanFile, str]]:
    """Return the first plans that can be written, with their text."""
    found: list[tuple[PlanFile, str]] = []
    seed = 0
    while len(found) < NUMBER:
        file = titan_plans.drawn(seed)
        seed += 1
        try:
            found.append((file, version.exporter.parts(file)[0].text))
        except CannotExpress:
            continue
    return found


def first_ranks(file: PlanFile) -> list[int]:
    """Return the first rank of every stage."""
    width = file.plan.num_devices // file.plan.num_stages
    return [stage * width for stage in range(file.plan.num_stages)]


@each_version
def test_torchtitan_runs_what_is_written(version: Version, validator: Validators) -> None:
    """Every plan starts, on every stage, with the layers, micro-batches and degrees that the plan says."""
    titan = validator(version.environment)
    for file, text in written(version):
        answer = titan.ask(**version.question(text, file.plan.num_devices, first_ranks(file)))
        assert answer.accepted, (answer.message, text)
        for stage, rank in enumerate(first_ranks(file)):
            check_facts(file, stage, answer.facts[str(rank)])


def check_facts(file: PlanFile, stage: int, facts: dict[str, Any]) -> None:
    plan, strategy = file.plan, file.plan.stages[stage].strategy
    parallel = facts["parallel"]
    assert (parallel["tp"], parallel["cp"], parallel["pp"]) == (
        strategy.degree("tp"),
        strategy.degree("cp"),
        plan.num_stages,
    )
    assert parallel["dp_replicate"] * parallel["dp_shard"] == plan.num_replicas
    if plan.num_stages == 1:
        assert facts["gradient_accumulation_steps"] == plan.num_microbatches
    else:
        assert facts["gradient_accumulation_steps"] == 1
        assert facts["microbatches"] == plan.num_microbatches
    held = [part["layers"] for part in facts["stages"]]
    assert held == [list(range(first, last + 1)) for first, last in plan.stages[stage].chunks]


@each_version
def test_torchtitan_and_the_rules_refuse_the_same(version: Version, validator: Validators) -> None:
    """A text that was spoilt in one or two places is refused by both, or by neither."""
    titan, old = validator(version.environment), version.exporter is TORCHTITAN_TOML
    wrong, broke = [], 0
    for number, (file, text) in enumerate(written(version)):
        draw = random.Random(f"spoil {number}")
        spoilt, world = text, file.plan.num_devices
        for _ in range(draw.choice((1, 1, 2))):
            spoilt = spoil(draw, spoilt, old=old)
        world = (ranks_of(spoilt) or world) if draw.random() < 0.7 else world
        try:
            answer = titan.ask(**version.question(spoilt, world, [0]))
        except BrokenError:  # expert ranks need the sharding that the driver of 0.3 has to leave out
            broke += 1
            continue
        ours = refused(spoilt, world)
        if bool(ours) == started(answer):
            wrong.append(f"{answer.message or 'accepted'}\n{ours}\n{world} ranks\n{spoilt}")
    assert broke <= NUMBER // 20
    assert not wrong, f"{len(wrong)} of {NUMBER}:\n" + "\n\n".join(wrong[:5])


def ranks_of(text: str) -> int | None:
    """Return the product of the degrees, if it is a number of ranks: so that degrees themselves are judged."""
    name = "plan_titan.py" if "import Trainer" in text else "plan_titan.toml"
    found = degrees(FORM.read(text, name))
    return found.ranks if found.sound and found.ranks and found.ranks <= MOST_RANKS else None


def started(answer: Answer) -> bool:
    """Return whether torchtitan started; stages that a schedule leaves out stop only those who ask what they hold."""
    return answer.accepted or "zip() argument 2 is longer" in answer.message


def refused(text: str, world: int) -> list[str]:
    """Return what the rules that torchtitan enforces say against a text."""
    name = "plan_titan.py" if "import Trainer" in text else "plan_titan.toml"
    try:
        found: Configuration = FORM.read(text, name)
    except SpecError as error:
        return [str(error)]
    found = replace(found, world=Setting(name="ranks", value=world, spot=Spot("launcher")))
    return [f"{one.code} {one.message}" for one in broken(FORM, found) if one.severity == ERROR and one.code in CAUGHT]


VALUES: dict[str, tuple[Any, ...]] = {
    "parallelism.tensor_parallel_degree": (1, 2, 3, 4, 5, 8, 16),
    "parallelism.pipeline_parallel_degree": (1, 2, 3, 4, 6),
    "parallelism.context_parallel_degree": (1, 2, 3, 4),
    "parallelism.data_parallel_shard_degree": (-1, -1, 0, 1, 2, 3, 8),
    "parallelism.data_parallel_replicate_degree": (1, 2, 3, 4),
    "parallelism.expert_parallel_degree": (1, 2),
    "parallelism.pipeline_parallel_microbatch_size": (1, 2, 3, 5),
    "parallelism.pipeline_parallel_schedule": (
        "1f1b",
        "GPipe",
        "Interleaved1F1B",
        "LoopedBFS",
        "InterleavedZeroBubble",
        "ZBVZeroBubble",
        "DualPipeV",
        "Chimera",
    ),
    "training.local_batch_size": (1, 2, 3, 4, 5, 6, 8, 12),
    "training.global_batch_size": (-1, 8, 12, 24, 36, 48, 100),
    "training.seq_len": (96, 100, 192, 256, 1024, 1030, 5000, 50000),
    "training.enable_cpu_offload": (True,),
    "training.disable_cuda_graphs": (False,),
    "parallelism.no_such_key": (1,),
    "parallelism.enable_async_tensor_parallel": (True,),
    "compile.enable_async_tensor_parallel": (True,),
    "compile.enable": (False,),
    "compile.components": (["loss"],),
    "activation_checkpoint.mode": ("memory_budget", "none"),
    "activation_checkpoint.selective_ac_option": ("2", "ops"),
}
PARTS = "module_fqns_per_model_part"


def spoil(draw: random.Random, text: str, *, old: bool) -> str:
    """Change one thing: a value, the lists of modules, or who cuts the stages."""
    if PARTS in text and draw.random() < 0.4:
        return spoil_parts(draw, text, old=old)
    known = [key for key in VALUES if old or not key.startswith("activation_checkpoint")]
    key = draw.choice(known)
    return assigned(text, key, draw.choice(VALUES[key]), old=old)


def spoil_parts(draw: random.Random, text: str, *, old: bool) -> str:
    whole = re.search(rf"^.*{PARTS} = \[\n(?:.*\n)*?\s*\]\n", text, re.MULTILINE)
    assert whole is not None
    lines = whole[0].splitlines(keepends=True)
    way = draw.choice(("line", "schedule", "generated", "per stage", "less"))
    if way == "line":
        del lines[draw.randrange(1, len(lines) - 1)]
        return text.replace(whole[0], "".join(lines))
    if way == "schedule":
        key = "parallelism.pipeline_parallel_schedule"
        return assigned(text, key, draw.choice(VALUES[key]), old=old)
    text = text.replace(whole[0], "")
    if way == "per stage":
        text = assigned(text, "parallelism.pipeline_parallel_layers_per_stage", draw.randint(1, 12), old=old)
    if way == "less":
        key = draw.choice(("first_stage", "last_stage"))
        text = assigned(text, f"parallelism.pipeline_parallel_{key}_less_layers", draw.choice((0, 2, 4, 9)), old=old)
    return text


def assigned(text: str, key: str, value: Any, *, old: bool) -> str:
    """Return the text with `key` set, in its place or at the end of its table."""
    table, _, name = key.partition(".")
    shown = json.dumps(value) if old else repr(value)
    if old:
        head, mark, tail = text.partition(f"[{table}]\n")
        inside, *rest = re.split(r"(?=^\[[a-z])", tail, maxsplit=1, flags=re.MULTILINE)
        line = rf"^{name} = .*\n"
        inside = re.sub(line, "", inside, flags=re.MULTILINE)
        return "".join((head, mark, f"{name} = {shown}\n", inside, *rest))
    line = rf"^    (?:[tp]|c\.{table})\.{name} = .*\n"
    text = re.sub(line, "", text, flags=re.MULTILINE)
    return text.replace("    return c\n", f"    c.{key} = {shown}\n    return c\n")
