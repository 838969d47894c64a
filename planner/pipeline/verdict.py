"""What is to be said of a file that somebody means to launch: a plan, or a framework's configuration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from planner.configurations import FORMS, Form
from planner.configurations.engine import PLAN, PROSE, broken, form_of
from planner.domain.configuration import ERROR, Configuration, Finding, Setting, Spot
from planner.errors import NoFeasiblePlan, NoPlanInTime, Problem, Repair, SpecError

if TYPE_CHECKING:
    from planner.domain.cluster import Cluster
    from planner.domain.model import Model
    from planner.domain.prediction import Outcome, Prediction
    from planner.specs.plan import PlanFile

UNREADABLE = "PL001"
"""Code of a file that cannot be read."""
STRANGER = "PL003"
"""Code of a file of no known kind."""
_PLACE = re.compile(r"(?P<file>.*?)(?::(?P<line>\d+))?(?::(?P<column>\d+))?(?: (?P<key>[^ ]*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What files are judged by."""

    form: str | None = None
    """Kind that all files are; by default each is recognised."""
    version: str = ""
    """Of the framework."""
    cluster: Cluster | None = None
    """Where they shall run; configurations are not predicted without one."""
    model: Model | None = None
    """What they train, where they do not say."""
    job: Mapping[str, object] = field(default_factory=dict)
    """What the user says of the job; it wins."""
    search: bool = True
    """Whether configurations are compared with the best plan that their framework can run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A file, and what is to be said of it."""

    source: str
    kind: str = ""
    """``plan`` or the name of a form; empty if it could not be read."""
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    file: PlanFile | None = None
    """The plan that it is or means, where that could be told."""
    prediction: Prediction | None = None
    repairs: tuple[Repair, ...] = ()
    """Changes with which it would fit."""
    best: Outcome | None = None
    """The best plan for the same job that its framework can run, where it was searched."""

    @property
    def is_stranger(self) -> bool:
        """Whether it is of no known kind."""
        return any(one.code == STRANGER for one in self.findings)

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.of(ERROR)

    def of(self, severity: str) -> tuple[Problem, ...]:
        """Return the findings of a severity as problems with their place."""
        return tuple(
            Problem(_place(one, self.kind), one.message, one.code) for one in self.findings if one.severity == severity
        )


def judge_text(source: str, text: str, question: Question, *, search: Callable[..., Outcome]) -> Verdict:
    """Return the verdict on a file.

    Args:
        source: its name.
        text: what it says.
        question: what it is judged by.
        search: finds the best plan of (cluster, model, job).
    """
    form = form_of(FORMS, text, source, question.form)
    if form is None:
        return _judge_plan(source, text, question)
    verdict = _judge_configuration(source, text, form, question, search)
    return replace(verdict, notes=tuple(dict.fromkeys(verdict.notes)))


def unreadable(source: str, problems: Iterable[Problem]) -> Verdict:
    """Return the verdict on a file that cannot be read."""
    return Verdict(source=source, findings=tuple(_finding(one, source, UNREADABLE) for one in problems))


def _judge_plan(source: str, text: str, question: Question) -> Verdict:
    from planner.specs.plan import parsed_plan

    if question.form is None and (source.lower().endswith(PROSE) or not _is_spec(text)):
        known = ", ".join(form.name for form in FORMS)
        message = f"is no plan, and of no kind that is known ({known}); name it with --from"
        return unreadable(source, [Problem(source, message, STRANGER)])
    try:
        file = parsed_plan(text, source)
    except SpecError as error:
        return unreadable(source, error.problems)
    if "headroom" in question.job:
        file = replace(file, job=replace(file.job, headroom=float(str(question.job["headroom"]))))
    return _predicted(Verdict(source=source, kind=PLAN, file=file), question.cluster)


def _is_spec(text: str) -> bool:
    """Return whether a text may be a spec: JSON, or YAML that begins with a key."""
    first = next((line for line in map(str.strip, text.splitlines()) if line and line[0] not in "#%"), "")
    return not text.strip() or first[:1] in {"{", "["} or bool(re.match(r"---|[\w\"'-]+\s*:(\s|$)", first))


