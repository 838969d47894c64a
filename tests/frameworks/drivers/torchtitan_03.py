"""torchtitan from 0.3: a configuration is a Python function, found by --module and --config.

A request: `files` (name: text; modules that are put on the path), `argv` (all flags, --module and --config among them),
`world`, `ranks` (as which the trainer is started; default rank 0 alone), or `keys: true`; or `schedule` and what
torch_pipelines.py asks for, which is about the torch of the environment; or `train: true` and what torch_training.py
asks for, likewise.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import sys
import tempfile
import typing
from pathlib import Path
from unittest import mock

import tables
import titan
import torch_pipelines
import torch_training
from torchtitan.config.manager import ConfigManager
from torchtitan.distributed import activation_checkpoint, fsdp
from torchtitan.trainer import Trainer

REFUSALS = (*titan.REFUSALS, ImportError)


def answer(request: dict[str, typing.Any]) -> titan.Facts:
    """What torchtitan makes of the configuration, as each of the ranks asked for."""
    if "schedule" in request:
        return torch_pipelines.passes(request)
    if request.get("train"):
        return torch_training.train(request)
    if request.get("keys"):
        return {"version": importlib.metadata.version("torchtitan"), "tables": _tables()}
    ranks = request.get("ranks", [0])
    return {str(rank): titan.start(Trainer, _config(request), request["world"], rank, _no_sharding()) for rank in ranks}


def _no_sharding() -> typing.ContextManager[object]:
    """Leaves out FSDP's sharding: the default backend, spmd_types, wants a newer fully_shard than torch 2.13 has.

    The parameters of a rank are therefore those after tensor and expert parallelism, before the shards of FSDP.
    """
    return mock.patch.object(fsdp, "fully_shard", lambda module, **_: module)


def _config(request: dict[str, typing.Any]) -> Trainer.Config:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in request.get("files", {}).items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        before = set(sys.modules)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            return ConfigManager().parse_args(request["argv"])
        except AttributeError as unknown:  # the classes have slots: a key that there is not cannot be set
            raise ValueError(str(unknown)) from unknown
        finally:
            sys.path.remove(folder)
            for name in set(sys.modules) - before:  # the next request's module may have the same name
                if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
                    del sys.modules[name]


def _tables() -> dict[str, dict[str, object]]:
    found = tables.of_dataclass(Trainer.Config)
    for name, member in vars(activation_checkpoint).items():  # the key activation_checkpoint takes one of these
        config = getattr(member, "Config", None)
        if dataclasses.is_dataclass(config):
            found |= tables.of_dataclass(config, f"activation_checkpoint:{name}")
    return found
