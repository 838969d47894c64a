"""``planner explain``: why a plan is as it is, and why not otherwise."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli.command import INTERRUPTED, PROBLEMS, say
from planner.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from planner.domain.prediction import Outcome
    from planner.specs.plan import PlanFile


def explain(
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="Plan file, -, or the code of a rule, such as PL108.")],
    why_not: Annotated[
        list[str] | None,
        typer.Option("--why-not", metavar="TEXT", help='Compare with the best plan under "tp=8", ...; repeatable.'),
    ] = None,
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Search again, to show the runners-up and what was rejected.")
    ] = True,
    form: FormatOption = Format.text,
) -> None:
    """Say what binds a plan, what the runners-up lose, and why not otherwise; or what a rule is about."""
    if re.fullmatch(r"[A-Za-z]{2}[0-9]{3}", plan):
        _explain_rule(plan, form)
        return
    from planner import pipeline
    from planner.cli.inputs import read_plan_file
    from planner.cli.progress import progress
    from planner.report.explain import explain_text
    from planner.report.problems import problems_text
    from planner.report.terminal import page_width, write

    file = read_plan_file(plan)
    for text in why_not or ():
        _refuse_wrong(text, file)
    prediction, problems, notes = pipeline.judge(file)
    for text in notes:
        say(f"note: {text}\n")
    if prediction is None:
        say(problems_text(problems))
        raise typer.Exit(PROBLEMS)
    with progress() as reporter:
        comparisons = [pipeline.why_not(file, text, reporter) for text in why_not or ()]
    found = searched(file) if search and not comparisons else None
    if form is Format.text:
        from planner.pipeline.observed import glance
        from planner.placement import place

        page = explain_text(
            file.plan,
            prediction,
            file.cluster,
            file.model,
            file.job,
            step=glance(file.plan, file.cluster, file.model, file.job),
            certificate=None if file.edited else file.certificate,
            placed=place(file.plan, file.cluster, file.model, file.job),
            found=found,
            comparisons=comparisons,
            width=page_width(),
        )
        write(page)
    else:
        from planner.report.to_json import dumped

        write(dumped(explained(file, prediction, problems, found, comparisons), form.value))
    if problems:
        say(problems_text(problems))
    if found and found.search.status == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if problems:
        raise typer.Exit(PROBLEMS)


def _explain_rule(code: str, form: Format) -> None:
    """Tell the story of a rule."""
    from planner.pipeline.rules import story
    from planner.report.rule import rule_document, rule_text
    from planner.report.terminal import page_width, write
    from planner.report.to_json import dumped

    found = story(code)
    write(rule_text(found, page_width()) if form is Format.text else dumped(rule_document(found), form.value))


def _refuse_wrong(text: str, file: PlanFile) -> None:
    """Stop at a constraint that is none before anything is computed.

    Raises:
        SpecError: `text` is no constraint.
    """
    from planner.specs.constraints import parse_constraint

    parse_constraint(text, "--why-not", groups=[group.name for group in file.cluster.groups])


def searched(file: PlanFile) -> Outcome | None:
    """Return what a search for the plan's job finds, None if it finds nothing."""
    from planner.cli.progress import progress
    from planner.errors import NoFeasiblePlan, NoPlanInTime
    from planner.pipeline import make_plan

    try:
        with progress() as reporter:
            return make_plan(file.cluster, file.model, file.job, references=False, reporter=reporter)
    except (NoFeasiblePlan, NoPlanInTime) as error:
        say(f"note: a search for the same job finds no plan: {error}\n")
        return None


def explained(
    file: PlanFile, prediction: Any, problems: Any, found: Outcome | None, comparisons: list[Any]
) -> dict[str, Any]:
    """Return what is said of a plan, for machines; `found` is what a search for its job finds, if one was made."""
    from planner.pipeline import find_repairs, runs_on
    from planner.report.explain import binding
    from planner.report.to_json import certificate_record, plan_document, prediction_document

    parts = (file.cluster, file.model, file.job)
    repairs = find_repairs(file.plan, *parts, prediction)
    document = prediction_document(file.plan, prediction, problems, *parts, repairs)
    names = runs_on(found.plan, file.cluster) if found else ()
    proved = None if file.edited else file.certificate
    document["certificate"] = proved and certificate_record(proved)
    document["binding"] = binding(file.plan, prediction)
    document["search"] = plan_document(found, file.cluster, file.model, file.job, names) if found else None
    document["why_not"] = [
        {
            "constraint": one.constraint.text,
            "infeasible": one.infeasible or None,
            "slower_by": float(one.slower_by),
            "step_time_s": float(one.outcome.prediction.step_time) if one.outcome else None,
            "differences": [{"part": part, "plan_s": mine, "other_s": other} for part, mine, other in one.differences],
        }
        for one in comparisons
    ]
    return document
