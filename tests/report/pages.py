"""Pages of plans on real clusters, and what can be read in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import Any

from planner.costs import plan_cost
from planner.domain.plan import Plan
from planner.domain.prediction import Certificate, Outcome
from planner.errors import Problem
from planner.placement import place
from planner.report.explain import binding
from planner.report.page import Subject
from planner.report.to_json import plan_document, prediction_document
from planner.simulate import timeline
from planner.specs import catalog
from report.report_cases import Case

VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})
"""Elements that have no end."""


def subject(case: Case, plan: Plan, others: tuple[Plan, ...] = (), *, searched: bool = True) -> Subject:
    """Return what a page about `plan` is made of; a search would find it, before `others`."""
    found: Outcome | None = case.outcome(plan, others) if searched else None
    prediction = case.predicted(plan)
    parts = (case.cluster, case.model, case.job)
    costs = plan_cost(plan, *parts, catalog.framework(case.job.framework))
    document = prediction_document(plan, prediction, (), *parts)
    document["binding"] = binding(plan, prediction)
    document["search"] = plan_document(found, *parts, ("megatron",)) if found else None
    certificate = Certificate(objective=10.0, lower_bound=9.9, replay_lower_bound=9.0)
    document["certificate"] = {
        "objective_s": 10.0,
        "lower_bound_s": 9.9,
        "replay_lower_bound_s": 9.0,
        "gap": certificate.gap,
    }
    return Subject(
        plan=plan,
        prediction=prediction,
        problems=(),
        cluster=case.cluster,
        model=case.model,
        job=case.job,
        certificate=certificate,
        placed=place(plan, *parts),
        timeline=timeline(plan, costs),
        found=found,
        document=document,
        text="plan: {}\n",
        origin="plan.yaml",
    )


def grouped(case: Case, number: int) -> Case:
    """Return the same with as many groups, alternately of the first two kinds, and links between some of them."""
    groups = tuple(replace(case.cluster.groups[index % 2], name=f"group-{index}") for index in range(number))
    link = case.cluster.links[0]
    pairs = [(one, other) for one in range(number) for other in range(one + 1, number) if (one + other) % 3]
    links = tuple(replace(link, first=f"group-{one}", second=f"group-{other}") for one, other in pairs)
    return replace(case, cluster=replace(case.cluster, groups=groups, links=links))


def hostile(about: Subject, name: str) -> Subject:
    """Return the same with `name` wherever a file may name something."""
    groups = tuple(replace(group, name=f"{name}{index}") for index, group in enumerate(about.cluster.groups))
    renamed = {old.name: new.name for old, new in zip(about.cluster.groups, groups, strict=True)}
    links = tuple(replace(link, first=renamed[link.first], second=renamed[link.second]) for link in about.cluster.links)
    stages = tuple(replace(stage, group=renamed[stage.group]) for stage in about.plan.stages)
    plan = replace(about.plan, stages=stages)
    cluster = replace(about.cluster, name=name, groups=groups, links=links)
    model = replace(about.model, name=name)
    return replace(
        about,
        plan=plan,
        cluster=cluster,
        model=model,
        found=None,
        placed=place(plan, cluster, model, about.job),
        problems=(Problem(name, name),),
        document={name: name},
        text=name,
        origin=name,
    )


@dataclass
class Reader(HTMLParser):
    """Reads a page: its elements with their attributes, the numbers for machines, and whether all elements end."""

    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    values: list[tuple[float, str]] = field(default_factory=list)
    texts: dict[str, list[str]] = field(default_factory=dict)
    """Element -> what stands in it."""
    open: list[str] = field(default_factory=list)
    value: float | None = None

    def __post_init__(self) -> None:
        """Set the parser up."""
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag == "data":
            self.value = float(dict(attrs)["value"] or "nan")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost element, which must be the one that ends."""
        assert self.open.pop() == tag, f"</{tag}> ends another element"

    def handle_data(self, data: str) -> None:
        """Note a text, and a number that it writes."""
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)
        if self.value is not None and self.open[-1] == "data":
            self.values.append((self.value, data))
            self.value = None


def read(page: str) -> Reader:
    """Return a page, read; every element ends."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def numbers(document: Any) -> Iterator[float]:
    """Yield every number of a document."""
    if isinstance(document, dict):
        for inner in document.values():
            yield from numbers(inner)
    elif isinstance(document, list):
        for inner in document:
            yield from numbers(inner)
    elif isinstance(document, (int, float)) and not isinstance(document, bool):
        yield float(document)


def embedded(page: str) -> Any:
    """Return the document in a page."""
    start = page.index('<script type="application/json" id="document">') + len(
        '<script type="application/json" id="document">'
    )
    return json.loads(page[start : page.index("</script>", start)])
