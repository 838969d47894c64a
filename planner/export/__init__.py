"""What plans are written for, one target a file; a new one is a file and a row of EXPORTERS or LAUNCHERS."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from planner.errors import SpecError
from planner.export.base import Exporter, Launch, Launcher, Node, Part, Program
from planner.export.frameworks.accelerate import ACCELERATE
from planner.export.frameworks.bridge import BRIDGE
from planner.export.frameworks.deepspeed import DEEPSPEED
from planner.export.frameworks.flagscale import FLAGSCALE
from planner.export.frameworks.galvatron import GALVATRON
from planner.export.frameworks.hetu import HETU
from planner.export.frameworks.megatron import MEGATRON
from planner.export.frameworks.megatron_deepspeed import MEGATRON_DEEPSPEED
from planner.export.frameworks.torchtitan import TORCHTITAN, TORCHTITAN_TOML
from planner.export.hostfile import HOSTFILE
from planner.export.launchers.jobset import JOBSET
from planner.export.launchers.ray import RAY
from planner.export.launchers.skypilot import SKYPILOT
from planner.export.launchers.slurm import SLURM
from planner.export.launchers.torchrun import TORCHRUN
from planner.export.launchers.trainjob import TRAINJOB
from planner.export.nodes import nodes_in_order
from planner.export.rank_table import RANK_TABLE

EXPORTERS: tuple[Exporter, ...] = (
    MEGATRON,
    BRIDGE,
    FLAGSCALE,
    HETU,
    GALVATRON,
    TORCHTITAN,
    TORCHTITAN_TOML,
    MEGATRON_DEEPSPEED,
    DEEPSPEED,
    ACCELERATE,
    RANK_TABLE,
    HOSTFILE,
)
LAUNCHERS: tuple[Launcher, ...] = (TORCHRUN, SLURM, JOBSET, TRAINJOB, SKYPILOT, RAY)

Target = TypeVar("Target", bound=Exporter | Launcher)


def target(name: str) -> Exporter | Launcher:
    """Return the target called `name`.

    Raises:
        SpecError: there is none.

    """
    known: Sequence[Exporter | Launcher] = (*EXPORTERS, *LAUNCHERS)
    return _named("--to", name, known)


def startable(name: str) -> Exporter:
    """Return the target called `name` whose program launchers start.

    Raises:
        SpecError: there is none that can be started.

    """
    return _named("--framework", name, [one for one in EXPORTERS if one.program])


def _named(option: str, name: str, known: Iterable[Target]) -> Target:
    from planner.specs.problems import nearest

    found = {one.name: one for one in known}
    if name not in found:
        raise SpecError.of(option, f"is {name!r}, which is no target{nearest(name, found)}")
    return found[name]


__all__ = [
    "EXPORTERS",
    "LAUNCHERS",
    "Exporter",
    "Launch",
    "Launcher",
    "Node",
    "Part",
    "Program",
    "nodes_in_order",
    "startable",
    "target",
]
