"""What targets are: formats that a plan is written in, and launchers that start what it describes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.specs.plan import PlanFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One file of an export."""

    name: str
    """Of the file in a folder; ``--only`` takes it with or without its ending."""
    text: str
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What every process runs, whoever starts it."""

    command: tuple[str, ...]
    """What follows ``torchrun ...``: a script or ``-m module``, and its arguments, unquoted."""
    environment: tuple[tuple[str, str], ...] = ()
    """(variable, value) that the plan depends on."""
    parts: tuple[Part, ...] = ()
    """Files that the command reads, beside the launch script; the first is what a reader wants to see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """A target. It never rounds: what it cannot express it refuses, with `planner.errors.CannotExpress`."""

    name: str
    """As in ``planner export PLAN --to NAME``."""
    summary: str
    """One line for listings."""
    parts: Callable[[PlanFile], tuple[Part, ...]]
    """The sound plan of a file, in the target's own form; the first part is printed where one is wanted."""
    framework: str | None = None
    """Profile of the framework that must be able to run the plan; None if any plan will do."""
    program: Callable[[PlanFile], Program] | None = None
    """What launchers start; None if the target is nothing to be started."""
    document: Callable[[PlanFile], dict[str, Any]] | None = None
    """The same as plain data, for JSON and YAML; None if the target has no other form than its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node with consecutive ranks."""

    name: str
    group: str
    device: str
    first_rank: int
    devices: tuple[int, ...]
    """Index of the device of each of its ranks, in the order of the ranks."""

    @property
    def in_order(self) -> bool:
        """Whether its i-th rank runs on its i-th device."""
        return self.devices == tuple(range(len(self.devices)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a launcher starts, and where."""

    file: PlanFile
    nodes: tuple[Node, ...]
    """In the order of their ranks."""
    program: Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """A target that starts another target's program on the nodes of the plan, each rank where the plan has it."""

    name: str
    summary: str
    parts: Callable[[Launch], tuple[Part, ...]]
    """The first part is printed where one is wanted; raises `planner.errors.CannotExpress`."""
