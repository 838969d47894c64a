"""Public cases of memory: what is met stays met, and what is missed is written down and never grows."""

from __future__ import annotations

import sys

import pytest

from accuracy.memory_cases import TABLE, Run, faults, predicted, rewritten, runs, table
from builders import cluster, group
from planner.units import GIB

NUMBERS = (2, 3, 4, 6, 8, 10, 11, 12, 13, 15, 16, 17, 18, 20, 21, 22, 25, 26, 28, 29, 30, 31, 33, 34)
"""Of all cases that were gathered."""
KEYS = {
    "name",
    "cluster",
    "model",
    "layout",
    "options",
    "profile",
    "figure",
    "outcome",
    "predicted",
    "misses",
}
"""What a run may say."""
ROUNDING = 0.001
"""[-] that four digits leave open."""
DRIFT = 0.02
"""[-] by which a record may be off before it has to be renewed."""
RENEW = "pytest tests/accuracy/test_memory_cases.py --update-golden renews the records"


def test_every_case_is_judged_or_says_why_not() -> None:
    """None is left out, none stands twice, each has its source."""
    judged, others = table()["judged"], table()["not_judged"]
    assert sorted(case["id"] for case in (*judged, *others)) == [f"A{number:02}" for number in NUMBERS]
    assert all(case["source"]["ref"] and case["source"]["url"].startswith("https://") for case in (*judged, *others))
    assert all(case["runs"] for case in judged)
    assert all(case["reason"] for case in others)


def test_runs_have_names_of_their_own_and_something_to_judge() -> None:
    """A figure or an outcome, the model's source, and no miss without words."""
    found = runs()
    assert len({run.name for run in found}) == len(found)
    for run in found:
        assert run.written.keys() <= KEYS, run.name
        assert {"figure", "outcome"} & run.written.keys(), run.name
        assert run.model["source"], run.name
        assert run.written.get("misses", "x"), run.name


@pytest.mark.parametrize("run", runs(), ids=lambda run: run.name)
def test_a_case_is_met_or_missed_as_recorded(run: Run, update_golden: bool) -> None:
    """Within 15% and on the right side of the memory, or a recorded miss that has neither grown nor shrunk."""
    if update_golden:
        pytest.skip("the records are being renewed")
    assert verdict(run, predicted(run)) == ""


def test_records_are_what_is_predicted(update_golden: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """The table's figures are those of today; --update-golden rewrites them, and lets nothing get worse in silence."""
    values = [predicted(run) for run in runs()]
    changed = [
        f"{run.name}: {run.written['predicted']:g} -> {value:.4g}"
        for run, value in zip(runs(), values, strict=True)
        if abs(value - run.written["predicted"]) > DRIFT * value
    ]
    if not update_golden:
        assert not changed, RENEW
        return
    text = TABLE.read_text(encoding="utf-8")
    TABLE.write_text(rewritten(text, values), encoding="utf-8")
    with capsys.disabled():
        sys.stdout.write("\n".join(("", *changed, f"{len(changed)} of {len(values)} records changed", "")))
    assert [told for told in map(needs_person, runs(), values) if told] == [], "these need a person"


def verdict(run: Run, value: float) -> str:
    """Return what is to be done about a run that is not as recorded; empty if it is."""
    now, before = faults(run, value), faults(run, run.written["predicted"])
    shrunk = any(size > now.get(what, 0.0) + DRIFT for what, size in before.items())
    told = needs_person(run, value)
    if told or not shrunk or "misses" not in run.written:
        return told
    return f"{said(run, value)}, a smaller miss ({shown(now)}) than recorded ({shown(before)}): tighten it; {RENEW}"


def needs_person(run: Run, value: float) -> str:
    """Return what of a run must not be recorded in silence: a new miss, a larger one, one that is met."""
    now, before = faults(run, value), faults(run, run.written["predicted"])
    if "misses" not in run.written:
        return f"{said(run, value)}, which misses ({shown(now)}): say why in `misses`" if now else ""
    if not now:
        return f"{said(run, value)}, which is met: remove `misses`"
    if any(size > before.get(what, 0.0) + ROUNDING for what, size in now.items()):
        return f"{said(run, value)}, a larger miss ({shown(now)}) than recorded ({shown(before)})"
    return ""


def said(run: Run, value: float) -> str:
    """Return a run and its prediction in words."""
    return f"{run.name}: predicted {value:.4g} {run.figure['unit']}"


def shown(sizes: dict[str, float]) -> str:
    """Return faults in words."""
    return ", ".join(f"{what} by {size:.1%}" for what, size in sizes.items()) or "none"


@pytest.mark.parametrize(
    ("value", "record", "says"),
    [
        (100.0, {}, ""),
        (114.0, {}, ""),
        (116.0, {}, "misses (figure by 16.0%)"),
        (130.0, {}, "misses (figure by 30.0%, outcome by 4.0%)"),
        (80.0, {"misses": "why", "predicted": 80.0}, ""),
        (79.0, {"misses": "why", "predicted": 80.0}, "larger"),
        (81.0, {"misses": "why", "predicted": 80.0}, ""),
        (83.0, {"misses": "why", "predicted": 80.0}, "tighten"),
        (90.0, {"misses": "why", "predicted": 80.0}, "remove"),
    ],
)
def test_the_judge_by_hand(value: float, record: dict[str, object], says: str) -> None:
    """A run that took 100 GiB of 125: bands of 15%, a miss of 20% that may not grow and has to be tightened."""
    written = {"name": "x", "cluster": "1x1:card", "figure": {"value": 100, "unit": "GiB", "of": "peak"}}
    run = Run("A00", {**written, "predicted": 100.0, **record}, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("accuracy.memory_cases.read_cluster", lambda _: cluster(group(memory=125 * GIB)))
        assert says in verdict(run, value)
        assert bool(says) == bool(verdict(run, value))


def test_only_predictions_are_rewritten() -> None:
    """Words and comments stay."""
    text = "# predicted: by hand\n- {predicted: 0, x: 1}\n  predicted: 12.5\n"
    assert (
        rewritten(text, [1234.5, 0.98765]) == "# predicted: by hand\n- {predicted: 1234, x: 1}\n  predicted: 0.9877\n"
    )
