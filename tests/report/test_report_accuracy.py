"""The tables of ``planner accuracy``, with judgements of known figures."""

from __future__ import annotations

from accuracy.judged_runs import DATA, judged
from planner.accuracy.measures import Accuracy, measure
from planner.accuracy.runs import read_runs
from planner.report.accuracy import accuracy_text

SCREEN = 100
"""[columns]"""
PAGE = """\
runs     8 rows of 2 sources, 7 judged

time                   rows   MAPE  median    bias     p10     p90  rank  regret
all                       6  16.7%   10.0%   -6.7%  -30.0%  +10.0%  1.00    0.0%
healthy: no flag          5  10.0%   10.0%   +2.0%  -10.0%  +10.0%  1.00    0.0%
healthy, tp in a node     4  10.0%   10.0%   +5.0%   -4.0%  +10.0%  1.00    0.0%
1                         1  10.0%   10.0%  -10.0%  -10.0%  -10.0%     -       -
2                         5  18.0%   10.0%   -6.0%  -34.0%  +10.0%  1.00    0.0%

memory            rows   MAPE  median    bias     p10     p90
all                  1  25.0%   25.0%  -25.0%  -25.0%  -25.0%
healthy: no flag     1  25.0%   25.0%  -25.0%  -25.0%  -25.0%
1                    1  25.0%   25.0%  -25.0%  -25.0%  -25.0%

fit                    rows   right  false fits  false OOMs   picks  OOM picks  regret
all                       7   85.7%        0.0%       14.3%  1 of 1       0.0%    0.0%
healthy: no flag          6  100.0%        0.0%        0.0%  1 of 1       0.0%    0.0%
healthy, tp in a node     5  100.0%        0.0%        0.0%  1 of 1       0.0%    0.0%
1                         1  100.0%        0.0%        0.0%       -          -       -
2                         6   83.3%        0.0%       16.7%  1 of 1       0.0%    0.0%

source  rows  judged
     1     2       1  another
     2     6       6  lab

not judged  because
         1  it failed

error    predicted / measured - 1: below 0 the prediction is too fast or too small. MAPE and median
         are of its size, bias is its mean, p10 and p90 are percentiles
rank     Spearman's, by time per token; regret: measured time of what is predicted fastest over the
         measured best, less 1. Means over groups of at least 4 runs of one source, model, number of
         devices and sequence length
fit      with a head-room of 10.0%; shares of the runs known to have run or to have run out of
         memory. Picks: the fastest predicted to fit, in groups where some ran and some ran out of
         memory
"""


def accuracy() -> Accuracy:
    """Return the figures of two sources.

    `lab`: four runs that are 10% off (+, -, +, +) in the right order, one out of memory that is seen, one flagged on 16
    devices that is half as long as measured and wrongly seen to be too full. `another`: one run whose tensor group
    takes two nodes, 10% too fast and 25% too small, and one that is not judged.
    """
    rows = [
        judged(predicted, 10, iter_time_s=measured, oom="0")
        for predicted, measured in ((1.1, 1.0), (1.8, 2.0), (3.3, 3.0), (4.4, 4.0))
    ]
    rows += [
        judged(1.0, 80, oom="1"),
        judged(0.5, 80, iter_time_s=1.0, oom="0", gpus=16, flag="noise"),
        judged(
            0.9, 30, source="another", iter_time_s=1.0, mem_gib_per_gpu=40.0, oom="0", gpus=16, gpus_per_node=8, tp=16
        ),
        judged(reason="it failed", source="another", gpus=None),
    ]
    return measure(rows, 0.1)


def test_the_page() -> None:
    """Every figure stands where a reader looks for it, as worked out from the runs above."""
    assert accuracy_text(accuracy()) == PAGE


def test_groups_come_behind_the_sources() -> None:
    """With `groups` there is a row for each source, model and number of devices that has something to tell."""
    page = accuracy_text(accuracy(), groups=True)
    rows = [line.split("  ")[0] for line in page.splitlines() if " devices: " in line]
    first, second, third = "1, 16 devices: m", "2, 8 devices: m", "2, 16 devices: m"
    assert rows == [first, second, third, first, first, second, third]


def test_what_nothing_tells_about_is_left_out() -> None:
    """Where no run is judged there are the sources and the reasons, no empty tables and no legend."""
    page = accuracy_text(measure([judged(reason="not known", limit=None, source="")], 0.1))
    assert page == (
        "runs     1 row of 1 source, 0 judged\n\nsource  rows  judged\n     1     1       0  not said\n\n"
        "not judged  because\n         1  not known\n"
    )


def test_no_line_is_wider_than_a_screen() -> None:
    """Long names of models and sources are cut or wrapped."""
    runs = [run for path in sorted(DATA.glob("*.csv")) for run in read_runs([str(path)])]
    rows = [judged(10.0, 60, **{name: getattr(run, name) for name in run.__slots__}) for run in runs]
    page = accuracy_text(measure(rows, 0.1), groups=True, width=SCREEN)
    assert max(map(len, page.splitlines())) <= SCREEN
