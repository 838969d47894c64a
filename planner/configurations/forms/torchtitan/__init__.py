"""torchtitan: Python from 0.3 on, TOML before, and scripts that start either."""

from __future__ import annotations

import re

from planner.configurations.base import Form
from planner.configurations.forms.torchtitan.degrees import SHARD
from planner.configurations.forms.torchtitan.module import read_module
from planner.configurations.forms.torchtitan.rules import RULES
from planner.configurations.forms.torchtitan.script import is_script, read_script
from planner.configurations.forms.torchtitan.setup import setup
from planner.configurations.forms.torchtitan.toml_text import read_toml
from planner.domain.configuration import Configuration

_TOML = re.compile(r"^\s*\[(model|training|parallelism|activation_checkpoint)\]\s*(#.*)?$", re.MULTILINE)
_PYTHON = re.compile(r"^(?:from|import)\s+torchtitan\b", re.MULTILINE)


def _is_python(text: str, name: str) -> bool:
    return name.endswith(".py") or (not name.endswith(".toml") and _PYTHON.search(text) is not None)


def _recognises(text: str, name: str) -> bool:
    if is_script(text, name) and not _PYTHON.search(text):
        return True
    if _is_python(text, name):
        return _PYTHON.search(text) is not None
    return len({found[1] for found in _TOML.finditer(text)}) > 1 and not name.endswith((".yaml", ".yml", ".json"))


def _read(text: str, name: str) -> Configuration:
    if _is_python(text, name):
        return read_module(text, name)
    return read_script(text, name) if is_script(text, name) else read_toml(text, name)


TORCHTITAN = Form(
    name="torchtitan",
    summary="torchtitan: a Python module with a configuration function (0.3), TOML (before), or a launch script",
    framework="torchtitan",
    recognises=_recognises,
    read=_read,
    rules=RULES,
    setup=setup,
    fills_cluster=lambda configuration: configuration.number(SHARD, -1) == -1,
)
