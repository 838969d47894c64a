"""``planner plan --watch``: plan, and plan again whenever one of the files changes, until the user ends it."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.command import say
from planner.cli.options import Format

if TYPE_CHECKING:
    from planner.cli.files import Files
    from planner.cli.planning import Request
    from planner.report.difference import Side

CLEAR = "\x1b[H\x1b[2J"
"""Empties the terminal's page (ECMA-48: cursor position, erase in page); what was scrolled away stays."""
LEADS = {Format.text: "\n", Format.json: "", Format.yaml: "---\n"}
"""What stands before a further document where pages are not cleared: JSON documents need nothing between them."""


def watch(request: Request) -> None:
    """Plan whenever a file changes; that nothing was found is told, and the next change awaited.

    Raises:
        KeyboardInterrupt: the user ends it: there is no other end.
        Exit: the user ended it during a search, whose best plan is shown.
        SpecError: a file cannot be read twice or would be written, or options alone are wrong.

    """
    from planner.cli.files import Files, FilesChanged

    _refuse_unwatchable(request)
    before: Side | None = None
    names: tuple[str, ...] = ()
    with _interrupts() as interrupted:
        while True:
            files = Files(sources(request))
            try:
                before = _round(request, files, before, names)
            except FilesChanged as change:
                names = change.names
            else:
                if interrupted:
                    raise KeyboardInterrupt
                say(f"planner: watching {_listed(files.names)}; Ctrl-C ends it\n")
                names = files.wait()
            if _clears():
                sys.stdout.write(CLEAR)
                sys.stdout.flush()
            say(f"planner: {_listed(names)} changed\n")


def sources(request: Request) -> tuple[str, ...]:
    """Return the files that are read for a request."""
    from planner.specs.named import cluster_files, model_file

    cluster = () if request.cluster is None else cluster_files(request.cluster)
    # a model that is a folder now may be a file when it is looked at again
    model = () if request.model is None else dict.fromkeys((model_file(request.model), request.model))
    return (*(name for name in (request.like, *model, request.job) if name is not None), *cluster)


def _round(request: Request, files: Files, before: Side | None, changed: Sequence[str]) -> Side | None:
    """Plan once, and return the plan as what the next one is compared with, or `before` if there is none.

    Args:
        request: what is asked.
        files: what is given up for when it changes.
        before: the last plan that was found.
        changed: names of the files that have changed; none the first time.

    Raises:
        FilesChanged: a file changed before there was a plan.
        Exit: the search was interrupted.
        SpecError: the first time, if options alone are wrong: no file mends that.

    """
    from planner.cli.files import Until
    from planner.cli.planning import end_if_interrupted, find, found_side, read, show, told
    from planner.cli.progress import progress
    from planner.errors import NoFeasiblePlan, NoPlanInTime, SpecError
    from planner.report.difference import difference_line
    from planner.report.layout import cut
    from planner.report.terminal import page_width

    lead = "" if _clears() or not (changed or request.form is Format.yaml) else LEADS[request.form]
    try:
        with progress() as reporter:
            until = Until(reporter, files)
            inputs = read(request, until)
            outcome = find(request, inputs, until)
        show(request, inputs, outcome, lead)
    except (SpecError, NoFeasiblePlan, NoPlanInTime) as error:
        if not changed and isinstance(error, SpecError) and all(one.place.startswith("--") for one in error.problems):
            raise
        told(request, error, lead)
        if before is not None and request.output:
            say(f"planner: {request.output} is left as it was\n")
        return before
    end_if_interrupted(request, outcome)
    now = found_side(inputs, outcome)
    if before is not None:
        say(cut(f"planner: {difference_line(before, now)}", page_width()) + "\n")
    return now


def _refuse_unwatchable(request: Request) -> None:
    """Stop where files cannot be watched.

    Raises:
        SpecError: one of them is read only once, or would be written.

    """
    from planner.errors import Problem, SpecError

    if request.output == "-":
        raise SpecError.of("--output", "- cannot hold plan after plan; with --watch name a file that each one replaces")
    problems = [
        Problem("--watch", f"`{name}` is read once and cannot be watched; save what it gives to a file and name that")
        for name in (request.cluster, request.model, request.like, request.job)
        if name is not None and _is_read_once(name)
    ]
    if problems:
        raise SpecError(problems)
    written = request.output and os.path.realpath(request.output)
    for name in sources(request):
        if os.path.realpath(name) == written:
            raise SpecError.of("--output", f"{name} is watched, and writing it would be a change; write elsewhere")


def _is_read_once(name: str) -> bool:
    """Return whether a source is standard input, a pipe or the like."""
    if name == "-":
        return True
    try:
        mode = Path(name).stat().st_mode
    except (OSError, ValueError):
        return False  # there is no such file yet, or it is a one-liner
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Note interrupts by the user: where a plan is found already, what is interrupted may leave no other trace."""
    noted: list[int] = []

    def note(number: int, _frame: Any) -> None:
        noted.append(number)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield noted  # somebody else listens, or interrupts are ignored
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _clears() -> bool:
    """Whether a plan takes the place of the last one: on a terminal."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
