"""The files that are read for what a user names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.errors import SpecError
from planner.loader import parse
from planner.specs.cluster import is_one_liner
from planner.specs.files import read_text
from planner.specs.model import CONFIG


def cluster_files(source: str) -> tuple[str, ...]:
    """Return the files of a cluster: its own and the profiles that it names; none of a one-liner.

    A file that cannot be read, or is wrong, names no others.
    """
    if is_one_liner(source):
        return ()
    try:
        value = parse(*read_text(source)).value
    except SpecError:
        return (source,)
    folder = Path(source).parent
    return (source, *(str(folder / name) for name in _profiles(value)))


def model_file(source: str) -> str:
    """Return the file of a model: the configuration in a folder."""
    return str(Path(source) / CONFIG) if Path(source).is_dir() else source


def _profiles(value: Any) -> list[str]:
    """Return the files of profiles that a cluster as written names, in its order, each once."""
    groups = value.get("groups") if isinstance(value, dict) else None
    blocks = [group.get("profile") for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []
    names = [block.get("file") for block in blocks if isinstance(block, dict)]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))
