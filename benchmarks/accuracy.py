"""Judges every measured run in tests/accuracy/data and writes down what the predictions err by.

Two files come of it: docs/accuracy.md to be read, and planner/catalog/errors.yaml, which every prediction carries with
it. Rows that constants were fitted to and rows that were held out (benchmarks/splits.yaml) are never mixed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import fmean
from typing import Any

from planner.accuracy.causes import causes
from planner.accuracy.errors import Errors
from planner.accuracy.judge import judge_runs
from planner.accuracy.judged import Judged
from planner.accuracy.measures import Figures, figures
from planner.accuracy.runs import read_runs
from planner.accuracy.track import track_document, track_record
from planner.accuracy.uncalibrated import uncalibrated
from planner.domain.confidence import LEAST_ROWS, Spread, TrackRecord
from planner.loader import dump_yaml, load
from planner.specs.job import HEADROOM

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "accuracy" / "data"
SPLITS = ROOT / "benchmarks" / "splits.yaml"
PAGE = "docs/accuracy.md"
ERRORS = "planner/catalog/errors.yaml"
TEMPLATE = ROOT / "benchmarks" / "accuracy.template.md"
"""The page without its tables."""
FAR_OFF = 0.2
"""[-] error from which on a prediction counts as poor."""

HEAD = """\
# What predictions err by; `make accuracy` writes this file from tests/accuracy/data, and a test holds it to them.
#
# `held_out`: runs that nothing was fitted to, without flagged ones, by profile and chip ('' for all chips) where there
# are at least {least}; `p10`, `p50` and `p90` are percentiles of measured / predicted. `measured`: all runs without a
# flag whose time was compared, those that constants were fitted to included.

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The runs of one file, judged twice, those of the calibration first."""

    title: str
    calibration: tuple[Judged, ...]
    test: tuple[Judged, ...]
    plain_calibration: tuple[Judged, ...]
    plain_test: tuple[Judged, ...]
    """The test rows, uncalibrated."""


def read_sources() -> tuple[Source, ...]:
    """Return the judged runs of every file of the table of splits."""
    table: list[dict[str, Any]] = load(SPLITS.read_text(encoding="utf-8"), SPLITS.name).value
    return tuple(_source(**row) for row in table)


def _source(file: str, title: str, calibration: Sequence[Mapping[str, Sequence[str]]] = ()) -> Source:
    runs = read_runs([str(DATA / file)])
    fitted = [any(_matches(run.row, patterns) for patterns in calibration) for run in runs]

    def part(judged: Iterable[Judged], *, of: bool) -> tuple[Judged, ...]:
        return tuple(one for one, is_fitted in zip(judged, fitted, strict=True) if is_fitted is of)

    judged, plain = judge_runs(runs, HEADROOM), judge_runs(runs, HEADROOM, uncalibrated)
    return Source(
        title=title,
        calibration=part(judged, of=True),
        test=part(judged, of=False),
        plain_calibration=part(plain, of=True),
        plain_test=part(plain, of=False),
    )


def _matches(row: Mapping[str, str], patterns: Mapping[str, Sequence[str]]) -> bool:
    return all(any(fnmatchcase(row[column], one) for one in wanted) for column, wanted in patterns.items())


def errors_text(record: TrackRecord) -> str:
    """Return the file of errors that predictions carry with them."""
    return HEAD.format(least=LEAST_ROWS) + dump_yaml(track_document(record))


def page(sources: Sequence[Source], record: TrackRecord) -> str:
    """Return the page on accuracy."""
    judged = [one for source in sources for one in (*source.calibration, *source.test)]
    return TEMPLATE.read_text(encoding="utf-8").format(
        headroom=HEADROOM,
        least=LEAST_ROWS,
        far_off=FAR_OFF,
        rows=_rows(sources),
        time=_parts(sources, "rows|MAPE|median|bias|p10|p90|Spearman|regret", _time),
        memory=_parts(sources, "rows|MAPE|median|bias|p10|p90", lambda part: _errors(part.memory)),
        fit=_parts(sources, "rows|right|false fits|false OOMs|picks|picks out of memory|regret", _fit),
        profiles=_profiles(record),
        causes=_causes(judged),
        skipped=_skipped(judged),
    )


def _rows(sources: Sequence[Source]) -> str:
    """Return how many rows of each source are of which part, and what keeps some of them out of the figures."""
    rows = [
        [
            source.title,
            what,
            str(len(part)),
            str(len(part) - len(_healthy(part))),
            str(sum(not one.reason for one in part)),
        ]
        for source in sources
        for what, part in (("calibration", source.calibration), ("test", source.test))
        if part
    ]
    return _table(["source", "of", "rows", "flagged", "judged"], rows)


def _parts(sources: Sequence[Source], head: str, cells: Callable[[Figures], list[str]]) -> str:
    """Return a table with the parts of each source, and of all sources together, of which something is known."""
    whole = Source(
        title="all",
        **{
            name: tuple(one for source in sources for one in getattr(source, name))
            for name in ("calibration", "test", "plain_calibration", "plain_test")
        },
    )
    rows = []
    for source in (*sources, whole):
        found = [(name, cells(figures(part))) for name, part in _cuts(source)]
        shown = [[name, *texts] for name, texts in found if texts]
        rows += [[source.title if index == 0 else "", *row] for index, row in enumerate(shown)]
    return _table(["source", "of", *head.split("|")], rows)


def _cuts(source: Source) -> list[tuple[str, list[Judged]]]:
    """Return the parts of a source that the tables tell apart; all rows only where some are flagged."""
    healthy = {
        "calibration": _healthy(source.calibration),
        "calibration, uncalibrated": _healthy(source.plain_calibration),
        "test": _healthy(source.test),
        "test, uncalibrated": _healthy(source.plain_test),
    }
    cuts = list(healthy.items())
    if len(healthy["calibration"]) < len(source.calibration):
        cuts.insert(2, ("calibration, all rows", list(source.calibration)))
    if len(healthy["test"]) < len(source.test):
        cuts.append(("test, all rows", list(source.test)))
    return cuts


def _healthy(judged: Iterable[Judged]) -> list[Judged]:
    return [one for one in judged if not one.run.flag]


def _time(part: Figures) -> list[str]:
    order = part.ranking
    rank = "-" if order.spearman is None else f"{order.spearman:.2f}"
    return [*_errors(part.time), rank, _share(order.top1_regret)] if part.time.rows else []


def _errors(errors: Errors) -> list[str]:
    sizes = [_share(errors.mape), _share(errors.median_ape)]
    signed = ["-" if share is None else f"{share:+.1%}" for share in (errors.bias, errors.p10, errors.p90)]
    return [str(errors.rows), *sizes, *signed] if errors.rows else []


def _fit(part: Figures) -> list[str]:
    fit, choice = part.fit, part.choice
    shares = [_share(fit.accuracy), _share(fit.false_fit), _share(fit.false_oom)]
    picks = [f"{choice.picks} of {choice.groups}", _share(choice.oom_picks), _share(choice.regret)]
    return [str(fit.rows), *shares, *(picks if choice.groups else ["-"] * 3)] if fit.rows else []


def _profiles(record: TrackRecord) -> str:
    def cells(spread: Spread | None) -> list[str]:
        if spread is None:
            return ["-"] * 5
        sizes = [_share(spread.mape), _share(spread.median_ape)]
        return [str(spread.rows), *sizes, f"{spread.p50:.2f}", f"{spread.p10:.2f} to {spread.p90:.2f}"]

    head = ["rows", "MAPE", "median", "p50", "p10 to p90"]
    rows = [
        [row.profile, row.chip or "all", what, *cells(spread)]
        for row in record.held_out
        for what, spread in (("time", row.time), ("memory", row.memory))
        if spread
    ]
    return _table(["profile", "chip", "of", *head], rows)


def _causes(judged: Sequence[Judged]) -> str:
    parts: dict[str, list[float]] = defaultdict(list)
    for one, cause in zip(judged, causes(judged, HEADROOM), strict=True):
        if cause and one.step_time and one.run.step_time:
            parts[cause].append(abs(one.step_time / one.run.step_time - 1))
    ordered = sorted(parts.items(), key=lambda item: (-fmean(item[1]), item[0]))
    rows = [
        [cause, str(len(found)), str(sum(error > FAR_OFF for error in found)), _share(fmean(found))]
        for cause, found in ordered
    ]
    return _table(["cause", "rows", "far off", "MAPE"], rows)


def _skipped(judged: Sequence[Judged]) -> str:
    reasons = Counter(one.reason for one in judged if one.reason)
    rows = [[reason, str(number)] for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))]
    total = f"\n{sum(reasons.values())} of {len(judged)} rows.\n"
    return _table(["reason", "rows"], rows) + total


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> int:
    """Judge, write, and say where; return the exit code."""
    parser = argparse.ArgumentParser(description="Writes what predictions err by on measured runs.")
    parser.add_argument("--into", type=Path, default=ROOT, help="folder in which both files are written")
    into: Path = parser.parse_args().into
    sources = read_sources()
    judged = [one for source in sources for one in (*source.calibration, *source.test)]
    record = track_record(judged, [one for source in sources for one in source.test])
    for name, text in ((PAGE, page(sources, record)), (ERRORS, errors_text(record))):
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
