"""How well predictions meet measured runs, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from planner.accuracy.errors import Errors
from planner.accuracy.measures import Accuracy, Figures
from planner.accuracy.ranking import LEAST, Key
from planner.report.figures import count, percent, plural
from planner.report.layout import SEPARATOR, WIDTH, cut, labelled, table, worded

LABEL_MAX = 32
"""[columns] of what a row is about."""
LARGE = 9.995
"""[-] share from which on no digit is shown behind the point."""
ERRORS = ["rows", "MAPE", "median", "bias", "p10", "p90"]
Rows = Sequence[tuple[str, Figures]]
"""What each row is about, and its figures."""


def accuracy_text(accuracy: Accuracy, *, groups: bool = False, width: int = WIDTH) -> str:
    """Return what predictions are worth, by source, with `groups` also by source, model and number of devices."""
    numbers = {source: number for number, (source, _) in enumerate(accuracy.sources, 1)}
    found = accuracy.all
    total = f"{plural(found.rows, 'row')} of {plural(len(numbers), 'source')}, {count(found.judged)} judged"
    lines = labelled("runs", total, width)
    lines += _tables([*_totals(accuracy), *((str(numbers[source]), part) for source, part in accuracy.sources)])
    if groups:
        lines += _tables([(_group(numbers[key[0]], key), part) for key, part in accuracy.groups])
    sources = [
        [str(numbers[source]), count(part.rows), count(part.judged), source or "not said"]
        for source, part in accuracy.sources
    ]
    lines += _listed(["source", "rows", "judged", ""], sources, width)
    reasons = [[count(number), reason] for reason, number in accuracy.skipped]
    lines += _listed(["not judged", "because"], reasons, width)
    return "\n".join([*lines, *_legend(accuracy, width)]) + "\n"


def _group(number: int, key: Key) -> str:
    _, model, devices = key
    return f"{number}, {devices or '?'} devices: {model}"


def _legend(accuracy: Accuracy, width: int) -> list[str]:
    """Return what the columns mean, as far as there is a table."""
    if not accuracy.all.judged:
        return []
    error = (
        "predicted / measured - 1: below 0 the prediction is too fast or too small. MAPE and median are of its size, "
        "bias is its mean, p10 and p90 are percentiles"
    )
    rank = (
        "Spearman's, by time per token; regret: measured time of what is predicted fastest over the measured best, "
        f"less 1. Means over groups of at least {LEAST} runs of one source, model, number of devices and sequence "
        "length"
    )
    fit = (
        f"with a head-room of {percent(accuracy.headroom)}; shares of the runs known to have run or to have run out of "
        "memory. Picks: the fastest predicted to fit, in groups where some ran and some ran out of memory"
    )
    return ["", *labelled("error", error, width), *labelled("rank", rank, width), *labelled("fit", fit, width)]


def _totals(accuracy: Accuracy) -> Iterator[tuple[str, Figures]]:
    """Return the rows over all sources; the last only where it tells more."""
    yield "all", accuracy.all
    yield "healthy: no flag", accuracy.healthy
    if accuracy.healthy_in_node.rows < accuracy.healthy.rows:
        yield "healthy, tp in a node", accuracy.healthy_in_node


def _tables(rows: Rows) -> list[str]:
    """Return the tables of time, memory and fit; what no run tells anything about is left out."""
    return [
        *_table(["time", *ERRORS, "rank", "regret"], rows, _time),
        *_table(["memory", *ERRORS], rows, lambda part: _errors(part.memory)),
        *_table(["fit", "rows", "right", "false fits", "false OOMs", "picks", "OOM picks", "regret"], rows, _fit),
    ]


def _table(head: Sequence[str], rows: Rows, cells: Callable[[Figures], list[str]]) -> list[str]:
    lines = [[cut(label, LABEL_MAX), *cells(part)] for label, part in rows if cells(part)]
    return ["", *table(head, lines, right=",".join(head[1:]))] if lines else []


def _time(part: Figures) -> list[str]:
    if not part.time.rows:
        return []
    rank = "-" if part.ranking.spearman is None else f"{part.ranking.spearman:.2f}"
    return [*_errors(part.time), rank, _share(part.ranking.top1_regret)]


def _errors(errors: Errors) -> list[str]:
    if not errors.rows:
        return []
    sizes = [_share(errors.mape), _share(errors.median_ape)]
    return [count(errors.rows), *sizes, *(_signed(share) for share in (errors.bias, errors.p10, errors.p90))]


def _fit(part: Figures) -> list[str]:
    fit, choice = part.fit, part.choice
    if not fit.rows:
        return []
    shares = [_share(fit.accuracy), _share(fit.false_fit), _share(fit.false_oom)]
    picks = f"{choice.picks} of {choice.groups}" if choice.groups else "-"
    return [count(fit.rows), *shares, picks, _share(choice.oom_picks), _share(choice.regret)]


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:,.0%}" if share >= LARGE else percent(share)


def _signed(share: float | None) -> str:
    return "-" if share is None else f"{share:+,.0%}" if share >= LARGE else f"{share:+.1%}"


def _listed(head: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a table whose last column is text, wrapped."""
    if not rows:
        return []
    return ["", *worded(head, rows, width - len(SEPARATOR), right=",".join(head[:-1]))]
