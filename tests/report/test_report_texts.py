"""The other reports: predictions, explanations, problems, tables, and how they are written."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace

import pytest

import transcripts
from planner.domain.job import Constraint
from planner.domain.prediction import Outcome
from planner.errors import NoFeasiblePlan, Problem, Repair, Shortage
from planner.loader import load
from planner.report.explain import binding, explain_text
from planner.report.figures import days, seconds, short
from planner.report.layout import bar, table
from planner.report.prediction import prediction_text
from planner.report.problems import check_text, no_plan_text, problem_lines, problems_text
from planner.report.schedules import schedule_record, show_schedules
from planner.report.show import show_cluster, show_devices, show_frameworks, show_model, show_optimizers
from planner.report.terminal import readable, write
from planner.schedules import ANY_ORDER, SCHEDULES
from planner.specs import catalog
from planner.specs.cluster import cluster_from_record, read_cluster
from planner.units import GIB
from report.report_cases import Case

SCREEN = 100
"""[columns]"""


@dataclass(frozen=True)
class WhyNot:
    """An answer as the pipeline gives it."""

    constraint: Constraint
    outcome: Outcome | None
    infeasible: str
    slower_by: float
    differences: tuple[tuple[str, float, float], ...]


SHORTAGE = Shortage(
    missing_bytes=3 * GIB,
    stage=2,
    num_stages=8,
    group="a100",
    needed_bytes=75 * GIB,
    limit_bytes=72 * GIB,
    description="tp 8, full recompute, ZeRO 1",
)
"""By how much the best candidate misses."""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def test_a_layout_that_does_not_fit_says_by_how_much(small: Case) -> None:
    """An 8B model on one device needs more than 72 GiB: the page says NO, the excess, and which part it is."""
    plan = small.plan([("h100-sxm-80gb", 32)], tp=1)
    prediction = small.predicted(plan)
    problem = Problem("stages[0]", "needs more than there is")
    text = prediction_text(plan, prediction, (problem,), small.cluster, small.model, small.job)
    excess = (prediction.stages[0].peak_memory - prediction.stages[0].memory_limit) / GIB
    assert (
        f"NO: stage 0 is the fullest, {prediction.stages[0].peak_memory / GIB:.1f} GiB, {excess:.1f} GiB above" in text
    )
    assert "too full" in text
    assert "  - stages[0]: needs more than there is" in text
    assert max(map(len, text.splitlines())) <= SCREEN


def test_an_explanation_names_the_bottleneck(mixed: Case) -> None:
    """Of stages of unlike times the slowest binds; its stage and group are named."""
    plan = mixed.plan([("h100", 42), ("a100", 42), ("l40s", 42)])
    texts = " ".join(binding(plan, mixed.predicted(plan)))
    assert "stage 2 on l40s is the bottleneck" in texts
    assert "memory of 3 stages (0-2)" in texts


def test_an_explanation_compares(small: Case) -> None:
    """Why not: the other plan, how much slower it is, and where the seconds go; or why there is none."""
    plan = small.plan([("h100-sxm-80gb", 32)])
    outcome = small.outcome(plan)
    asked = Constraint(subject="tp", operator="=", value="8", text="tp=8")
    answers = [
        WhyNot(asked, outcome, "", 0.05, (("matmul", 1.0, 2.0),)),
        WhyNot(asked, None, "8 does not divide 12 heads", 0.0, ()),
    ]
    text = explain_text(
        plan, outcome.prediction, small.cluster, small.model, small.job, found=outcome, comparisons=answers
    )
    assert "5.0% slower" in text
    assert "matmul     1.00 s     2.00 s" in text
    assert "no plan is possible: 8 does not divide 12 heads" in text
    assert max(map(len, text.splitlines())) <= SCREEN


def test_no_plan_says_what_binds_and_what_would_help() -> None:
    """By how much it misses, what would help, and the counted rejections, the most frequent first."""
    counted = {"tp=16 does not divide 8 kv heads": 212, "memory": 1000}
    effect = "leaves 4 GiB less free"
    repair = Repair(change="--headroom 0.05", effect=effect, step_time=3.5, peak_memory=4 * GIB, is_rough=True)
    text = no_plan_text(NoFeasiblePlan("memory binds", counted, SHORTAGE, [repair]))
    assert text.index("1,000  memory") < text.index("212  tp=16")
    assert "3.0 GiB in stage 2 of 8 on a100" in text
    assert "--headroom 0.05  about 3.50 s  leaves 4 GiB less free" in text


def test_problems_are_one_a_line() -> None:
    """Each problem once, with its place in front, as editors read them."""
    twice = [Problem("a.yaml:3 name", "is missing"), Problem("a.yaml:3 name", "is missing"), Problem("", "no")]
    assert problems_text(twice) == "planner: a.yaml:3 name: is missing\nplanner: no\nplanner: 2 problems\n"


def test_the_same_problem_of_many_stages_is_one_line() -> None:
    """Stages 0 to 2 and 4 have one trouble, stage 3 another: two lines, in the order of the first of each."""
    found = [Problem(f"stages[{n}].group", "is gone" if n != 3 else "is full") for n in range(5)]
    assert problem_lines([*found, Problem("plan", "is late")]) == [
        "  - stages[0-2, 4].group: is gone",
        "  - stages[3].group: is full",
        "  - plan: is late",
    ]


def test_problems_are_counted_and_their_kinds_too() -> None:
    """Five stages with two kinds of trouble, told in two lines; a problem that is told twice is one."""
    found = [Problem(f"stages[{n}].group", "is gone" if n != 3 else "is full") for n in range(5)]
    assert check_text("p.yaml", found, ()).splitlines()[0] == "p.yaml: 5 problems of 2 kinds"
    assert check_text("p.yaml", found[2:4] * 2, (), warnings=found[:2]).splitlines() == [
        "p.yaml: 2 problems, 2 warnings of 1 kind",
        "  - stages[2].group: is gone",
        "  - stages[3].group: is full",
        "  - stages[0-1].group: warning: is gone",
    ]


def test_specs_and_catalogue_fit_a_screen(mixed: Case) -> None:
    """What show prints is no wider than 100 columns, for every cluster of the repository."""
    clusters = [read_cluster(str(path)) for path in sorted((transcripts.ROOT / "cluster_specs").glob("*.yaml"))]
    texts = [show_cluster(cluster) for cluster in clusters]
    texts += [show_model(mixed.model, 4096), show_devices(catalog.devices()), show_frameworks(catalog.frameworks())]
    texts.append(show_optimizers(catalog.optimizers(), sources=True))
    listings = [SCHEDULES, *([listed] for listed in (*SCHEDULES, ANY_ORDER))]
    texts += [show_schedules(listed, catalog.frameworks()) for listed in listings]
    assert max(len(line) for text in texts for line in text.splitlines()) <= SCREEN


def test_schedules_say_who_runs_them() -> None:
    """By a name of the framework's, or from a file of passes, as torchtitan those that PyTorch has no name for."""
    lines = show_schedules((*SCHEDULES, ANY_ORDER), catalog.frameworks()).splitlines()
    rows = {line.split()[0]: line for line in lines if line}
    for name in ("zb-h1", "v-half", "v-min", "search"):
        assert rows[name].endswith("torchtitan: from a file of passes")
        (listed,) = [one for one in (*SCHEDULES, ANY_ORDER) if one.name == name]
        assert schedule_record(listed, catalog.frameworks())["runs_from_file"] == ["torchtitan"]
    assert rows["zbv"].endswith("torchtitan: ZBVZeroBubble")
    assert rows["zb-h2"].endswith(" -")
    assert rows["search"].split()[1:6] == ["1", "or", "more", "1x", "same"]


