"""Plans that others wrote: a plan file, or what a launch configuration means on a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.checks import refusals
from planner.configurations import Form
from planner.configurations.engine import broken
from planner.domain.cluster import Cluster
from planner.domain.configuration import ERROR
from planner.domain.model import Model
from planner.errors import Problem, SpecError
from planner.pipeline.configured import Configured, model_of, on_cluster
from planner.specs.catalog import framework as find_framework
from planner.specs.job import job_record
from planner.specs.layout import PLACE
from planner.specs.plan import PlanFile, parsed_plan

SIZES = {
    "global_batch": "global_batch",
    "global_batch_tokens": "global_batch",
    "sequence_length": "sequence_length",
}
"""Job keys of the size of a step -> what says the same of a past job; what it does not say is as it shall be now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A job that ran, or was to run, somewhere else."""

    model: Model
    job: Mapping[str, object]
    """Job key -> value, as far as it was said."""
    file: PlanFile | None
    """How it was laid out; None where that is not possible on the cluster, as the notes tell."""
    notes: tuple[str, ...] = ()


def imported(
    text: str,
    source: str,
    form: Form,
    cluster: Cluster,
    model: Model | None = None,
    given: Mapping[str, object] | None = None,
) -> Configured:
    """Return the plan that a configuration means on `cluster`; `model` and `given` replace what it says.

    Raises:
        SpecError: it cannot be read, or means no plan there.
    """
    configuration = form.read(text, source)
    found = on_cluster(form.setup(configuration), source, form.framework, cluster, model, given)
    wrong = [f"{one.spot} {one.message} [{one.code}]" for one in broken(form, configuration) if one.severity == ERROR]
    return replace(found, notes=(*configuration.notes, *wrong, *found.notes))


def past(
    text: str,
    source: str,
    form: Form | None,
    cluster: Cluster,
    model: Model | None = None,
    given: Mapping[str, object] | None = None,
) -> Past:
    """Return the job of a plan file or a configuration, to be planned again on `cluster`.

    Args:
        text: what the file says.
        source: its name.
        form: of the configuration; None for a plan file.
        cluster: where it shall run now.
        model: what is trained; by default what the file says.
        given: job key -> value of what shall be otherwise.

    Raises:
        SpecError: it cannot be read, or does not say which model it trains.
    """
    if form is None:
        file = parsed_plan(text, source)
        job = {key: value for key, value in job_record(file.job).items() if key != "constraints"}
        framework = find_framework(file.job.framework)
        if not refusals(file.plan, framework, file.cluster):
            job.setdefault("for", framework.name)
        return Past(model=model or file.model, job=job, file=file)
    configuration = form.read(text, source)
    setup = form.setup(configuration)
    found = model or model_of(setup, source)
    said = {
        "global_batch": setup.layout.gbs,
        "sequence_length": setup.layout.seq,
        "precision": setup.precision,
        "for": form.framework,
    }
    notes = [*configuration.notes, *setup.assumed]
    laid_out: PlanFile | None = None
    unsaid = {key: value for key, value in (given or {}).items() if key in SIZES and said.get(SIZES[key]) is None}
    try:
        laid_out = on_cluster(setup, source, form.framework, cluster, found, unsaid).file
    except SpecError as error:
        notes += [f"what it says now is no layout of {cluster.name}: {_bare(one)}" for one in error.problems]
    job = {key: value for key, value in said.items() if value is not None and key not in (given or {})}
    return Past(model=found, job=job, file=laid_out, notes=tuple(notes))


def _bare(problem: Problem) -> str:
    """Return what is wrong, without the option that a user of a configuration has not typed."""
    return problem.message.removeprefix(f"{PLACE} ")
