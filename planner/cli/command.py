"""What every command does around its work: outcomes become exit codes, and a bug one line instead of a traceback."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import typer
from typer.core import TyperCommand

from planner.errors import CannotExpress, NoFeasiblePlan, NoPlanInTime, Problem, SpecError

PROBLEMS, WRONG_INPUT, INFEASIBLE, NO_TIME, INEXPRESSIBLE, BUG, INTERRUPTED = 1, 2, 3, 4, 5, 70, 130
"""Exit codes beside 0."""
DISK_FULL = frozenset({errno.ENOSPC, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)})
"""What keeps a result from being written that is no fault of the planner."""


class Command(TyperCommand):
    """A command whose failures are exit codes; wrong usage is typer's, and ends with 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        if sys.stdout is None:
            say("planner: standard output is closed; results have nowhere to go\n")
            raise typer.Exit(WRONG_INPUT)
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except typer.Exit:
            raise
        except KeyboardInterrupt:
            say("planner: interrupted\n")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            silence()
            raise typer.Exit(0) from None
        except (SpecError, NoFeasiblePlan, NoPlanInTime, CannotExpress) as error:
            raise typer.Exit(failed(error)) from None
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise typer.Exit(bug(error)) from error
            silence()
            say(f"planner: standard output cannot be written: {error.strerror}\n")
            raise typer.Exit(WRONG_INPUT) from None
        except Exception as error:
            raise typer.Exit(bug(error)) from error


def failed(error: SpecError | NoFeasiblePlan | NoPlanInTime | CannotExpress) -> int:
    """Tell what went wrong, and return the exit code."""
    from planner.report.problems import no_plan_text, no_time_text, problems_text
    from planner.report.terminal import page_width

    if isinstance(error, SpecError):
        say(problems_text(error.problems))
        return WRONG_INPUT
    if isinstance(error, CannotExpress):
        say(problems_text([Problem(f"--to {error.target}", reason) for reason in error.reasons]))
        if error.nearest:
            say(f"planner: {error.nearest}\n")
        return INEXPRESSIBLE
    if isinstance(error, NoPlanInTime):
        say(no_time_text(error))
        return NO_TIME
    say(no_plan_text(error, page_width()))
    return INFEASIBLE


def bug(error: Exception) -> int:
    """Ask to report a bug, and return the exit code; PLANNER_DEBUG=1 shows the traceback."""
    if os.environ.get("PLANNER_DEBUG"):
        import traceback

        traceback.print_exception(error)
    text = " ".join(str(error).split())
    what = f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
    say(f"planner: this is a bug in the planner ({what}); please report it, with what PLANNER_DEBUG=1 shows\n")
    return BUG


def say(text: str) -> None:
    """Write a note to standard error, over the line of a search if there is one."""
    from contextlib import suppress

    from planner.cli.progress import ERASE, is_watched
    from planner.report.terminal import write

    if sys.stderr is not None:
        with suppress(OSError):
            if is_watched():
                sys.stderr.write(ERASE)  # a search under way may have written its line there
            write(text, sys.stderr)


def silence() -> None:
    """Let nothing more be written to standard output, whose reader has gone."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
