"""The single entry of YAML and JSON text: plain values, the line of each, and YAML's traps closed."""

from __future__ import annotations

import re

from planner.errors import SpecError
from planner.loader.document import MAX_BYTES, MAX_VALUES, Document, Path, dotted
from planner.loader.json_text import read_json
from planner.loader.words import scalar
from planner.loader.writing import dump_yaml
from planner.loader.yaml_text import read_yaml

__all__ = ["MAX_BYTES", "Document", "Path", "dotted", "dump_yaml", "load", "parse", "scalar"]

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ufffe\uffff\ud800-\udfff]")


def load(text: str, origin: str) -> Document:
    """Return what `text` says, YAML or JSON.

    Args:
        text: the whole text.
        origin: name of the file, for messages; JSON is expected of names that end in ``.json``.

    Raises:
        SpecError: anything is wrong with the text.

    """
    document = parse(text, origin)
    if document.problems:
        raise SpecError(document.problems)
    return document


def parse(text: str, origin: str, *, limit: int = MAX_BYTES) -> Document:
    """Return what `text` says, with what is wrong but readable left in ``problems``, to be reported with the rest.

    Args:
        text: the whole text.
        origin: name of the file, for messages; JSON is expected of names that end in ``.json``.
        limit: [bytes] that are read; more than usual only of JSON that a machine wrote.

    Raises:
        SpecError: the text cannot be read.

    """
    if len(text) > limit:
        raise SpecError.of(origin, f"is larger than {limit // 2**20} MiB; a specification is a few KiB of text")
    text = text.removeprefix("\ufeff")
    if control := _CONTROL.search(text):
        line = text.count("\n", 0, control.start()) + 1
        message = f"is not text: character {ord(control[0]):#04x} cannot stand in YAML or JSON; save it as UTF-8 text"
        raise SpecError.of(f"{origin}:{line}", message)
    values = MAX_VALUES * limit // MAX_BYTES
    document = read_json(text, origin, values) if origin.endswith(".json") or text.lstrip()[:1] == "{" else None
    document = document or read_yaml(text, origin)
    if document.value is None:
        raise SpecError.of(document.place(), "is empty; write keys and values such as `name: my-cluster`")
    return document
