"""What was fitted to measured runs and how much it helps, as tables and as stable JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.accuracy.errors import Errors
from planner.calibration.fit import PER_CONSTANT, Fit, Fitted
from planner.report.figures import count, percent, plural
from planner.report.layout import SEPARATOR, WIDTH, labelled, table, worded
from planner.report.to_json import FORMAT_VERSION

POOR = 0.25
"""[-] error on runs that were not fitted from which on a calibration is called poor."""


def calibration_text(fit: Fit, *, kept: bool, width: int = WIDTH) -> str:
    """Return constants, errors and the rows that were used; `kept` tells whether a file is written."""
    rows = fit.rows
    total = len(rows.used) + sum(number for _, number in rows.left_out)
    used = f"{count(len(rows.used))} of {plural(total, 'row')} used: {rows.framework} on {rows.device}"
    constants = ["constant", "prior", "fitted", "change", "bounds", ""]
    errors = ["error", "MAPE", "median", "bias"]
    lines = [
        *labelled("runs", used, width),
        "",
        *table(
            constants, [_constant(one, fit, at) for at, one in enumerate(fit.constants, 1)], right="prior,fitted,change"
        ),
        "",
        *table(errors, _errors(fit), right=",".join(errors[1:])),
        "",
        *labelled("result", _result(fit), width),
    ]
    if rows.left_out:
        head, reasons = ["left out", "because"], [[count(number), reason] for reason, number in rows.left_out]
        lines += ["", *worded(head, reasons, width - len(SEPARATOR), right="left out")]
    use = f"planner plan cluster.yaml MODEL, which then takes --framework {rows.framework} by itself"
    lines += ["", *labelled("next", use if kept else f"-o cluster.yaml keeps this, for {use}", width)]
    return "\n".join(lines) + "\n"


def _constant(one: Fitted, fit: Fit, place: int) -> list[str]:
    bounds = f"{one.constant.low:g} to {one.constant.high:g}"
    if not one.free:
        return [one.constant.key, f"{one.prior:g}", "", "", bounds, f"kept: needs {PER_CONSTANT * place} runs"]
    if not fit.helps:
        return [one.constant.key, f"{one.prior:g}", "", "", bounds, "kept"]
    return [
        one.constant.key,
        f"{one.prior:g}",
        f"{one.value:g}",
        f"{one.factor - 1:+.1%}",
        bounds,
        "at its bound" if one.at_bound else "",
    ]


def _errors(fit: Fit) -> list[list[str]]:
    rows = [("before", fit.before), ("after", fit.after), ("cross-validated", fit.cross_validated)]
    return [[name, _share(errors.mape), _share(errors.median_ape), _signed(errors.bias)] for name, errors in rows]


def _share(share: float | None) -> str:
    return "-" if share is None else percent(share)


def _signed(share: float | None) -> str:
    return "-" if share is None else f"{share:+.1%}"


def _result(fit: Fit) -> str:
    low, middle, high = fit.residuals
    runs = "runs that were not fitted" if fit.helps else "the runs"
    spread = f"{runs} took {low:.2f} to {high:.2f} of the predicted time (p10 to p90), median {middle:.2f}"
    if not fit.helps:
        spread = f"the priors stay: what is fitted to some of the runs predicts the others no better; {spread}"
    left = fit.cross_validated if fit.helps else fit.before
    if (left.mape or 0.0) > POOR:
        return f"{spread}; POOR: look for a wrong framework, device or unit in the rows before you plan with it"
    return spread


def calibration_document(fit: Fit, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same for programs; `record` is the cluster file."""
    return {
        "format_version": FORMAT_VERSION,
        "framework": fit.rows.framework,
        "device": fit.rows.device,
        "rows": len(fit.rows.used),
        "left_out": [{"reason": reason, "count": number} for reason, number in fit.rows.left_out],
        "helps": fit.helps,
        "constants": [
            {
                "key": one.constant.key,
                "free": one.free,
                "prior": float(one.prior),
                "fitted": float(one.value),
                "low": one.constant.low,
                "high": one.constant.high,
                "at_bound": one.at_bound,
            }
            for one in fit.constants
        ],
        "error_before": _figures(fit.before),
        "error_after": _figures(fit.after),
        "error_cross_validated": _figures(fit.cross_validated),
        "residuals": dict(zip(("p10", "p50", "p90"), fit.residuals, strict=True)),
        "cluster": dict(record),
    }


def _figures(errors: Errors) -> dict[str, float | None]:
    return {"mape": errors.mape, "median": errors.median_ape, "bias": errors.bias}