def test_a_cluster_shows_its_rails_and_sizes() -> None:
    """A failed rail is counted, and where the size of a message matters its half is told, of links of groups too."""
    network = "{network: ib-ndr, rail_rates_gbit_per_s: [400, 0, 200], half_bandwidth_kib: 512}"
    text = f"""\
groups:
  - {{name: a, device: h100-sxm-80gb, nodes: 2, devices_per_node: 8, inter_node: {network}}}
  - {{name: b, device: a100-sxm-80gb, nodes: 2, devices_per_node: 8}}
links: [{{between: [a, b], transport: tcp, bandwidth_gbit_per_s: 100, half_bandwidth_kib: 64.5}}]
"""
    lines = show_cluster(cluster_from_record(load(text, "c.yaml").value)).splitlines()[-3:]
    assert lines == [
        "rails    a: 400, 0, 200 Gbit/s, pooled, 1 failed",
        "size     a: ib-ndr: messages of 512 KiB reach half of the rate",
        "size     a - b: messages of 64.5 KiB reach half of the rate",
    ]


@pytest.mark.parametrize(
    ("device", "link", "noted"),
    [
        ("mi300x-192gb", "", True),
        ("mi300x-192gb", "links: [{between: [a, b], bandwidth_gbit_per_s: 9}]", False),
        ("a100-sxm-80gb", "", False),
    ],
)
def test_what_is_assumed_between_vendors_is_told(device: str, link: str, noted: bool) -> None:
    """Groups of unlike vendors without a declared link are priced as if RDMA worked between them."""
    groups = f"{{name: a, device: {device}, devices_per_node: 8}}, {{name: b, device: H100-80GB, devices_per_node: 8}}"
    text = show_cluster(cluster_from_record(load(f"groups: [{groups}]\n{link}", "c.yaml").value))
    assert ("a - b: no link between amd and nvidia is declared; RDMA over the slower" in text) == noted


