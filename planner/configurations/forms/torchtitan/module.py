"""The Python of torchtitan from 0.3 on: a function that returns a configuration, looked at and never run."""

from __future__ import annotations

import ast

from planner.configurations.forms.torchtitan.catalog import MODULE, defaults
from planner.configurations.forms.torchtitan.statements import Draft, Reader
from planner.configurations.forms.torchtitan.values import judged
from planner.domain.configuration import Configuration
from planner.errors import SpecError

PREFERRED = ("plan", "config", "main")
"""Names of functions of which one is taken first, where a module has several."""


def read_module(text: str, name: str) -> Configuration:
    """Return what the configuration function of a Python module says.

    Raises:
        SpecError: it is no Python, or has no function that makes a configuration.
    """
    try:
        tree = ast.parse(text)
        drafts = _drafts(tree, name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        message = f"is no Python: {getattr(error, 'msg', error)}; correct it there"
        raise SpecError.of(f"{name}:{line}" if line else name, message) from None
    if not drafts:
        message = (
            "has no function that makes a torchtitan configuration, such as `def plan(): c = llama3_8b(); return c`"
        )
        raise SpecError.of(name, message)
    chosen = next((one for one in PREFERRED if one in drafts), next(iter(drafts)))
    draft = drafts[chosen]
    notes = draft.notes
    if others := [one for one in drafts if one != chosen]:
        notes = [f"{name} has several configurations; {chosen} was read, not {', '.join(others)}", *notes]
    return Configuration(
        form="torchtitan",
        origin=name,
        version=MODULE,
        settings=draft.settings,
        defaults={**defaults(MODULE), **draft.base},
        findings=judged(draft.settings, MODULE),
        notes=tuple(dict.fromkeys(notes)),
    )


def _drafts(tree: ast.Module, name: str) -> dict[str, Draft]:
    """Return what each function makes that makes a configuration."""
    reader = Reader(tree, name)
    return {found: draft for found in _candidates(tree) if (draft := reader.run(found)) is not None}


def _candidates(tree: ast.Module) -> list[str]:
    """Return the functions that may make a configuration: public ones that need no arguments."""
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and not node.name.startswith("_")
        and len(node.args.args) == len(node.args.defaults)
    ]
