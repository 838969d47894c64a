from __future__ import annotations

import pytest

from planner.domain.progress import Standing
from planner.report.progress import clock, progress_line

SEARCH = Standing(phase="equal replicas", left=lambda: 1323, best=26.649, bound=18.634, wanted=0.01)
"""Its gap is 1 - 18.634 / 26.649 = 30.1%."""


def test_progress_is_one_line() -> None:
    """Elapsed time, phase, what is left of it, the gap and the best plan; that the time left is not known is said."""
    assert (
        progress_line(SEARCH, 4.9)
        == "0:04 (time left unknown) equal replicas: 1,323 subproblems to go, gap 30.1% (wanted 1%), best 26.6 s"
    )


def test_a_time_limit_tells_the_time_left() -> None:
    """With a time limit the rest of it stands in the place of the unknown."""
    limited = Standing(phase="unlike replicas", left=lambda: 1, best=2.0, bound=1.9, wanted=0.0, ends_in=56.2)
    assert (
        progress_line(limited, 61.0)
        == "1:01 (limit in 0:56) unlike replicas: 1 subproblem to go, gap 5.0% (wanted 0%), best 2.00 s"
    )


@pytest.mark.parametrize(
    ("standing", "line"),
    [
        (Standing(phase="candidates"), "0:00 candidates"),
        (Standing(phase="first plans", ends_in=9.5), "0:00 (limit in 0:09) first plans"),
        (Standing(phase="first plans", best=2.0), "0:00 first plans: best 2.00 s"),
        (
            Standing(phase="equal replicas", left=lambda: 0),
            "0:00 (time left unknown) equal replicas: 0 subproblems to go",
        ),
        (
            Standing(phase="equal replicas", left=lambda: 2, best=2.0, bound=2.1),
            "0:00 (time left unknown) equal replicas: 2 subproblems to go, gap 0.0% (wanted 0%), best 2.00 s",
        ),
    ],
)
def test_what_is_not_known_is_left_out(standing: Standing, line: str) -> None:
    """Neither dashes nor zeros stand for what no search has found yet; a gap is never negative."""
    assert progress_line(standing, 0.2) == line


def test_a_narrow_line_keeps_the_gap() -> None:
    """On 79 columns words go first, and on fewer the end."""
    narrow = progress_line(SEARCH, 4.0, 79)
    assert narrow == "0:04 (time left unknown) equal replicas: 1,323 to go, gap 30.1%, best 26.6 s"
    assert progress_line(SEARCH, 4.0, 40) == "0:04 (time left unknown) equal replic..."


def test_clocks() -> None:
    """Seconds have two digits, and minutes beside hours."""
    assert [clock(time) for time in (0.0, 7.99, 60.0, 3599.0, 3723.0)] == ["0:00", "0:07", "1:00", "59:59", "1:02:03"]
