"""Dumps to test with."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent / "data"
FILES = sorted(path.name for path in DATA.iterdir() if path.name != "README.md")


def dump(name: str) -> str:
    """Return the text of a dump."""
    return (DATA / name).read_text(encoding="utf-8")
