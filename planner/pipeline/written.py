"""A plan written for a target, by itself or with all that a run needs beside it."""

from __future__ import annotations

import json

from planner.checks import refusals
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.errors import CannotExpress, SpecError
from planner.export import EXPORTERS, LAUNCHERS, Exporter, Launch, Launcher, Part, Program, nodes_in_order, startable
from planner.pipeline.nearest import nearest_plan
from planner.specs.catalog import framework as find_framework
from planner.specs.plan import PlanFile, unwritten

ALWAYS = ("rank-table", "hostfile")
"""Targets that stand beside every other one in a folder."""
MANY = 4096
"""Devices of plans that are tried out on targets before anybody exports them."""
SCRIPT = "torchrun"
"""Launcher whose script stands beside a framework's configuration in a folder."""


def parts(target: Exporter | Launcher, file: PlanFile, framework: str | None = None) -> tuple[Part, ...]:
    """Return a plan as `target` has it, the part that is printed first.

    Args:
        target: a format, or a launcher.
        file: a sound plan.
        framework: what a launcher starts; by default what the plan is for, else its profile.

    Raises:
        CannotExpress: the target, or what it starts, cannot say what the plan says.
        SpecError: no such framework can be started.
    """
    if isinstance(target, Exporter):
        _refuse(target, file)
        return target.parts(file)
    started = startable(framework or file.job.target or file.job.framework)
    _refuse(started, file)
    assert started.program
    return _launched(target, file, started.program(file))


def export_refusals(plan: Plan, cluster: Cluster, model: Model, job: Job) -> tuple[str, ...]:
    """Return for each target of the framework that a job is for why it cannot say its plan.

    Nothing is returned if one can, if nobody asked for a framework, or of plans on more devices than `MANY`, since
    every rank is placed for it.
    """
    targets = [one for one in EXPORTERS if job.target and one.framework == job.target]
    if not targets or plan.num_devices > MANY:
        return ()
    file = unwritten(plan, cluster, model, job, "the plan that was found")
    refused = [(one.name, _reasons(one, file)) for one in targets]
    if not all(reasons for _, reasons in refused):
        return ()
    return tuple(f"--to {name}: {'; '.join(reasons)}" for name, reasons in refused)


def _reasons(target: Exporter, file: PlanFile) -> tuple[str, ...]:
    """Return why a target cannot say a plan; nothing if it can."""
    try:
        target.parts(file)
    except CannotExpress as error:
        return tuple(error.reasons)
    return ()


def bundle(target: Exporter | Launcher, file: PlanFile, framework: str | None = None) -> tuple[Part, ...]:
    """Return all that a run needs: the parts of `target`, a launch script, a map of the ranks, and a hostfile.

    Raises:
        CannotExpress: the target cannot say what the plan says.
        SpecError: no such framework can be started.
    """
    found = [*parts(target, file, framework)]
    own = {part.name.partition(".")[0] for part in found}
    if isinstance(target, Exporter) and target.program:
        script = next(one for one in LAUNCHERS if one.name == SCRIPT)
        found += _launched(script, file, target.program(file))
    # A target that counts ranks in a way of its own brings its own hostfile and map.
    for one in EXPORTERS:
        stem = one.name.replace("-", "_")
        if one.name not in ALWAYS or (stem in own and one is not target):
            continue
        if one is not target:
            found += one.parts(file)
        if one.document:
            found.append(Part(name=f"{stem}.json", text=_json(one, file)))
    return tuple({part.name: part for part in reversed(found)}.values())[::-1]


def named_part(found: tuple[Part, ...], name: str) -> Part:
    """Return the part called `name`, with or without its ending.

    Raises:
        SpecError: there is none.
    """
    for part in found:
        if name in {part.name, part.name.partition(".")[0]}:
            return part
    raise SpecError.of("--only", f"is {name!r}; this target has {', '.join(part.name for part in found)}")


def as_document(target: Exporter | Launcher, file: PlanFile, form: str) -> str:
    """Return the plan as plain data of a target that has it, as JSON or YAML.

    Raises:
        SpecError: the target has a form of its own only.
    """
    from planner.report.to_json import dumped

    if isinstance(target, Launcher) or target.document is None:
        message = f"cannot be {form}: {target.name} has a form of its own; leave --format out"
        raise SpecError.of("--format", message)
    return dumped(target.document(file), form)


def _launched(launcher: Launcher, file: PlanFile, program: Program) -> tuple[Part, ...]:
    _, nodes = nodes_in_order(file, launcher.name)
    return (*launcher.parts(Launch(file=file, nodes=nodes, program=program)), *program.parts)


def _refuse(target: Exporter, file: PlanFile) -> None:
    """Stop where the framework of a target cannot run the plan.

    Raises:
        CannotExpress: with every reason.
    """
    if target.framework is None:
        return
    framework = find_framework(target.framework)
    reasons = refusals(file.plan, framework, file.cluster)
    if reasons:
        raise CannotExpress(target.name, reasons, nearest_plan(file, framework))


def _json(target: Exporter, file: PlanFile) -> str:
    assert target.document
    return json.dumps(target.document(file), indent=2, sort_keys=True) + "\n"