def _judge_configuration(
    source: str, text: str, form: Form, question: Question, search: Callable[..., Outcome]
) -> Verdict:
    try:
        configuration = form.read(text, source)
        configuration = replace(configuration, version=question.version or configuration.version)
    except SpecError as error:
        return unreadable(source, error.problems)
    if question.cluster and form.fills_cluster(configuration) and configuration.world is None:
        configuration = _filling(configuration, question.cluster)
    found = broken(form, configuration)
    notes = configuration.notes
    verdict = Verdict(source=source, kind=form.name, findings=found, notes=notes)
    if question.cluster is None:
        return replace(verdict, notes=(*notes, "give --cluster to have time and memory predicted"))
    verdict = _placed(verdict, form, configuration, question.cluster, question)
    if verdict.file is None or verdict.prediction is None or not question.search:
        return verdict
    job = replace(verdict.file.job, target=form.framework)
    try:
        return replace(verdict, best=search(question.cluster, verdict.file.model, job))
    except (NoFeasiblePlan, NoPlanInTime) as error:
        return replace(verdict, notes=(*verdict.notes, f"a search for the same job finds no plan: {error}"))


def _filling(configuration: Configuration, cluster: Cluster) -> Configuration:
    """Return the configuration with as many ranks as the cluster has devices, which it does not say itself."""
    world = Setting(name="--cluster", value=cluster.num_devices, spot=Spot(configuration.origin))
    note = f"it does not say how many ranks there are; all {cluster.num_devices:,} devices of {cluster.name} are taken"
    return replace(configuration, world=world, notes=(*configuration.notes, note))


def _placed(
    verdict: Verdict, form: Form, configuration: Configuration, cluster: Cluster, question: Question
) -> Verdict:
    """Return the verdict with what the configuration means on a cluster, as far as it means something."""
    from planner.pipeline.configured import on_cluster

    if not verdict.is_good:
        mend = "time and memory are not predicted until the problems are mended"
        return replace(verdict, notes=(*verdict.notes, mend))
    try:
        setup = form.setup(configuration)
        if setup.model is None and question.model is None:
            note = "it does not say which model it trains; give --model to have time and memory predicted"
            return replace(verdict, notes=(*verdict.notes, *setup.assumed, note))
        found = on_cluster(setup, verdict.source, form.framework, cluster, question.model, question.job)
    except SpecError as error:
        notes = [f"time and memory are not predicted: {one}" for one in error.problems if not one.code]
        more = tuple(_finding(one, verdict.source) for one in error.problems if one.code)
        return replace(verdict, findings=(*verdict.findings, *more), notes=(*verdict.notes, *notes))
    return _predicted(replace(verdict, file=found.file, notes=(*verdict.notes, *found.notes)), None)


def _predicted(verdict: Verdict, cluster: Cluster | None) -> Verdict:
    """Return the verdict with the prediction of its plan, on another cluster if one is given."""
    from planner.pipeline import find_repairs, judge, placed

    file = verdict.file
    assert file
    prediction, problems, notes = judge(file, cluster)
    repairs = find_repairs(*placed(file, cluster), file.model, file.job, prediction) if prediction else ()
    found = (
        Finding(code=p.code, severity=ERROR, spot=Spot(verdict.source), key=p.place, message=p.message)
        for p in problems
    )
    return replace(
        verdict,
        prediction=prediction,
        findings=(*verdict.findings, *found),
        notes=(*verdict.notes, *notes),
        repairs=repairs,
    )


def _finding(problem: Problem, source: str, code: str = "") -> Finding:
    """Return the finding of a problem whose place names file, line and key."""
    # The name of a file may hold blanks and colons itself.
    match = _PLACE.fullmatch(problem.place.removeprefix(source))
    line, column = (int(match["line"] or 0), int(match["column"] or 0)) if match else (0, 0)
    return Finding(
        code=problem.code or code,
        severity=ERROR,
        spot=Spot(source, line, column),
        key=(match["key"] or "") if match else "",
        message=problem.message,
    )


def _place(one: Finding, kind: str) -> str:
    """Return where a finding is: file and line where they are known, and the key unless the message begins with it."""
    at = str(one.spot) if one.spot.line or not kind or not one.key else ""
    key = "" if one.message.startswith(one.key) else one.key
    return " ".join(part for part in (at, key) if part)
