"""Cluster, model and job from what the user named, all problems of all files together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from planner.cli.command import say
from planner.errors import Problem, SpecError

if TYPE_CHECKING:
    from planner.domain.cluster import Cluster
    from planner.domain.job import Job
    from planner.domain.model import Model
    from planner.specs.plan import PlanFile

STDIN = "-"
"""Source that is standard input."""


def read_inputs(
    cluster: str, model: str, job: str | None, given: Mapping[str, object]
) -> tuple[Cluster, Model, Job, tuple[str, ...]]:
    """Return cluster, model and job, and a sentence for each value of the job that is a default.

    Raises:
        SpecError: with the problems of cluster and model together, or those of the job.
    """
    from planner.specs.job import read_job

    refuse_shared_stdin(cluster, model, job)
    found_cluster, found_model = read_both(cluster, model)
    return found_cluster, found_model, *read_job(job, given, found_model, found_cluster)


def read_like(
    source: str, cluster: str | None, model: str | None, job: str | None, given: Mapping[str, object]
) -> tuple[Cluster, Model, Job, tuple[str, ...], PlanFile | None]:
    """Return what to plan like a plan file or a launch configuration, the defaults in it, and how that is laid out.

    Raises:
        SpecError: a source is missing or wrong.
    """
    from planner.configurations import FORMS
    from planner.configurations.engine import form_of
    from planner.pipeline.given import past
    from planner.specs.cluster import read_cluster
    from planner.specs.files import read_text
    from planner.specs.job import read_job
    from planner.specs.model import read_model

    if cluster is None:
        raise SpecError.of(
            "--like", "needs the cluster to plan for, as in `planner plan --like FILE --cluster CLUSTER`"
        )
    refuse_shared_stdin(source, cluster, model, job)
    where = read_cluster(cluster)
    what = None if model is None else read_model(model, note=note)
    text, origin = read_text(source)
    found = past(text, origin, form_of(FORMS, text, origin), where, what, given)
    for sentence in found.notes:
        note(sentence)
    kept = dict(found.job)
    if not {"global_batch", "global_batch_tokens"}.isdisjoint(given):
        kept.pop("global_batch", None)
    settled, defaults = read_job(job, {**kept, **given}, found.model, where)
    return where, found.model, settled, defaults, found.file


def read_plan_file(source: str) -> PlanFile:
    """Return a plan file; a launch configuration in its place is told as such.

    Raises:
        SpecError: it is none, or something is wrong with it.
    """
    from planner.specs.files import read_text

    return parsed_file(*read_text(source), source)


def parsed_file(text: str, origin: str, source: str) -> PlanFile:
    """Return what a plan file says that was read already, as `read_plan_file` does.

    Raises:
        SpecError: it is none, or something is wrong with it.
    """
    from planner.configurations import FORMS
    from planner.configurations.engine import form_of
    from planner.specs.plan import parsed_plan

    try:
        return parsed_plan(text, origin)
    except SpecError:
        form = form_of(FORMS, text, origin)
        if form is None:
            raise
        message = (
            f"is a configuration of {form.name}, and a plan file is wanted; `planner import plan {source} --cluster"
            " CLUSTER -o plan.yaml` makes one of it"
        )
        raise SpecError.of(origin, message) from None


def refuse_shared_stdin(*sources: str | None) -> None:
    """Stop where two specs would be read from standard input.

    Raises:
        SpecError: more than one source is standard input.
    """
    if sources.count(STDIN) > 1:
        raise SpecError.of("", "only one of the inputs can be `-`; standard input is read once")


def read_both(cluster: str, model: str) -> tuple[Cluster, Model]:
    """Return cluster and model.

    Raises:
        SpecError: with the problems of both.
    """
    from planner.specs.cluster import read_cluster
    from planner.specs.model import read_model

    problems: list[Problem] = []
    found_cluster: Cluster | None = None
    found_model: Model | None = None
    try:
        found_cluster = read_cluster(cluster)
    except SpecError as error:
        problems += error.problems
    try:
        found_model = read_model(model, note=note)
    except SpecError as error:
        problems += error.problems
    if found_cluster is None or found_model is None:
        raise SpecError(problems)
    return found_cluster, found_model


def note(text: str) -> None:
    """Tell the user something that is no problem."""
    say(f"note: {text}\n")
