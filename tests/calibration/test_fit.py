"""Fits find the constants of a machine that is known, and keep the priors where runs tell nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.synthetic_runs import shapes, times, written
from planner.accuracy.runs import read_runs
from planner.calibration.fit import Fit, fit
from planner.calibration.optimum import LEAST_ERROR, Problem, objective, optimum
from planner.calibration.rows import usable
from planner.errors import SpecError

TRUTH = {"matmul_efficiency": 0.85, "launch_floor_us": 2.0, "elementwise": 1.7, "inter_node_efficiency": 0.6}


def fitted(folder: Path, rows: list[dict[str, object]], measured: list[float]) -> Fit:
    """Return the fit of runs that were written to a file and read again."""
    return fit(usable(read_runs([written(folder / "runs.csv", rows, measured)])))


def test_known_constants_are_found(tmp_path: Path) -> None:
    """80 runs with little noise: constants within a few percent of the truth, errors down to the noise."""
    rows = shapes(80)
    found = fitted(tmp_path, rows, times(rows, TRUTH, noise=0.005))
    factors = {one.constant.key: one.factor for one in found.constants}
    assert found.helps
    assert factors["matmul_efficiency"] == pytest.approx(TRUTH["matmul_efficiency"], rel=0.03)
    assert factors["launch_floor_us"] == pytest.approx(TRUTH["launch_floor_us"], rel=0.05)
    assert factors["elementwise"] == pytest.approx(TRUTH["elementwise"], rel=0.15)
    assert factors["inter_node_efficiency"] == pytest.approx(TRUTH["inter_node_efficiency"], rel=0.15)
    assert found.before.mape is not None
    assert found.after.mape is not None
    assert found.cross_validated.mape is not None
    assert found.before.mape > 0.1
    assert found.after.mape <= found.cross_validated.mape < 0.01
    assert not any(one.at_bound for one in found.constants)


def test_softmax_is_freed_where_attention_is_not_fused(tmp_path: Path) -> None:
    """It is a constant of such runs alone, and is found."""
    rows = shapes(60, attention_kernel="fused-softmax")
    found = fitted(tmp_path, rows, times(rows, {"softmax_bytes": 1.5}, noise=0.01))
    factors = {one.constant.key: one.factor for one in found.constants}
    assert factors["softmax_bytes"] == pytest.approx(1.5, rel=0.05)
    assert factors["matmul_efficiency"] == pytest.approx(1.0, rel=0.03)


@pytest.mark.parametrize(("number", "free"), [(3, 1), (9, 1), (19, 1), (20, 2), (35, 3), (40, 4)])
def test_each_free_constant_needs_ten_runs(number: int, free: int, tmp_path: Path) -> None:
    """The first ones are freed first; those that are not free keep their priors."""
    rows = shapes(number)
    found = fitted(tmp_path, rows, times(rows, TRUTH))
    keys = ["matmul_efficiency", "launch_floor_us", "elementwise", "inter_node_efficiency"]
    assert [one.constant.key for one in found.constants] == keys
    assert [one.free for one in found.constants] == [True] * free + [False] * (4 - free)
    assert all(one.value == one.prior for one in found.constants if not one.free)


def test_few_runs_move_little(tmp_path: Path) -> None:
    """All runs take 20% longer than predicted: the fewer there are, the less of it is believed."""
    rows = shapes(40, hidden=8192, layers=8)
    measured = [1.2 * time for time in times(rows, {})]
    factors = [fitted(tmp_path, rows[:number], measured[:number]).constants[0].factor for number in (3, 6, 9)]
    assert factors == sorted(factors, reverse=True)
    assert 0.9 < factors[0] < 1
    assert factors[-1] < 0.88


def test_noise_leaves_the_priors(tmp_path: Path) -> None:
    """Half of the runs are slow and half fast for no reason: what is learnt of one half is wrong of the other."""
    rows = shapes(20)
    right = times(rows, {})
    measured = [time * (1.3 if index < 10 else 1 / 1.3) for index, time in enumerate(right)]
    found = fitted(tmp_path, rows, measured)
    assert not found.helps
    assert all(one.value == one.prior and not one.at_bound for one in found.constants)
    assert found.after == found.before
    assert found.cross_validated.mape is not None
    assert found.before.mape is not None
    assert found.cross_validated.mape >= found.before.mape
    assert found.residuals[0] == pytest.approx(1 / 1.3, rel=1e-4)
    assert found.residuals[2] == pytest.approx(1.3, rel=1e-4)


def test_bounds_hold_and_are_told(tmp_path: Path) -> None:
    """Runs twice as fast as products can be: the efficiency ends at the best that is ever measured."""
    rows = shapes(80, hidden=8192, layers=8)
    found = fitted(tmp_path, rows, [time / 2 for time in times(rows, {})])
    efficiency = found.constants[0]
    assert (efficiency.value, efficiency.at_bound) == (0.95, True)
    assert all(one.constant.low <= one.value <= one.constant.high for one in found.constants)


def test_flagged_runs_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    """Every run that is not used is counted with its reason."""
    rows = shapes(6)
    rows[0]["flag"] = "noisy neighbour"
    rows[1]["mbs"] = 5
    path = written(tmp_path / "runs.csv", rows, [1.0] * 6)
    found = usable(read_runs([path]))
    assert len(found.used) == 4
    assert dict(found.left_out) == {
        "flagged; --flagged keeps it": 1,
        "the global batch is no multiple of micro-batch times replicas": 1,
    }
    assert len(usable(read_runs([path]), flagged=True).used) == 5


def test_runs_of_one_layout_count_once(tmp_path: Path) -> None:
    """With the median of their times: a run that was written down eleven times is no eleven runs."""
    rows = [*shapes(4), *[shapes(1)[0]] * 10]
    found = usable(read_runs([written(tmp_path / "runs.csv", rows, [5.0, 1.0, 1.0, 1.0, *[7.0] * 10])]))
    assert [row.time for row in found.used] == [7.0, 1.0, 1.0, 1.0]
    assert dict(found.left_out) == {"another run of a layout, of which the median counts": 10}


def test_runs_of_several_machines_are_told_apart(tmp_path: Path) -> None:
    """Two devices or two profiles are refused with the remedy, and an option chooses."""
    rows = shapes(6)
    rows[0]["gpu"] = "h100-sxm-80gb"
    rows[1]["framework"] = "nanotron"
    runs = read_runs([written(tmp_path / "runs.csv", rows, [1.0] * 6)])
    with pytest.raises(SpecError, match=r"several frameworks \(megatron 5, nanotron 1\); split the file, or choose"):
        usable(runs)
    with pytest.raises(SpecError, match=r"several devices \(a100-sxm-80gb 4, h100-sxm-80gb 1\).* --device NAME"):
        usable(runs, framework="megatron")
    found = usable(runs, framework="megatron", device="a100-sxm-80gb")
    assert (found.framework, found.device, len(found.used)) == ("megatron", "a100-sxm-80gb", 4)
    assert dict(found.left_out) == {"another framework than megatron": 1, "another device than a100-sxm-80gb": 1}


def test_too_few_runs_are_refused(tmp_path: Path) -> None:
    """Two runs tell nothing, and none less."""
    rows = shapes(2)
    with pytest.raises(SpecError, match="2 usable runs are too few: 3 give a first guess"):
        fitted(tmp_path, rows, [1.0, 2.0])
    rows[0]["flag"] = rows[1]["flag"] = "doubtful"
    with pytest.raises(SpecError, match=r"none of the 2 runs can be used \(flagged; --flagged keeps it: 2\)"):
        fitted(tmp_path, rows, [1.0, 2.0])


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(10, 40))
def test_no_point_nearby_is_better(seed: int, number: int, rows: int) -> None:
    """Of errors that are linear in the logarithms: no point around the optimum and within the bounds is worth less."""
    draw = np.random.default_rng(seed)
    slopes, offsets = draw.normal(size=(number, rows)), draw.normal(size=rows)
    low, high = -draw.uniform(0, 0.5, number), draw.uniform(0, 0.5, number)
    problem = Problem(
        errors=lambda points: points @ slopes + offsets,
        parts=np.ones((1, rows), dtype=bool),
        deviations=np.full(number, 0.5),
        low=low,
        high=high,
    )

    found = optimum(problem)
    assert (low <= found).all()
    assert (found <= high).all()
    near = np.clip(found + draw.normal(size=(200, number)) * draw.choice((0.01, 0.1, 0.5), (200, 1)), low, high)
    points = np.concatenate([found, near])
    errors = problem.errors(points)
    values = objective(problem, errors[None], points[None], np.array([max(LEAST_ERROR, abs(errors[0]).mean())]))[0]
    assert values[0] <= values[1:].min() + 5e-3
