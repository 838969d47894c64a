"""Where results go: standard output, or a file that is written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.errors import SpecError
from planner.loader import dump_yaml
from planner.report.terminal import write
from planner.specs.files import write_whole

STDOUT = "-"
"""Output that is standard output."""


def refuse_unwritable(output: str | None) -> None:
    """Stop before a long search if the file could not be written after it.

    Raises:
        SpecError: the file's folder does not exist, or the file is a folder.
    """
    if output in {None, STDOUT}:
        return
    if not output:
        raise SpecError.of("--output", "is empty; name a file, or - for standard output")
    path = Path(output)
    try:
        is_folder, has_folder = path.is_dir(), path.parent.is_dir()
    except (OSError, ValueError) as error:
        raise SpecError.of(output[:80], f"cannot be a file's name: {error.__class__.__name__}") from None
    if is_folder:
        raise SpecError.of(output, "is a folder; name a file in it")
    if not has_folder:
        raise SpecError.of(output, f"there is no folder {path.parent}; create it or write elsewhere")


def write_record(record: Mapping[str, Any], output: str, *, as_json: bool = False) -> None:
    """Write a spec to a file, as JSON if its name says so, or to standard output."""
    if as_json or output.lower().endswith(".json"):
        text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    else:
        text = _one_key_a_line(record)
    if output == STDOUT:
        write(text)
    else:
        write_whole(output, text)


def _one_key_a_line(record: Mapping[str, Any]) -> str:
    """Return a record as YAML to be edited; a flat one, too, which would be written on one line by itself."""
    return dump_yaml({**record, "_": []}).removesuffix("_: []\n")
