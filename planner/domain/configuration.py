"""What somebody's launch configuration says, in its framework's own words, and what is found to be wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ERROR, WARNING, NOTE = "error", "warning", "note"
"""How much a finding matters: the run fails or is not what was meant; it works but hurts; good to know."""
SEVERITIES = (ERROR, WARNING, NOTE)


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file; lines and columns are counted from 1, and 0 where they are not known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        """Return ``file:line:column`` as far as it is known."""
        return ":".join([self.file, *(str(part) for part in (self.line, self.column) if part)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One value of a configuration."""

    name: str
    """As written: ``--tensor-model-parallel-size``, ``parallelism.tensor_parallel_degree``."""
    value: Any
    """Plain: number, text, truth, None, or a list or mapping of them."""
    spot: Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to be said about a configuration or a plan."""

    code: str
    """Stable, as in ``planner explain MG101``."""
    severity: str
    """One of `SEVERITIES`."""
    spot: Spot
    key: str
    """The setting that it is about; empty if it is about all."""
    message: str
    """What is wrong, with the legal values, and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A configuration, read; nothing in it needs to make sense: that is what rules find out."""

    form: str
    """Name of its kind (see `planner.configurations.FORMS`)."""
    origin: str
    """Name of the file."""
    version: str = ""
    """Of the framework, as the user said it, else as the kind of file tells it; empty: the newest that is known."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """What is written, by the framework's canonical key: Megatron's ``tensor_model_parallel_size``, others dotted."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """What the framework takes where a key is not written."""
    environment: Mapping[str, Setting] = field(default_factory=dict)
    """Variables that it sets for the run, as far as they are known to matter; never others, which may be secrets."""
    world: Setting | None = None
    """Number of ranks, where the configuration or its launcher says it."""
    nodes: tuple[tuple[str, int], ...] = ()
    """(kind, ranks) of nodes of a kind that follow one another, in the order of the ranks, where that is said."""
    findings: tuple[Finding, ...] = ()
    """What was wrong already with its text: unknown flags, values of a wrong kind, duplicates."""
    doubtful: tuple[str, ...] = ()
    """Keys that are not written and may have another default, since a program that is not the framework's reads them:
    an error that rests on one of them is a warning."""
    notes: tuple[str, ...] = ()
    """What the reader assumed or could not resolve, in sentences."""

    def __contains__(self, key: str) -> bool:
        """Return whether `key` is written."""
        return key in self.settings

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`: as written, else the framework's default, else `default`."""
        found = self.settings.get(key)
        return found.value if found else self.defaults.get(key, default)

    def number(self, key: str, default: int = 0) -> int:
        """Return the whole number at `key`; `default` where it is neither written nor known, or is no number."""
        value = self.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def on(self, key: str) -> bool:
        """Return whether the switch `key` is on."""
        return bool(self.get(key, default=False))

    def spot(self, *keys: str) -> Spot:
        """Return where the first of `keys` that is written stands, else the file alone."""
        return next((self.settings[key].spot for key in keys if key in self.settings), Spot(self.origin))

    def name(self, key: str) -> str:
        """Return `key` as it is written, else as it is known."""
        return self.settings[key].name if key in self.settings else key


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A rule, for a reader."""

    code: str
    title: str
    summary: str
    """What holds of what passes."""
    why: str
    severity: str
    of: tuple[str, ...]
    """Whose rule it is: ``plan``, or the forms that it holds for, first the one whose versions are told."""
    versions: str = ""
    source: str = ""
    caught: bool = True
    """Whether the framework itself refuses."""
