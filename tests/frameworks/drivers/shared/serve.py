"""Puts questions to a framework, in the framework's own environment: `.../NAME/bin/python serve.py NAME`.

Reads one request a line from standard input, JSON with an `id` of the caller's and what the driver of the framework
asks for; writes one answer a line to standard output, in the same order:

    {"id": ..., "accepted": true, "message": "", "facts": {...}}     taken; facts are what it makes of it
    {"id": ..., "accepted": false, "message": "...", "facts": {}}    it is refused, in the framework's own words
    {"id": ..., "error": "..."}                                      driver or framework broke: no judgement

Many requests share one process, since a framework takes seconds to import. What a framework prints goes to standard
error. A driver that cannot be imported ends the process with an exit code other than 0.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TextIO


def _answer(driver: object, request: dict[str, object]) -> dict[str, object]:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            facts = driver.answer(request)
    except driver.REFUSALS as refusal:
        return {"id": request["id"], "accepted": False, "message": _words(refusal, printed.getvalue()), "facts": {}}
    except BaseException:  # a request that breaks a framework must not take the others along
        return {"id": request["id"], "error": traceback.format_exc(limit=-8)}
    finally:
        sys.stderr.write(printed.getvalue())
    return {"id": request["id"], "accepted": True, "message": "", "facts": facts}


def _words(refusal: BaseException, printed: str) -> str:
    """What was said; what was printed, of one that ends the process; or the line of a bare assert."""
    if isinstance(refusal, SystemExit):
        return f"SystemExit: {printed[-2000:].strip()}"
    if str(refusal):
        return f"{type(refusal).__name__}: {refusal}"
    place = traceback.extract_tb(refusal.__traceback__)[-1]
    return f"{type(refusal).__name__} in {place.name}: {place.line}"


def _driver(name: str) -> object:
    """Loads it by path: its folder on the path would hide the frameworks, whose names the drivers have."""
    spec = importlib.util.spec_from_file_location(f"driver_{name}", Path(__file__).parents[1] / f"{name}.py")
    driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(driver)
    return driver


def _own_streams() -> tuple[TextIO, TextIO]:
    """Keeps standard input and output for requests and answers alone.

    Whatever else writes to standard output, C code too, lands on standard error; and a framework that calls exit()
    closes sys.stdin.
    """
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    sys.stdin = io.StringIO()
    return requests, answers


def main() -> None:
    """Answers until the requests end."""
    requests, answers = _own_streams()
    driver = _driver(sys.argv[1])
    for line in requests:
        print(json.dumps(_answer(driver, json.loads(line)), sort_keys=True), file=answers)


if __name__ == "__main__":
    main()
