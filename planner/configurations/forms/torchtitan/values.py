"""Whether what is written is known to torchtitan, and of the kind that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.configurations.forms.torchtitan.catalog import Key, free_tables, keys, moved
from planner.domain.configuration import ERROR, Finding, Setting
from planner.specs.problems import nearest, shown

UNKNOWN, WRONG = "TT001", "TT002"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "whole": (_is_whole, "a whole number"),
    "number": (lambda value: _is_whole(value) or isinstance(value, float), "a number"),
    "text": (lambda value: isinstance(value, str), "text in quotes"),
    "switch": (lambda value: isinstance(value, bool), "true or false"),
    "texts": (_is_texts, 'a list of texts, such as ["a", "b"]'),
    "groups": (
        lambda value: isinstance(value, list) and all(_is_texts(one) for one in value),
        (
            'a list of lists of texts, one a stage, such as [["tok_embeddings", "layers.0"], ["layers.1", "norm",'
            ' "output"]]'
        ),
    ),
    "any": (lambda _: True, ""),
}
"""Kind -> (whether a value is of it, what it is in words)."""


def judged(settings: Mapping[str, Setting], version: str, *, own: bool = False) -> tuple[Finding, ...]:
    """Return what is unknown or of a wrong kind among settings.

    Args:
        settings: by their dotted keys.
        version: release whose keys they are.
        own: whether the user has added keys, so that unknown ones are none of ours to judge.
    """
    return tuple(one for one in _judged(settings, version) if not (own and one.code == UNKNOWN))


def _judged(settings: Mapping[str, Setting], version: str) -> Iterator[Finding]:
    known = keys(version)
    for key, setting in settings.items():
        if key in known:
            trouble, code = wrong(setting.value, known[key]), WRONG
        elif key.partition(".")[0] in free_tables(version):
            continue
        else:
            trouble, code = _unknown(key, version), UNKNOWN
        if trouble:
            yield Finding(code=code, severity=ERROR, spot=setting.spot, key=setting.name, message=trouble)


def wrong(value: Any, key: Key) -> str:
    """Return what is wrong with a value, and what would be right; empty if nothing is."""
    if value is None and key.may_be_empty:
        return ""
    if key.kind == "choice":
        known = ", ".join(key.of)
        near = nearest(value, key.of) if isinstance(value, str) else ""
        return "" if value in key.of else f"should be one of {known}, not {shown(value)}{near if 'did' in near else ''}"
    good, words = _KINDS[key.kind]
    return "" if good(value) else f"should be {words}, not {shown(value)}"


def _unknown(key: str, version: str) -> str:
    where = moved(key, version)
    if where:
        return f"unknown key of torchtitan {version}: {where}"
    known = keys(version)
    table, _, last = key.rpartition(".")
    same = [name for name in known if name.rpartition(".")[2] == last]
    if same:
        return f"unknown key of torchtitan {version}; did you mean {' or '.join(same[:2])}?"
    beside = [name.rpartition(".")[2] for name in known if name.rpartition(".")[0] == table]
    if not beside:
        return f"unknown key of torchtitan {version}{nearest(key, known)}"
    return f"unknown key {last} of [{table}] in torchtitan {version}{nearest(last, beside)}"
