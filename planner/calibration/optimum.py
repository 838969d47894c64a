"""Bounded fits of few constants: the mean absolute logarithm of predicted / measured, and a penalty for leaving priors.

Iteratively reweighted least squares: in the logarithms the step times are smooth, and |r| lies below the parabola
(r^2 / |r0| + |r0|) / 2 that touches it at r0, so that each step solves a small linear system. Several fits to parts of
the same runs advance together, one evaluation of the model for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SPREAD = 1.0
"""[-] weighs the priors against the runs: 0.1, the mean absolute logarithm that a good fit leaves, would be right for
runs that err independently. Runs of one series err alike, so that ten of them tell as much as one: on public runs 1.0
costs nothing where constants are well determined, and halves the harm on unlike models where they are not."""
LEAST_RESIDUAL = 1e-3
"""[-] below which residuals weigh alike: runs repeat no better."""
DIFFERENCE = 1e-3
"""[-] of a logarithm, for slopes."""
SHARES = (1.0, 0.5, 0.25, 0.125, 0.03)
"""[-] of a step that are tried; the best is taken."""
STEP_MAX = 0.5
"""[-] of a logarithm: beyond it a slope says little."""
STEPS = 40
TOLERANCE = 1e-5
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

    at = np.zeros((len(problem.parts), len(problem.deviations)))
    values = _objective(problem, problem.errors(at), at)
    shares = np.array(SHARES)[:, None]
    for _ in range(STEPS):
        steps = _steps(problem, at)
        tries = np.clip(at[:, None, :] + shares * steps[:, None, :], problem.low, problem.high)
        errors = problem.errors(tries.reshape(-1, at.shape[1]))
        found = _objective(problem, errors.reshape(*tries.shape[:2], -1), tries)
        best = found.argmin(axis=1)
        fits = np.arange(len(at))
        better = found[fits, best] < values - TOLERANCE
        if not better.any():
            break
        at = np.where(better[:, None], tries[fits, best], at)
        values = np.where(better, found[fits, best], values)
    return at


def _objective(problem: Problem, errors: Any, at: Any) -> Any:
    """Return what is minimised, (fits,) of errors (fits, rows), or (fits, tries) of (fits, tries, rows)."""
    parts = problem.parts if errors.ndim == 2 else problem.parts[:, None, :]
    sizes = parts.sum(axis=-1)
    fit = (abs(errors) * parts).sum(axis=-1) / sizes
    return fit + SPREAD / (2 * sizes) * ((at / problem.deviations) ** 2).sum(axis=-1)


def _steps(problem: Problem, at: Any) -> Any:
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
        prior = SPREAD / problem.deviations**2
        downhill = -(weighted @ residuals + prior * at[fit])
        inside = ((downhill < 0) | (at[fit] < problem.high)) & ((downhill > 0) | (at[fit] > problem.low))
        curvature = weighted @ slopes.T + np.diag(prior)
        if inside.any():
            steps[fit, inside] = np.linalg.solve(curvature[np.ix_(inside, inside)], downhill[inside])
    return np.clip(steps, -STEP_MAX, STEP_MAX)
