"""Fits the constants of a machine to runs, and judges the fit on runs that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from planner.accuracy.batch import Batch, batches
from planner.accuracy.errors import Errors, errors, percentile
from planner.calibration.batch import step_times
from planner.calibration.constants import Constant, constants
from planner.calibration.optimum import Problem, optimum
from planner.calibration.rows import Rows
from planner.costs.uniform import Uniform
from planner.errors import SpecError

FEWEST = 3
"""[runs] from which on anything is fitted: one anchor makes predictions worse as often as better."""
PER_CONSTANT = 10
"""[runs] for each constant that is free; with fewer the first alone is, and the prior leaves little of its change."""
FOLDS = 5
AT_BOUND = 0.02
"""[-] share of a bound, within which of it a value is said to be at it."""
DIGITS = 3
"""Of a value that is kept: runs do not tell more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What became of a constant, in the unit of its key."""

    constant: Constant
    free: bool
    """Whether there were runs enough to fit it."""
    prior: float
    value: float

    @property
    def factor(self) -> float:
        """[-] on the prior."""
        return self.value / self.prior

    @property
    def at_bound(self) -> bool:
        """Whether the value is as far from its prior as it may be."""
        if self.value < self.prior:
            return self.value < self.constant.low * (1 + AT_BOUND)
        return self.value > max(self.prior, self.constant.high * (1 - AT_BOUND))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What runs say."""

    rows: Rows
    constants: tuple[Fitted, ...]
    """All that matter; where the fit does not help, their values are the priors."""
    helps: bool
    """Whether the fit predicts runs that it has not seen better than the priors do."""
    before: Errors
    after: Errors
    cross_validated: Errors
    """Of fits to other runs, whether it helps or not."""
    residuals: tuple[float, float, float]
    """[-] 10th, 50th and 90th percentile of measured / predicted, on runs that were not fitted."""


def fit(rows: Rows) -> Fit:
    """Return what the runs say of their machine.

    Raises:
        SpecError: there are too few.

    """
    _refuse_few(rows)
    layouts, measured = [row.setting.layout for row in rows.used], [row.time for row in rows.used]
    known = constants(layouts)
    free = known[: max(1, len(measured) // PER_CONSTANT)]
    priors = {one.key: one.value(_largest(layouts, one)) for one in known}
    found = batches([row.setting for row in rows.used])
    logarithms, unseen = _cross_validated(found, measured, free, priors)
    before = _times(found, free, [0.0] * len(free))
    error_before, error_unseen = _errors(before, measured), _errors(unseen, measured)
    assert error_before.mape is not None, "there are runs"
    assert error_unseen.mape is not None, "there are runs"
    helps = error_unseen.mape < error_before.mape
    values = priors | {
        one.key: _rounded(priors[one.key] * exp(logarithm))
        for one, logarithm in zip(free, logarithms, strict=True)
        if helps
    }
    fitted = tuple(
        Fitted(constant=one, free=one in free, prior=priors[one.key], value=values[one.key]) for one in known
    )
    after = _times(found, free, [log(one.factor) for one in fitted if one.free])
    return Fit(
        rows=rows,
        constants=fitted,
        helps=helps,
        before=error_before,
        after=_errors(after, measured),
        cross_validated=error_unseen,
        residuals=_residuals(unseen if helps else before, measured),
    )


def _largest(layouts: Sequence[Uniform], constant: Constant) -> Uniform:
    """Return the layout whose figures the cluster file gets: of the most nodes, where `constant` matters."""
    return max(filter(constant.matters, layouts), key=lambda layout: layout.group.num_nodes)


def _refuse_few(rows: Rows) -> None:
    """Stop where runs are too few to tell anything.

    Raises:
        SpecError: they are.

    """
    if len(rows.used) >= FEWEST:
        return
    left_out = "".join(f"; left out: {reason}, {number}" for reason, number in rows.left_out)
    message = (
        f"{len(rows.used)} usable runs are too few: {FEWEST} give a first guess at the speed of matrix products, and "
        f"each constant needs {PER_CONSTANT}; measure more layouts{left_out}"
    )
    raise SpecError.of("", message)


def _cross_validated(
    found: Sequence[Batch], measured: Sequence[float], free: Sequence[Constant], priors: dict[str, float]
) -> tuple[list[float], list[float]]:
    """Return the logarithms of the factors fitted to all runs, and each run's time [s] by a fit to others.

    A fold is a block of neighbouring rows, not every fifth: files list runs that are nearly alike one after another,
    and a run beside its twin is not unseen.
    """
    import numpy as np

    number = len(measured)
    folds = min(FOLDS, number)
    fold_of = np.arange(number) * folds // number
    logarithms = np.log(measured)
    points = optimum(
        Problem(
            errors=lambda points: np.log(step_times(found, free, points)) - logarithms,
            parts=np.vstack([np.ones(number, dtype=bool), *(fold_of != fold for fold in range(folds))]),
            deviations=np.array([one.deviation for one in free]),
            low=np.array([log(min(1.0, one.low / priors[one.key])) for one in free]),
            high=np.array([log(max(1.0, one.high / priors[one.key])) for one in free]),
        )
    )
    unseen = step_times(found, free, points[1:])[fold_of, np.arange(number)]
    return points[0].tolist(), unseen.tolist()


def _times(found: Sequence[Batch], free: Sequence[Constant], point: Sequence[float]) -> list[float]:
    import numpy as np

    times: list[float] = step_times(found, free, np.array([point]))[0].tolist()
    return times


def _errors(predicted: Sequence[float], measured: Sequence[float]) -> Errors:
    return errors(list(zip(predicted, measured, strict=True)))


def _residuals(predicted: Sequence[float], measured: Sequence[float]) -> tuple[float, float, float]:
    ratios = sorted(time / guess for guess, time in zip(predicted, measured, strict=True))
    low, middle, high = (percentile(ratios, share) for share in (0.1, 0.5, 0.9))
    assert low is not None, "there are runs"
    assert middle is not None, "there are runs"
    assert high is not None, "there are runs"
    return low, middle, high


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
