"""The measures, each worked out by hand."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accuracy.judged_runs import judged
from planner.accuracy.errors import Errors, Fit, errors, fit, memory_errors, percentile, time_errors
from planner.accuracy.judged import Judged
from planner.accuracy.measures import figures, measure
from planner.accuracy.ranking import Choice, choice, ranking, ranks, spearman
from planner.report.accuracy_json import accuracy_document
from planner.report.to_json import dumped


def ran(predicted: float, measured: float, gib: float = 10, **given: Any) -> Judged:
    """Return a run that ended, with its predicted and measured step times [s]."""
    return judged(predicted, gib, iter_time_s=measured, oom="0", **given)


def failed(predicted: float, gib: float = 10, **given: Any) -> Judged:
    """Return a run that ran out of memory."""
    return judged(predicted, gib, oom="1", **given)


def test_errors_of_step_times() -> None:
    """Predicted / measured - 1.

    8/10, 11/10, 12/10, 6/5 and 4/5 are -0.2, +0.1, +0.2, +0.2, -0.2. Sizes 0.1, 0.2 (4 times): mean 0.18, median 0.2.
    Sum 0.1, mean 0.02. Sorted -0.2, -0.2, 0.1, 0.2, 0.2: the 10th percentile lies at 0.4 of the way from the first to
    the second, -0.2; the 90th at 0.6 from the fourth to the fifth, 0.2.
    """
    rows = [ran(8, 10), ran(11, 10), ran(12, 10), ran(6, 5), ran(4, 5), judged(3), judged(reason="x", iter_time_s=2)]
    found = time_errors(rows)
    assert found.rows == 5
    assert (found.mape, found.median_ape, found.bias) == pytest.approx((0.18, 0.2, 0.02))
    assert (found.p10, found.p90) == pytest.approx((-0.2, 0.2))


def test_errors_of_memory() -> None:
    """30 GiB predicted of 40 is -25%; the peak of a run that ran out of memory is unknown."""
    rows = [judged(1, 30, mem_gib_per_gpu=40.0), judged(1, 30, mem_gib_per_gpu=20.0, oom="1")]
    assert memory_errors(rows) == Errors(rows=1, mape=0.25, median_ape=0.25, bias=-0.25, p10=-0.25, p90=-0.25)


def test_percentiles_are_linear_between_values() -> None:
    """Of 0, 10, 20, 30 the 10th percentile lies at 0.3 between the first two: 3; the middle is 15."""
    assert percentile([0, 10, 20, 30], 0.1) == pytest.approx(3)
    assert percentile([0, 10, 20, 30], 0.5) == pytest.approx(15)
    assert percentile([0, 10, 20, 30], 1.0) == 30
    assert percentile([7], 0.9) == 7
    assert percentile([], 0.9) is None


def test_nothing_measured_is_nothing_known() -> None:
    """No figure is made up, and none is NaN."""
    nothing = Errors(rows=0, mape=None, median_ape=None, bias=None, p10=None, p90=None)
    assert errors([(None, 1.0), (1.0, None)]) == nothing
    assert fit([]) == Fit(rows=0, accuracy=None, false_fit=None, false_oom=None)
    assert choice([]) == Choice(groups=0, picks=0, oom_picks=None, regret=None)


def test_fit_counts_all_whose_outcome_is_known() -> None:
    """Of 8 judged: 5 right (3 ran, 2 not), 2 predicted to fit that did not, 1 the other way; a failure tells nothing.

    A peak at the limit fits.
    """
    rows = [ran(1, 1, 72), ran(1, 1), ran(1, 1), failed(1, 73), failed(1, 90), failed(1), failed(1), ran(1, 1, 80)]
    rows += [
        judged(1, 10, oom="fail"),
        judged(1, 10, oom=""),
        judged(1, None, oom="0"),
        judged(1, 9, limit=None, oom="1"),
    ]
    assert fit(rows) == Fit(rows=8, accuracy=5 / 8, false_fit=2 / 8, false_oom=1 / 8)


def test_ranks_of_ties_are_averaged() -> None:
    """10 is first, the two 20 share ranks 2 and 3, 30 is fourth."""
    assert ranks([20, 10, 30, 20]) == [2.5, 1, 4, 2.5]
    assert ranks([5, 5, 5]) == [2, 2, 2]


def test_spearman_by_hand() -> None:
    """Ranks 1 2 3 4 against 2 1 4 3: sum of d^2 = 4, 1 - 6 * 4 / (4 * 15) = 0.6.

    With ties: ranks 1 2.5 2.5 4 against 1 2 3 4 have covariance 4.5, spreads 4.5 and 5: 4.5 / sqrt(22.5) = 0.948683.
    """
    assert spearman([1, 2, 3, 4], [20, 10, 40, 30]) == pytest.approx(0.6)
    assert spearman([1, 2, 2, 4], [1, 2, 3, 4]) == pytest.approx(0.9486833)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 1, 1], [3, 2, 1]) is None


def test_ranking_is_the_mean_of_groups_of_at_least_four() -> None:
    """Two groups count, three runs are no group.

    First: predicted 1 2 3 4, measured 2 1 4 3: 0.6; the fastest by prediction took 2, the best 1: regret 1.
    Second (16 devices): the right order, regret 0. Means 0.8 and 0.5.
    """
    rows = [ran(1, 2), ran(2, 1), ran(3, 4), ran(4, 3)]
    rows += [ran(t, t, gpus=16) for t in (1, 2, 3, 4)]
    rows += [ran(t, 4 - t, gpus=32) for t in (1, 2, 3)]
    found = ranking(rows)
    assert found.groups == 2
    assert (found.spearman, found.top1_regret) == pytest.approx((0.8, 0.5))


def test_unlike_batches_compare_by_the_token() -> None:
    """Half the batch in 0.6 of the time is slower by the token, predicted and measured."""
    rows = [ran(6, 6, gbs=5), ran(10, 10), ran(11, 11), ran(12, 12)]
    assert ranking(rows).top1_regret == 0
    wrong = [ran(4, 6, gbs=5), ran(10, 10), ran(11, 11), ran(12, 12)]
    assert ranking(wrong).top1_regret == pytest.approx(0.2)


def test_unlike_sequences_are_ranked_apart() -> None:
    """Three runs of one length and one of another are no group of four."""
    rows = [ran(1, 1), ran(2, 2), ran(3, 3), ran(4, 4, seq=200)]
    assert ranking(rows).groups == 0
    assert ranking(rows).spearman is None
    assert ranking([*rows, ran(5, 5)]).groups == 1


def test_runs_predicted_alike_are_one_pick() -> None:
    """Two are predicted fastest and took 1 and 2, the best took 1: regret 0.5, in any order."""
    rows = [ran(1, 1), ran(1, 2), ran(3, 3), ran(4, 4)]
    assert ranking(rows).top1_regret == ranking(rows[::-1]).top1_regret == 0.5


def test_groups_without_an_order_have_no_rank() -> None:
    """All predicted alike: no correlation, and a regret that is the mean of all over the best."""
    found = ranking([ran(1, t) for t in (1, 2, 3, 4)])
    assert (found.groups, found.spearman, found.top1_regret) == (1, None, 1.5)


def test_choice_takes_the_fastest_that_is_predicted_to_fit() -> None:
    """Three groups have both kinds.

    First: the fastest is predicted not to fit, the pick took 3, the best 2: regret 0.5. Second: the pick ran out of
    memory. Third: nothing is predicted to fit, no pick. The fourth has only runs that ended, and does not count.
    """
    rows = [failed(1, 80), ran(2, 3), ran(3, 2)]
    rows += [failed(1, gpus=16), ran(2, 2, gpus=16)]
    rows += [failed(1, 80, gpus=32), ran(2, 2, 80, gpus=32)]
    rows += [ran(1, 1, gpus=64), ran(2, 2, gpus=64)]
    assert choice(rows) == Choice(groups=3, picks=2, oom_picks=0.5, regret=0.5)


def test_runs_that_failed_otherwise_are_no_choice() -> None:
    """Whether they would have fitted is unknown, so they neither make a group nor are picked."""
    rows = [judged(1, 10, oom="fail"), ran(2, 2), failed(3, 80)]
    assert choice(rows) == Choice(groups=1, picks=1, oom_picks=0, regret=0)


def test_parts_of_the_whole() -> None:
    """Flagged rows are in all and not in healthy; a tensor group beyond its node is in neither of the last."""
    rows = [
        ran(1, 1, tp=8, gpus_per_node=8),
        ran(2, 1, flag="noise"),
        ran(1, 2, tp=16, gpus_per_node=8, source="another"),
        judged(reason="b"),
        judged(reason="a"),
        judged(reason="b", source="another"),
    ]
    found = measure(rows, 0.1)
    assert (found.all.rows, found.all.judged, found.all.time.rows) == (6, 3, 3)
    assert (found.healthy.rows, found.healthy.time.bias) == (5, -0.25)
    assert (found.healthy_in_node.rows, found.healthy_in_node.time.rows) == (4, 1)
    assert found.skipped == (("b", 2), ("a", 1))
    assert [(source, part.rows) for source, part in found.sources] == [("another", 2), ("lab", 4)]
    assert [(key, part.rows) for key, part in found.groups] == [(("another", "m", 8), 2), (("lab", "m", 8), 4)]


TIMES = st.floats(0.1, 10)
ROWS = st.lists(
    st.one_of(
        st.builds(
            ran, st.sampled_from((1.0, 2.0, 3.0)), TIMES, st.sampled_from((10, 80)), gpus=st.sampled_from((8, 16))
        ),
        st.builds(failed, TIMES, st.sampled_from((10, 80)), gpus=st.sampled_from((8, 16))),
    ),
    max_size=20,
)


@given(ROWS, st.randoms())
def test_the_order_of_rows_changes_nothing(rows: list[Judged], order: random.Random) -> None:
    """All figures of shuffled rows are the same, to the last digit."""
    assert measure(order.sample(rows, len(rows)), 0.1) == measure(rows, 0.1)


def test_documents_hold_nulls_and_no_nan() -> None:
    """A run that cannot be judged leaves null for every figure."""
    document = json.loads(dumped(accuracy_document(measure([judged(reason="x", gpus=None)], 0.1)), "json"))
    assert document["time"] == {
        "rows": 0,
        **dict.fromkeys(("mape", "median_ape", "bias", "p10", "p90", "spearman", "top1_regret")),
        "ranked_groups": 0,
    }
    assert document["groups"][0]["devices"] is None
    assert document["skipped"] == [{"reason": "x", "count": 1}]
    assert figures([]).judged == 0
