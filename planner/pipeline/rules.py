"""The story of every rule by its code: what holds, why, for which versions, and where it is from."""

from __future__ import annotations

from planner.checks import CHECKS
from planner.configurations import FORMS, Rule
from planner.domain.configuration import Story
from planner.errors import SpecError

OWN = {
    "PL001": (
        "The file can be read",
        "the file exists and is a plan or a configuration of a known kind",
        "Nothing is judged of a file that cannot be read; the message tells its line and what would be right.",
    ),
    "PL002": (
        "The layout is possible on the cluster",
        "stages, chunks, replicas and micro-batches exist in whole numbers",
        "A layout whose numbers do not divide is no plan on this cluster, with this batch; the message tells which.",
    ),
    "PL003": (
        "The file is of a known kind",
        "the file is a plan, or a launch configuration of a framework whose kind is known",
        "Kinds are recognised by what is in a file; `--from KIND` says it, and `--skip-unknown` passes over others.",
    ),
    "PL110": (
        "The framework can run the plan",
        "the framework that the job is for can run the plan",
        "What frameworks can carry stands in the catalogue; `planner plan --for NAME` searches only that.",
    ),
}
"""Code -> title, what holds, and why, of what no check and no form has a rule for."""


def stories() -> dict[str, Story]:
    """Return every rule by its code, in the order of their codes; one that several forms share stands once."""
    shared: dict[str, list[tuple[str, Rule]]] = {}
    for form in FORMS:
        for rule in form.rules:
            shared.setdefault(rule.code, []).append((form.name, rule))
    found = [
        *(
            Story(code=code, title=title, summary=summary, why=why, severity="error", of=("plan",))
            for code, (title, summary, why) in OWN.items()
        ),
        *(
            Story(
                code=check.code,
                title=check.name.capitalize(),
                summary=check.summary,
                why=check.why,
                severity="error",
                of=("plan",),
            )
            for check in CHECKS
        ),
        *(_of_forms(tuple(name for name, _ in held), held[0][1]) for held in shared.values()),
    ]
    return {story.code: story for story in sorted(found, key=lambda one: one.code)}


def story(code: str) -> Story:
    """Return the rule called `code`, in small letters or capitals.

    Raises:
        SpecError: there is none.
    """
    known = stories()
    if code.upper() not in known:
        from planner.specs.problems import nearest

        raise SpecError.of(code, f"is no code of a rule{nearest(code.upper(), known)}")
    return known[code.upper()]


def _of_forms(forms: tuple[str, ...], rule: Rule) -> Story:
    """Return the story of a rule, as the first of its forms has it."""
    since = f"from {rule.since} on" if rule.since else ""
    until = f"before {rule.until}" if rule.until else ""
    return Story(
        code=rule.code,
        title=rule.name,
        summary=rule.summary,
        why=rule.why,
        severity=rule.severity,
        of=forms,
        versions=", ".join(part for part in (since, until) if part) or "all",
        source=rule.source,
        caught=rule.caught,
    )