def test_a_model_shows_its_published_size(mixed: Case) -> None:
    """Llama 3 405B has 405,853,388,800 parameters (its index file).

    A token costs 6 x 403.75e9 (without the embedding) + 12 x 126 layers x 16,384 x 4,096 = 2.52e12 FLOP.
    """
    text = show_model(mixed.model, 4096)
    assert "405,853,388,800" in text
    assert "2.52 TFLOP a token" in text


def test_colour_is_for_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that is no terminal, NO_COLOR and a dumb terminal get the text as it is."""
    text = "plan     pp 2 ██░░ 3.0/4.0\n"
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for stream, variable, value in (
        (io.StringIO(), "TERM", "xterm"),
        (Terminal(), "NO_COLOR", "1"),
        (Terminal(), "TERM", "dumb"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            write(text, stream)
        assert stream.getvalue() == text
    terminal = Terminal()
    write(text, terminal)
    assert "\x1b[" in terminal.getvalue()


def test_blocks_become_ascii_where_the_encoding_has_none() -> None:
    """A terminal without block characters gets # and dots, and no exception."""
    assert readable("██░ é\n", "ascii") == "##. \\xe9\n"
    assert readable("██░ é\n", "utf-8") == "██░ é\n"


def test_bars_are_full_only_when_all_is_used() -> None:
    """Nothing is an empty bar, a little is one cell, nearly all is not all."""
    assert [bar(share, 4) for share in (0.0, 0.01, 0.5, 0.999, 1.0, 1.7)] == [
        "░░░░",
        "█░░░",
        "██░░",
        "███░",
        "████",
        "████",
    ]


def test_columns_that_are_empty_are_left_out() -> None:
    """A column without a cell does not show; numbers stand to the right."""
    assert table(["a", "b", "c"], [["1", "", "x"], ["22", "", "y"]], right="a") == [" a  c", " 1  x", "22  y"]


def test_figures_have_three_digits_and_their_unit() -> None:
    """405.9e9 is 406 B; 41.24 ms, 3.816 s and 0.00002 s; nothing known is a dash; 36 hours are not days yet."""
    assert [short(405.9e9), short(8.03e9), short(1792)] == ["406 B", "8.03 B", "1,792"]
    assert [seconds(t) for t in (0.04124, 3.816, 2e-5, 0.0, float("inf"))] == [
        "41.2 ms",
        "3.82 s",
        "20.0 us",
        "0.00 s",
        "-",
    ]
    assert [days(36 * 3600), days(10 * 86400)] == ["36.0 hours", "10.0 days"]


def test_a_plan_that_the_search_beats_says_so(small: Case) -> None:
    """Explaining a plan that is not the best shows the better one."""
    worse = small.plan([("h100-sxm-80gb", 16), ("h100-sxm-80gb", 16)], tp=8)
    best = small.outcome(small.plan([("h100-sxm-80gb", 32)], tp=8, dp=2))
    text = explain_text(
        worse, small.predicted(worse), small.cluster, small.model, small.job, found=replace(best, alternatives=())
    )
    assert "a search for the same job finds another plan" in text


def test_a_terminal_is_given_no_commands() -> None:
    """What an input holds is shown and never obeyed; lines, tabs and other writing stay."""
    assert readable("a\x1b[31mb\x07\r\u202ec\u2066\x9b", "utf-8") == "a?[31mb???c??"
    assert readable("a\tb\nc é 漢 ░", "utf-8") == "a\tb\nc é 漢 ░"
