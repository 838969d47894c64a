"""Accelerate's YAML configuration."""

from planner.configurations.base import Form
from planner.configurations.forms.accelerate import fsdp, mesh, plugins, processes, reading
from planner.configurations.forms.accelerate.read import NAME, read, recognises
from planner.configurations.forms.accelerate.setup import setup

ACCELERATE = Form(
    name=NAME,
    summary="Accelerate configuration (YAML), as `accelerate config` writes it",
    framework="accelerate",
    recognises=recognises,
    read=read,
    rules=(*reading.RULES, *processes.RULES, *mesh.RULES, *plugins.RULES, *fsdp.RULES),
    setup=setup,
)
