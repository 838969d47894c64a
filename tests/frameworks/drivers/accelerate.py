"""Accelerate by its own words: `accelerate launch` up to the launcher, then an Accelerator in its environment.

A request: `text` (the YAML), `argv` (flags beside --config_file), `files` (name: text; laid beside the file, `{folder}`
in the text is where), `rank` (default 0); or `keys: true`. The world is the file's own, num_processes: fact `world`.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import tempfile
import typing
from pathlib import Path
from unittest import mock

os.environ["DS_ACCELERATOR"] = "cpu"

import shims
import tables
import torch
import torch.distributed.fsdp
import yaml

shims.stub_triton()

import accelerate
from accelerate import accelerator as accelerators
from accelerate.commands import launch
from accelerate.commands.config.config_args import ClusterConfig
from accelerate.parallelism_config import ParallelismConfig
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import DistributedType
from accelerate.utils import dataclasses as plugins
from accelerate.utils import launch as environments
from torch.testing._internal.distributed.fake_pg import FakeStore

REFUSALS = (AssertionError, ValueError, RuntimeError, SystemExit, yaml.YAMLError)

LAUNCHERS = ("multi_gpu_launcher", "deepspeed_launcher", "simple_launcher")
OF_A_PLAN = ("ACCELERATE_", "FSDP_", "PARALLELISM_CONFIG_", "MEGATRON_LM_", "PYTORCH_", "CUDA_", "NCCL_")


class _Launched(BaseException):
    """Everything is read and checked, and processes would start."""

    def __init__(self, launcher: str, args: typing.Any) -> None:
        super().__init__()
        self.launcher = launcher
        self.settings = args


def answer(request: dict[str, typing.Any]) -> dict[str, object]:
    """What Accelerate makes of the file: how many processes where, and the kind and degrees of parallelism."""
    if request.get("keys"):
        return _keys()
    with tempfile.TemporaryDirectory() as folder, _clean():
        for name, text in {"accelerate.yaml": request["text"], **request.get("files", {})}.items():
            (Path(folder) / name).write_text(text.replace("{folder}", folder), encoding="utf-8")
        launcher, args = _launch(["--config_file", f"{folder}/accelerate.yaml", *request.get("argv", []), "train.py"])
        if launcher == "deepspeed_launcher":
            command, environment = environments.prepare_deepspeed_cmd_env(args)
        else:
            command, environment = None, environments.prepare_multi_gpu_env(args)
        os.environ.update(environment)
        started = {
            "launcher": launcher,
            "command": command,
            "world": args.num_processes,
            "nodes": args.num_machines,
            "node_rank": args.machine_rank,
            "processes_per_node": int(args.nproc_per_node) if hasattr(args, "nproc_per_node") else None,
        }
        return started | _accelerator(args.num_processes, request.get("rank", 0))


@contextlib.contextmanager
def _clean() -> typing.Iterator[None]:
    """An environment in which nothing is said of Accelerate yet; packages that are only called are there."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(OF_A_PLAN)}
    with (
        mock.patch.dict(os.environ, inherited, clear=True),
        mock.patch.object(environments, "is_port_in_use", return_value=False),
        mock.patch.object(accelerators, "is_megatron_lm_available", return_value=True),
        mock.patch.object(plugins, "is_cuda_available", return_value=True),
        mock.patch.object(torch.cuda, "current_device", return_value=0),
        contextlib.ExitStack() as stack,
    ):
        for launcher in LAUNCHERS:
            stack.enter_context(
                mock.patch.object(launch, launcher, lambda args, launcher=launcher: _stop(launcher, args))
            )
        yield


def _stop(launcher: str, args: typing.Any) -> typing.NoReturn:
    raise _Launched(launcher, args)


def _launch(argv: list[str]) -> tuple[str, typing.Any]:
    try:
        launch.launch_command(launch.launch_command_parser().parse_args(argv))
    except _Launched as launched:
        return launched.launcher, launched.settings
    raise ValueError("it would not launch processes here")


def _accelerator(world: int, rank: int) -> dict[str, object]:
    """An Accelerator as that rank of a world that sends nothing and believes to have GPUs."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    PartialState._shared_state.update(
        _cpu=False,
        backend="nccl",
        debug=False,
        device=torch.device("cpu"),
        distributed_type=DistributedType.MULTI_GPU if world > 1 else DistributedType.NO,
        fork_launched=False,
        local_process_index=0,
        num_processes=world,
        process_index=rank,
    )
    try:
        return _facts(accelerate.Accelerator())
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)
        torch.distributed.destroy_process_group()


def _facts(started: accelerate.Accelerator) -> dict[str, object]:
    mesh = started.torch_device_mesh
    parallelism = started.parallelism_config
    found = {
        "fsdp": getattr(started.state, "fsdp_plugin", None),
        "megatron": getattr(started.state, "megatron_lm_plugin", None),
    }
    if started.distributed_type == DistributedType.DEEPSPEED:
        found["deepspeed"] = started.state.deepspeed_plugin
    return {
        "distributed_type": started.distributed_type.value,
        "mixed_precision": started.mixed_precision,
        "gradient_accumulation_steps": started.gradient_accumulation_steps,
        "mesh": None if mesh is None else dict(zip(mesh.mesh_dim_names, mesh.shape, strict=True)),
        "parallelism": None if parallelism is None else dict(parallelism._sizes),
        **{name: _plain(plugin) for name, plugin in found.items() if plugin is not None},
    }


def _plain(plugin: object) -> dict[str, object]:
    """The settings of a plugin that JSON has."""
    return {key: value for key, value in vars(plugin).items() if isinstance(value, bool | int | float | str)}


def _keys() -> dict[str, object]:
    """Keys of the file, and of each of its blocks: those are the flags of `accelerate launch` of the same names."""
    flags = {
        action.dest: {
            "kind": type(action).__name__.strip("_").removesuffix("Action"),
            "type": getattr(action.type, "__name__", None),
            "choices": None if action.choices is None else tables.plain(list(action.choices)),
            "default": tables.plain(action.default),
            "group": group.title,
        }
        for group in launch.launch_command_parser()._action_groups
        for action in group._group_actions
    }
    beginnings = {f"{name}_config": f"{name}_" for name in ("fsdp", "megatron_lm", "fp8", "dynamo")}
    beginnings["parallelism_config"] = "parallelism_config_"
    blocks = {
        block: {key: flag for key, flag in flags.items() if key.startswith(start)}
        for block, start in beginnings.items()
    }
    blocks["deepspeed_config"] = {key: flag for key, flag in flags.items() if flag["group"] == "DeepSpeed Arguments"}
    return {
        "version": importlib.metadata.version("accelerate"),
        "distributed_types": [kind.value for kind in DistributedType],
        "cluster_config": tables.of_dataclass(ClusterConfig)[""],
        "parallelism_config": tables.of_dataclass(ParallelismConfig)[""],
        "blocks": blocks,
        "flags": flags,
    }
