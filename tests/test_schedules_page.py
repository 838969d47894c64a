"""docs/schedules.md has every schedule, and what frameworks call it."""

from __future__ import annotations

import re

import transcripts
from planner.domain.plan import SEARCHED
from planner.schedules import SCHEDULES

PAGE = (transcripts.ROOT / "docs" / "schedules.md").read_text(encoding="utf-8")


def rows(title: str) -> list[str]:
    """Return the rows of the table of a section."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| `")]


def test_every_schedule_is_described() -> None:
    """In the order of the list, with its chunks and its copies of the weights."""
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows("What there is")]
    assert [row[0].strip("`") for row in cells] == [listed.name for listed in SCHEDULES]
    for row, listed in zip(cells, SCHEDULES, strict=True):
        assert row[1] == (f"{listed.virtual_stages} or more" if listed.with_chunks else str(listed.virtual_stages))
        assert row[4].startswith(str(listed.directions))


def test_frameworks_are_named() -> None:
    """Each schedule has a row, or stands in one with others; names are those of `runs_as`."""
    table = {name: row for row in rows("Frameworks") for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
    assert sorted(table) == sorted([*(listed.name for listed in SCHEDULES), SEARCHED])
    for listed in SCHEDULES:
        for _, name in listed.runs_as:
            assert name in table[listed.name]
