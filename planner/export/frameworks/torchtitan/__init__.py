"""torchtitan: a Python module for 0.3 and later, TOML for the versions before."""

from __future__ import annotations

from planner.export.base import Exporter, Part, Program
from planner.export.frameworks.torchtitan.module import module_text
from planner.export.frameworks.torchtitan.settings import PASSES_FILE, passes_text
from planner.export.frameworks.torchtitan.toml import toml_text
from planner.specs.plan import PlanFile

ENVIRONMENT = (("PYTORCH_ALLOC_CONF", "expandable_segments:True"),)
"""As torchtitan's run_train.sh sets it (v0.2.2, v0.3.0): without it, memory is lost to fragments."""
MODULE_FILE, TOML_FILE = "plan_titan.py", "plan_titan.toml"


def _module_parts(file: PlanFile) -> tuple[Part, ...]:
    return (Part(name=MODULE_FILE, text=module_text(file)), *_passes(file))


def _toml_parts(file: PlanFile) -> tuple[Part, ...]:
    return (Part(name=TOML_FILE, text=toml_text(file)), *_passes(file))


def _passes(file: PlanFile) -> tuple[Part, ...]:
    """Return the file with the order of passes, if the plan has one of its own."""
    text = passes_text(file.plan) if file.plan.num_stages > 1 else ""
    return (Part(name=PASSES_FILE, text=text),) if text else ()


def _module_program(file: PlanFile) -> Program:
    command = ("-m", "torchtitan.train", "--module", MODULE_FILE.removesuffix(".py"), "--config", "plan")
    return Program(command=command, environment=ENVIRONMENT, parts=_module_parts(file))


def _toml_program(file: PlanFile) -> Program:
    command = ("-m", "torchtitan.train", "--job.config_file", TOML_FILE)
    return Program(command=command, environment=ENVIRONMENT, parts=_toml_parts(file))


TORCHTITAN = Exporter(
    name="torchtitan",
    summary="a configuration module for torchtitan 0.3 and later",
    framework="torchtitan",
    parts=_module_parts,
    program=_module_program,
)
TORCHTITAN_TOML = Exporter(
    name="torchtitan-0.2",
    summary="a TOML configuration for torchtitan up to 0.2",
    framework="torchtitan",
    parts=_toml_parts,
    program=_toml_program,
)
