"""Which kind of spec a document is, so that swapped arguments are told as such and not key by key."""

from __future__ import annotations

from planner.errors import SpecError
from planner.loader import Document

_MARKS = {"plan": ("format_version",), "cluster": ("groups",), "model": ("family", "model_type", "text_config")}
"""Kind -> keys that only it has."""


def refuse_other_kind(document: Document, wanted: str) -> None:
    """Stop if the document is plainly of another kind than `wanted`.

    Raises:
        SpecError: it is; says which.

    """
    value = document.value
    if not isinstance(value, dict) or any(key in value for key in _MARKS[wanted]):
        return
    for kind, marks in _MARKS.items():
        if any(key in value for key in marks):
            message = f"is a {kind}; name a {wanted} here" + (
                ", as CLUSTER comes before MODEL" if wanted != "plan" else ""
            )
            raise SpecError.of(document.origin, message)
