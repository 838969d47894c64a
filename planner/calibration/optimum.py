"""Bounded fits of few constants: the mean absolute logarithm of predicted / measured, and a penalty for leaving priors.

With r = log(predicted / measured), b its mean size after a fit, and x the logarithms of the factors, what is minimised
is mean |r| + A b / (2 n) sum (x / s)^2: the posterior of n / A runs whose errors are Laplace's, of scale b, so that
noisy runs move the constants less. A first fit with a usual b tells b. Each is iteratively reweighted least squares:
|r| lies below the parabola (r^2 / |r0| + |r0|) / 2 that touches it at r0, so that a step solves a small linear system.
Several fits to parts of the same runs advance together, one evaluation of the model for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ALIKE = 10
"""[runs] that tell as much as one that errs independently of the others: runs of one series err alike. On public runs
this costs little where constants are well determined, and halves the harm on unlike models where they are not."""
USUAL_ERROR = 0.1
"""[-] mean size of r at first."""
LEAST_ERROR = 0.03
"""[-] mean size of r of the best of models: few runs that happen to agree are not believed more than that."""
LEAST_RESIDUAL = 0.01
"""[-] below which residuals weigh alike: runs repeat no better, and a run that is met must not hold the others."""
DIFFERENCE = 1e-3
"""[-] of a logarithm, for slopes."""
SHARES = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.06)
"""[-] of a step that are tried, of which the best is taken; the parabolas lie above, so that steps are short."""
STEP_MAX = 0.5
"""[-] of a logarithm: beyond it a slope says little."""
STEPS = 40
TOLERANCE = 1e-4
"""[-] improvement below which a fit has ended."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Fits of the same constants to parts of the same runs."""

    errors: Callable[[Any], Any]
    """Logarithms of the factors, (points, constants) -> logarithms of predicted / measured, (points, rows)."""
    parts: Any
    """Whether a fit uses a row, (fits, rows)."""
    deviations: Any
    """Standard deviations of the priors on the logarithms, (constants,)."""
    low: Any
    """Bounds of the logarithms, (constants,); 0 lies between."""
    high: Any


def optimum(problem: Problem) -> Any:
    """Return the logarithms of the factors of each fit, (fits, constants), beginning at the priors."""
    import numpy as np

    fits = len(problem.parts)
    at = _descended(problem, np.zeros((fits, len(problem.deviations))), np.full(fits, USUAL_ERROR))
    left = (abs(problem.errors(at)) * problem.parts).sum(axis=1) / problem.parts.sum(axis=1)
    return _descended(problem, at, np.maximum(left, LEAST_ERROR))


def objective(problem: Problem, errors: Any, at: Any, scale: Any) -> Any:
    """Return what is minimised, (fits, tries), of errors (fits, tries, rows) at (fits, tries, constants).

    Args:
        problem: the fits.
        errors: r.
        at: x.
        scale: b of each fit, (fits,).

    """
    sizes = problem.parts.sum(axis=1)[:, None]
    misfit = (abs(errors) * problem.parts[:, None, :]).sum(axis=2) / sizes
    return misfit + ALIKE * scale[:, None] / (2 * sizes) * ((at / problem.deviations) ** 2).sum(axis=2)


def _descended(problem: Problem, at: Any, scale: Any) -> Any:
    """Return the points (fits, constants) to which steps from `at` lead."""
    import numpy as np

    fits, shares = np.arange(len(at)), np.array((0.0, *SHARES))[:, None]
    for _ in range(STEPS):
        steps = _steps(problem, at, scale)
        tries = np.clip(at[:, None, :] + shares * steps[:, None, :], problem.low, problem.high)
        errors = problem.errors(tries.reshape(-1, at.shape[1])).reshape(*tries.shape[:2], -1)
        values = objective(problem, errors, tries, scale)
        best = values.argmin(axis=1)
        if (values[fits, best] >= values[:, 0] - TOLERANCE).all():
            break
        at = tries[fits, best]
    return at


def _steps(problem: Problem, at: Any, scale: Any) -> Any:
    """Return the step of each fit, (fits, constants); a constant at a bound that would leave it stays."""
    import numpy as np

    fits, number = at.shape
    # Slopes are taken inwards, so that no point lies outside of the bounds.
    signs = np.where(at + DIFFERENCE > problem.high, -DIFFERENCE, DIFFERENCE)
    points = np.concatenate([at[:, None, :], at[:, None, :] + signs[:, :, None] * np.eye(number)], axis=1)
    errors = problem.errors(points.reshape(-1, number)).reshape(fits, number + 1, -1)
    steps = np.zeros_like(at)
    for fit in range(fits):
        used = problem.parts[fit]
        residuals = errors[fit, 0, used]
        slopes = ((errors[fit, 1:] - errors[fit, 0]) / signs[fit][:, None])[:, used]
        weighted = slopes / np.maximum(abs(residuals), LEAST_RESIDUAL)
        prior = ALIKE * scale[fit] / problem.deviations**2
        downhill = -((weighted * residuals).sum(axis=1) + prior * at[fit])
        inside = ((downhill < 0) | (at[fit] < problem.high)) & ((downhill > 0) | (at[fit] > problem.low))
        # Sums of products, not matrix products, whose last digits depend on the number of threads.
        curvature = (weighted[:, None, :] * slopes).sum(axis=2) + np.diag(prior)
        if inside.any():
            steps[fit, inside] = np.linalg.solve(curvature[np.ix_(inside, inside)], downhill[inside])
    return np.clip(steps, -STEP_MAX, STEP_MAX)
