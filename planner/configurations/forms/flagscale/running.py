"""The runner: rendezvous, devices of a node, what belongs to one kind of device (FS7)."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.flagscale.meshes import TYPES, meshes
from planner.domain.configuration import WARNING, Configuration

RUNNER = "FlagScale, flagscale/runner/runner_train.py and utils.py at da4935e (2025-11-13)"
HOSTFILE, BACKEND = "experiment.runner.hostfile", "experiment.runner.rdzv_backend"


def _static(configuration: Configuration) -> Iterator[Complaint]:
    several = HOSTFILE in configuration or configuration.number("experiment.runner.nnodes") > 1
    if meshes(configuration) and several and configuration.get(BACKEND, "c10d") != "static":
        key = BACKEND if BACKEND in configuration else HOSTFILE
        message = (
            "nodes get their ranks by their addresses, not in the order of the hostfile, with any other rendezvous"
        )
        yield key, f"{message}; write experiment.runner.rdzv_backend: static"


def _visible(configuration: Configuration) -> Iterator[Complaint]:
    told = any(name.endswith("_VISIBLE_DEVICES") for name in configuration.environment)
    if HOSTFILE in configuration and not told:
        message = "the runner counts the devices of a node by a variable *_VISIBLE_DEVICES, and stops without one"
        yield HOSTFILE, f"{message}; write experiment.envs.CUDA_VISIBLE_DEVICES: 0,1,2,3,4,5,6,7"


def _known_types(configuration: Configuration) -> Iterator[Complaint]:
    types, prefix = configuration.get(TYPES), "experiment.envs.device_type_specific."
    if not meshes(configuration) or not isinstance(types, list):
        return
    named = {
        key: key.removeprefix(prefix).rpartition(".")[0] for key in configuration.settings if key.startswith(prefix)
    }
    for key, name in named.items():
        if name and name not in types:
            yield (
                key,
                f"is for devices of type {name}, and the meshes have {', '.join(map(str, types))}; use one of these",
            )


RULES = (
    Rule(
        code="FS701",
        name="Nodes meet in the order of the hostfile",
        summary="experiment.runner.rdzv_backend: static with meshes on several nodes",
        why="The default, c10d, sorts nodes by their addresses. Meshes take consecutive ranks, so that stages would run"
        " on other nodes than meant.",
        source=RUNNER,
        check=_static,
        caught=False,
    ),
    Rule(
        code="FS702",
        name="The runner can count devices",
        summary="a variable *_VISIBLE_DEVICES in experiment.envs, with a hostfile",
        why="Without one the runner uses the number of devices before it is set, and stops with UnboundLocalError.",
        source=RUNNER,
        check=_visible,
    ),
    Rule(
        code="FS703",
        name="Settings of a type are of a type in use",
        summary="the types of experiment.envs.device_type_specific are among hetero_device_types",
        why="Types are compared letter by letter with those of the hostfile; others are passed over in silence.",
        source=RUNNER,
        check=_known_types,
        severity=WARNING,
        caught=False,
    ),
)
"""In the order of their codes."""
