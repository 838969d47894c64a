"""SkyPilot by its own words: the schema of a task and the Task made of it, without a cloud.

A request: `text` (YAML). Whether an accelerator or a region exists is a matter of the catalog, which it fetches only on
a launch.
"""

from __future__ import annotations

import os
import tempfile
import typing

os.environ["HOME"] = tempfile.mkdtemp(prefix="planner-skypilot-")  # it keeps a database there
os.environ["SKYPILOT_DISABLE_USAGE_COLLECTION"] = "1"

import sky
import yaml

REFUSALS = (ValueError, TypeError, AssertionError, yaml.YAMLError)


def answer(request: dict[str, typing.Any]) -> dict[str, object]:
    """Nodes, accelerators of a node and variables, as the task has them."""
    config = yaml.safe_load(request["text"])
    if not isinstance(config, dict):
        raise TypeError("no table")
    task = sky.Task.from_yaml_config(config)
    # Alternatives without an order are a set.
    choices = sorted(task.resources, key=repr) if isinstance(task.resources, set) else list(task.resources)
    return {
        "name": task.name,
        "nodes": task.num_nodes,
        "accelerators": [resources.accelerators for resources in choices],
        "spot": [resources.use_spot for resources in choices],
        "envs": dict(task.envs),
    }
