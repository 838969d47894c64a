"""The page of a plan: complete in itself, escaped, and with the numbers of the JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

import planner.report.page
from planner.domain.cluster import Cluster
from planner.domain.plan import Plan
from planner.report.page import Subject, page
from planner.report.page.cluster import Tile, _tiles
from planner.report.page.markup import Markup, figure, join, table, tag
from planner.report.page.patterns import COLOURS, text_colour
from report.pages import embedded, hostile, numbers, read, subject
from report.report_cases import Case

EVIL = """</script><script>alert("1")</script><b onload='x'>&amp;"""


@pytest.fixture(scope="module")
def plan(mixed: Case) -> Plan:
    """Three stages on three groups."""
    return mixed.plan([("h100", 70), ("a100", 40), ("l40s", 16)], dp=4)


@pytest.fixture(scope="module")
def about(mixed: Case, plan: Plan) -> Subject:
    """That plan, with two runners-up."""
    return subject(mixed, plan, (mixed.plan([("h100", 126)], dp=2), mixed.plan([("h100", 100), ("a100", 26)], dp=4)))


def test_a_page_is_well_formed_and_has_every_section(about: Subject) -> None:
    """Every element ends, every anchor has its target, no name is given twice."""
    reader = read(page(about))
    names = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(names) == len(set(names))
    wanted = [attributes["href"] for name, attributes in reader.elements if name == "a"]
    assert {str(link).removeprefix("#") for link in wanted} <= set(names)
    assert reader.texts["h2"] == [
        "Stages",
        "Where it runs",
        "One step",
        "Where a step goes",
        "Memory",
        "Alternatives",
        "Proof",
        "Inputs",
    ]


def test_every_number_is_one_of_the_json(about: Subject) -> None:
    """What a reader sees in <data> is a value of the document, which the page holds, too."""
    made = page(about)
    document = embedded(made)
    known = set(numbers(document))
    reader = read(made)
    assert len(reader.values) > 60
    assert [text for value, text in reader.values if value not in known] == []
    prediction = document["prediction"]
    first = [value for value, _ in reader.values]
    assert prediction["step_time_s"] == first[0]
    for stage in prediction["stages"]:
        assert stage["peak_memory_bytes"] in first


def test_nothing_is_loaded(about: Subject) -> None:
    """No address of anything elsewhere, and a policy that lets the browser refuse it; well below a megabyte."""
    made = page(about)
    reader = read(made)
    assert len(made.encode()) < 1_000_000
    for name, attributes in reader.elements:
        assert name not in {"link", "img", "iframe", "object", "embed"}
        assert not {"src", "srcset", "action", "data", "onclick", "onload"} & set(attributes)
        assert str(attributes.get("href", "#")).startswith("#")
    assert re.findall(r"(?:https?:)?//[a-z]", re.sub(r"http://www\.w3\.org/2000/svg", "", made)) == []
    policies = [one for _, one in reader.elements if one.get("http-equiv") == "Content-Security-Policy"]
    assert str(policies[0]["content"]).startswith("default-src 'none'")


def test_what_is_no_name_stays_text(about: Subject) -> None:
    """Markup in the names of cluster, group, model, file and problem is shown, not obeyed."""
    plain = read(page(hostile(about, "plain")))
    evil = read(page(hostile(about, EVIL)))
    assert [name for name, _ in evil.elements] == [name for name, _ in plain.elements]
    assert any(EVIL in text for text in evil.texts["h1"])
    assert any(EVIL in text for text in evil.texts["pre"])
    assert embedded(page(hostile(about, EVIL))) == {EVIL: EVIL}


def test_without_a_search_there_are_no_alternatives(mixed: Case, plan: Plan) -> None:
    """The section and the link to it are missing; nothing is said of a search."""
    made = page(subject(mixed, plan, searched=False))
    assert 'id="alternatives"' not in made
    assert "This search" not in made


def test_without_a_certificate_nothing_is_proved(about: Subject) -> None:
    """A plan that was named, not searched, says so."""
    assert "Nothing is proved of this plan" in page(replace(about, certificate=None))


def test_problems_come_first(about: Subject) -> None:
    """A plan that does not fit says so above its figures."""
    made = page(hostile(about, "gpu"))
    assert made.index("This plan has problems") < made.index('class="tiles"')


def test_pictures_have_names(about: Subject) -> None:
    """Every picture is named or hidden from those who cannot see it, and what scrolls can be reached by keyboard."""
    for name, attributes in read(page(about)).elements:
        if name == "svg":
            assert attributes.get("aria-label") or attributes.get("aria-hidden") == "true"
        if attributes.get("role") in {"region", "group"}:
            assert attributes["tabindex"] == "0"
            assert attributes["aria-label"]


def test_a_long_step_stays_below_a_megabyte(mixed: Case) -> None:
    """8 stages with 2048 micro-batches each: the drawing is cut, with a word on it."""
    case = replace(mixed, job=replace(mixed.job, global_batch=2048))
    made = page(subject(case, case.plan([("h100", 16)] * 7 + [("h100", 14)], dp=1)))
    assert len(made.encode()) < 1_000_000
    assert "The gap stands for" in made


def test_alternatives_are_drawn_where_they_differ(about: Subject) -> None:
    """Memory and devices differ; prices are not known, so that there is no third chart."""
    made = page(about)
    assert "Step time against most memory of a device" in made
    assert "Step time against devices" in made
    assert "Step time against cost" not in made


def test_costs_are_drawn_where_prices_are_known(about: Subject) -> None:
    """One price for all groups: the cost of tokens of each plan."""
    groups = tuple(replace(group, price_per_device_hour=2.5) for group in about.cluster.groups)
    made = page(replace(about, cluster=replace(about.cluster, groups=groups)))
    assert "Step time against cost of 10^9 tokens" in made


def test_alike_nodes_are_one_tile(about: Subject) -> None:
    """Of 64 nodes of 8 H100 the four of stage 0's replicas come first, the others are idle; on shared nodes as well."""
    group = about.cluster.groups[0]
    ranks = [rank for rank in about.placed.ranks if rank.group == group.name]
    nodes: dict[str, list[object]] = {}
    for rank in ranks:
        nodes.setdefault(rank.node, []).append(rank)
    whole: Cluster = about.cluster
    tiles = list(_tiles(group, nodes, whole, [0]))  # type: ignore[arg-type]
    assert tiles == [Tile(0, 4, (0,) * 8), Tile(4, group.num_nodes - 4, (-1,) * 8)]


