"""What connects the groups on the page, for any number of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import Problem
from planner.report.page import page
from planner.report.page.links import links
from report.pages import grouped, subject
from report.report_cases import Case


@pytest.mark.parametrize(("number", "lines", "cells"), [(1, 0, 0), (2, 1, 0), (3, 3, 0), (5, 0, 25), (8, 0, 64)])
def test_all_groups_are_connected(mixed: Case, number: int, lines: int, cells: int) -> None:
    """By lines where these do not cross, in a table of all pairs where there are more."""
    cluster = grouped(mixed, number).cluster
    made = str(links(cluster))
    assert made.count("<path") == lines
    assert made.count("<small>") == cells
    assert made.count("rdma, 70.0% of it</text>") == (len(cluster.links) if lines else 0)
    assert made.count("rdma, 70.0% of it</small>") == (2 * len(cluster.links) if cells else 0)


def test_many_groups_are_listed(mixed: Case) -> None:
    """Beyond 12 only links of their own are told."""
    made = str(links(grouped(mixed, 13).cluster))
    assert made.count("<li>") == len(grouped(mixed, 13).cluster.links)


def test_64_stages_of_8_groups_stay_below_a_megabyte(mixed: Case) -> None:
    """512 micro-batches: all stages have their row, and their problems are folded."""
    case = grouped(replace(mixed, job=replace(mixed.job, global_batch=512)), 8)
    plan = case.plan([(f"group-{index // 8}", 2 if index < 62 else 1) for index in range(64)])
    about = replace(subject(case, plan), problems=tuple(Problem(f"stages[{index}]", "is full") for index in range(64)))
    made = page(about)
    assert len(made.encode()) < 1_000_000
    assert made.count("data-stage=") == 64
    assert "<summary>59 more</summary>" in made
