"""The TOML of torchtitan up to 0.2: its values by the standard library, their places by a scan of its lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from planner.configurations.forms.torchtitan.catalog import TOML, defaults
from planner.configurations.forms.torchtitan.values import judged
from planner.domain.configuration import Configuration, Setting, Spot
from planner.errors import SpecError

VERSION = "0.2.2"
"""The newest that reads TOML."""
OWN_KEYS = ("job.custom_config_module", "experimental.custom_args_module")
"""Keys that name a module with further keys, as the models of torchtitan's experiments have them."""
_TABLE = re.compile(r"\s*\[\s*([^\[\]#]+?)\s*\]")
_KEY = re.compile(r"""(\s*)((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=\s*""")
_QUOTES = ('"""', "'''")


def read_toml(text: str, name: str) -> Configuration:
    """Return what a TOML file says.

    Raises:
        SpecError: it is no TOML.
    """
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        spot = f"{name}:{place[1]}:{place[2]}" if place else name
        message = f"is no TOML: {re.sub(r' *[(]at .*[)]$', '', str(error))}; correct it there"
        raise SpecError.of(spot, message) from None
    own = next((key for key in OWN_KEYS if key.partition(".")[2] in values.get(key.partition(".")[0], ())), None)
    places = dict(key_places(text))
    settings = {
        key: Setting(name=key, value=value, spot=Spot(name, *places.get(key, (0, 0))))
        for key, value in _flat(values, ())
    }
    return Configuration(
        form="torchtitan",
        origin=name,
        version=VERSION,
        settings=settings,
        defaults=defaults(TOML),
        findings=judged(settings, TOML, own=own is not None),
        notes=(f"{own} adds keys of its own, so that keys which torchtitan does not have are left alone",)
        if own
        else (),
    )


def key_places(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield (dotted key, (line, column)) of everything that TOML text sets, counted from 1.

    The text is sound TOML. Keys of inline tables stand where their table does; lines inside of texts and lists that go
    over several lines are passed over.
    """
    table: tuple[str, ...] = ()
    waiting = ""  # what has to come before keys are read again: closing quotes or brackets
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        if waiting:
            waiting = "" if waiting in line else waiting
            continue
        if depth > 0:
            depth += _nesting(line)
            continue
        if found := _TABLE.match(line):
            table = _parts(found[1])
        elif found := _KEY.match(line):
            yield ".".join((*table, *_parts(found[2]))), (number, len(found[1]) + 1)
            rest = line[found.end() :]
            quotes = next((mark for mark in _QUOTES if rest.startswith(mark)), "")
            waiting = quotes if quotes and quotes not in rest[3:] else ""
            depth = 0 if quotes else _nesting(rest)


def _nesting(line: str) -> int:
    """Return by how many brackets a line opens more than it closes, texts and comments apart."""
    bare = re.sub(r""""(?:[^"\\]|\\.)*"|'[^']*'""", "", line).partition("#")[0]
    return bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _flat(values: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) of every value below tables."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, (*above, key))
        else:
            yield ".".join((*above, key)), value