def test_text_is_escaped_and_markup_is_not() -> None:
    """In children and in attributes; attributes that are missing leave nothing behind."""
    assert tag("p", "a < b", tag("b", "c"), title='"x"', hidden=None, open=True) == (
        '<p title="&quot;x&quot;" open>a &lt; b<b>c</b></p>'
    )
    assert join("<", Markup("<")) == "&lt;<"
    assert tag("p", "a\u202eb\x1b", title="\u2066x") == '<p title="?x">a?b?</p>'
    assert figure(1.5, "1.5 s") == '<data value="1.5">1.5 s</data>'
    assert "<td>&lt;i&gt;</td>" in table(["a"], [["<i>"]])


def test_large_plan_files_of_a_search_are_left_out(about: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their predictions stay, so that every number that is shown is still in the document."""
    whole = embedded(page(about))
    monkeypatch.setattr("planner.report.page.whole.MOST_EMBEDDED", 100)
    made = page(about)
    document = embedded(made)
    assert document["search"]["plan"] is None
    assert [one["plan"] for one in document["search"]["alternatives"]] == [None, None]
    assert document["search"]["prediction"] == whole["search"]["prediction"]
    known = set(numbers(document))
    assert [text for value, text in read(made).values if value not in known] == []


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#rrggbb`` (WCAG 2.2)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours (WCAG 2.2)."""
    low, high = sorted(luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_on_its_ground() -> None:
    """Level AA of WCAG: 4.5 to 1 for text, in light and dark, and on the colours of stages and parts; 3 for lines."""
    style = (Path(planner.report.page.__file__).parent / "page.css").read_text(encoding="utf-8")
    themes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root {[^}]*}", style)[:2]]
    assert len(themes) == 2
    for theme in themes:
        for ground in ("ground", "card", "shade"):
            for name in ("text", "soft", "link"):
                assert contrast(theme[name], theme[ground]) >= 4.5, (name, ground)
        assert contrast(theme["over"], theme["card"]) >= 4.5
        for line in ("accent", "limit", "area"):
            assert contrast(theme[line], theme["card"]) >= 3
    for colour in COLOURS:
        written = {"#000": "#000000", "#fff": "#ffffff"}[text_colour(colour)]
        assert contrast(colour, written) >= 4.5
