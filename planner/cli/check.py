"""``planner check``: judge plans and launch configurations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.command import PROBLEMS, WRONG_INPUT, say
from planner.cli.options import Headroom, number, share

if TYPE_CHECKING:
    from planner.domain.cluster import Cluster
    from planner.domain.job import Job
    from planner.domain.model import Model
    from planner.domain.prediction import Outcome
    from planner.pipeline.verdict import Question, Verdict


class Report(str, Enum):
    """What verdicts are printed as."""

    text = "text"
    json = "json"
    yaml = "yaml"
    github = "github"
    gitlab = "gitlab"
    sarif = "sarif"
    junit = "junit"


def check(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Plans, launch scripts or configurations, or -.")
    ],
    form: Annotated[
        str | None, typer.Option("--from", metavar="KIND", help="What the files are; by default it is recognised.")
    ] = None,
    version: Annotated[
        str | None, typer.Option("--framework-version", metavar="VERSION", help="Whose rules hold; default the newest.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="CLUSTER", help="Where they shall run; a plan: here instead.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="What they train, if they do not say.")
    ] = None,
    global_batch: Annotated[
        str | None, typer.Option("--global-batch", metavar="SAMPLES", help="Of one step, if they do not say.")
    ] = None,
    sequence_length: Annotated[
        str | None, typer.Option("--sequence-length", metavar="TOKENS", help="Of one sample, if they do not say.")
    ] = None,
    headroom: Headroom = None,
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Compare configurations on --cluster with the best plan.")
    ] = True,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings are problems, and so is what --cluster cannot predict.")
    ] = False,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Pass over files of no known kind, with a note.")
    ] = False,
    report: Annotated[Report, typer.Option("--format", help="Of what is printed; json is stable.")] = Report.text,
) -> None:
    """Judge plans and launch configurations, without trusting their figures.

    The exit code is 0 if all are good, 1 if one has problems, 2 if one cannot be read.
    """
    from planner.cli.inputs import note, refuse_shared_stdin
    from planner.configurations import FORMS
    from planner.configurations.engine import form_named
    from planner.errors import SpecError
    from planner.pipeline.verdict import Question

    refuse_shared_stdin(*files, cluster, model)
    if form is not None:
        form_named(FORMS, form)
    if version is not None and not any(letter.isdigit() for letter in version):
        raise SpecError.of("--framework-version", f"is {version!r}; write numbers, such as 0.12")
    job = {"global_batch": number(global_batch), "sequence_length": number(sequence_length)}
    found_cluster: Cluster | None = None
    found_model: Model | None = None
    if cluster is not None:
        from planner.specs.cluster import read_cluster

        found_cluster = read_cluster(cluster)
    if model is not None:
        from planner.specs.model import read_model

        found_model = read_model(model, note=note)
    question = Question(
        form=form,
        version=version or "",
        cluster=found_cluster,
        model=found_model,
        job={key: value for key, value in job.items() if value is not None}
        | ({} if headroom is None else {"headroom": share(headroom, "--headroom")}),
        search=search,
    )
    verdicts: list[Verdict] = []
    for source in files:
        verdict = _judge(source, question)
        if verdict.is_stranger and skip_unknown:
            note(f"{verdict.source} is of no known kind, and was passed over")
            continue
        verdicts.append(verdict)
        if report is Report.text:
            _tell(verdicts[-1])
    if report is not Report.text:
        _print(verdicts, report)
    _summarise(verdicts)
    code = max((_code(one, strict=strict and _is_doubtful(one, question)) for one in verdicts), default=0)
    if code:
        raise typer.Exit(code)


def _judge(source: str, question: Question) -> Verdict:
    """Return the verdict on one file; that it cannot be read is one, too."""
    from planner.errors import SpecError
    from planner.pipeline.verdict import judge_text, unreadable
    from planner.specs.files import read_text

    try:
        text, origin = read_text(source)
    except SpecError as error:
        return unreadable(source, error.problems)
    return judge_text(origin, text, question, search=_search)


def _search(cluster: Cluster, model: Model, job: Job) -> Outcome:
    """Return the best plan, with progress on a terminal."""
    from planner.cli.progress import progress
    from planner.pipeline import make_plan

    with progress() as reporter:
        return make_plan(cluster, model, job, references=False, reporter=reporter)


def _code(one: Verdict, *, strict: bool) -> int:
    return WRONG_INPUT if not one.kind else 0 if one.is_good and not strict else PROBLEMS


def _is_doubtful(one: Verdict, question: Question) -> bool:
    """Return whether a file has warnings, or was to be predicted and could not be."""
    from planner.domain.configuration import WARNING

    return bool(one.of(WARNING)) or (question.cluster is not None and one.prediction is None)


def _tell(one: Verdict) -> None:
    from planner.domain.configuration import ERROR, NOTE, WARNING
    from planner.report.terminal import page_width, write

    if not one.kind:
        from planner.report.problems import problems_text

        say(problems_text(one.of(ERROR)))
        return
    from planner.report.verdict import verdict_text

    said = (one.of(ERROR), one.of(WARNING), one.of(NOTE), one.notes)
    write(verdict_text(one.source, *said, one.file, one.prediction, one.repairs, one.best, page_width()))


def _print(verdicts: Sequence[Verdict], report: Report) -> None:
    """Print all verdicts for a machine."""
    from planner.report import ci
    from planner.report.terminal import write

    if report in {Report.json, Report.yaml}:
        from planner.report.to_json import dumped

        files = [_record(one) for one in verdicts]
        write(dumped({"format_version": "1.0", "files": files}, report.value))
        return
    found = [(one.source, one.findings) for one in verdicts]
    if report is Report.sarif:
        from planner.pipeline.rules import stories

        known = stories()
        write(ci.sarif(found, lambda code: (known[code].title, known[code].summary)))
        return
    writers = {Report.github: ci.github, Report.gitlab: ci.gitlab, Report.junit: ci.junit}
    write(writers[report](found))


def _record(one: Verdict) -> dict[str, object]:
    from planner.domain.configuration import ERROR
    from planner.report.verdict import verdict_record

    parts = (one.notes, one.file, one.prediction, one.repairs, one.best)
    return verdict_record(one.source, one.kind, one.of(ERROR), one.findings, *parts)


def _summarise(verdicts: Sequence[Verdict]) -> None:
    """Add to the summary of the job where GitHub offers a place for one."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    from planner.report.ci import summary

    try:
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - it is appended to
            file.write(summary([(one.source, one.findings) for one in verdicts]))
    except OSError as error:
        say(f"note: the job's summary cannot be written ({error.strerror})\n")
