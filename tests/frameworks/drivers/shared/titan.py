"""What both drivers of torchtitan share: the real Trainer as one rank of a world that sends nothing.

Its dry run wants a GPU; on a CPU the same is had by calling the device "cpu" and stopping at the first `to_empty`,
which is where the model, by then split into stages, sharded and wrapped on the meta device, would be materialised.
"""

from __future__ import annotations

import contextlib
import os
import typing
from unittest import mock

import shims
import torch
import torch._utils

torch._utils._get_available_device_type = lambda: "cpu"
shims.stub_triton()

from torch.distributed.tensor import DTensor
from torch.testing._internal.distributed.fake_pg import FakeStore
from torchtitan.components import metrics
from torchtitan.distributed import utils as distributed

REFUSALS = (
    AssertionError,
    ValueError,
    RuntimeError,
    KeyError,
    TypeError,
    NotImplementedError,
    FileNotFoundError,
    SystemExit,
)

Facts = dict[str, object]


class _Memory(BaseException):
    """The model is ready to be materialised."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model


def _stop(model: torch.nn.Module, **_: object) -> typing.NoReturn:
    raise _Memory(model)


def start(trainer: type, config: object, world: int, rank: int, *patches: typing.ContextManager[object]) -> Facts:
    """Starts a Trainer as that rank of that world: what it had split and sharded when memory began."""
    place = {"WORLD_SIZE": str(world), "RANK": str(rank), "LOCAL_RANK": "0"}
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    begun = trainer.__new__(trainer)
    try:
        with contextlib.ExitStack() as stack:
            for patch in (
                mock.patch.dict(os.environ, place),
                mock.patch.object(distributed, "init_distributed", return_value=world),
                mock.patch.object(
                    metrics, "build_device_memory_monitor", return_value=mock.Mock(device_name="as asked")
                ),
                mock.patch.object(torch.nn.Module, "to_empty", _stop),
                *patches,
            ):
                stack.enter_context(patch)
            trainer.__init__(begun, config)
    except _Memory as memory:
        return _facts(begun, memory.model)
    finally:
        torch.distributed.destroy_process_group()
    raise LookupError("the trainer started without materialising a model")


def _facts(trainer: typing.Any, model: torch.nn.Module) -> Facts:
    schedule = getattr(trainer, "pp_schedule", None)
    parts = getattr(trainer, "model_parts", None) or [model]
    stages = getattr(schedule, "_stages", None) or [getattr(schedule, "_stage", None)]
    return {
        "parallel": {
            axis: getattr(trainer.parallel_dims, axis, None)
            for axis in ("pp", "dp_replicate", "dp_shard", "cp", "tp", "ep", "etp")
        },
        "gradient_accumulation_steps": trainer.gradient_accumulation_steps,
        "microbatches": getattr(schedule, "_n_microbatches", None),
        "schedule": type(schedule).__name__ if schedule else None,
        "stages": [
            {
                "stage": getattr(stage, "stage_index", 0),
                "holds": [name for name, child in part.named_children() if child is not None and name != "layers"],
                "layers": [int(name) for name in part.layers] if hasattr(part.layers, "keys") else len(part.layers),
                "parameters": sum(_here(parameter) for parameter in part.parameters()),
            }
            for stage, part in zip(stages, parts, strict=True)
        ],
    }


def _here(parameter: torch.Tensor) -> int:
    """Elements of it that this rank keeps."""
    return parameter.to_local().numel() if isinstance(parameter, DTensor) else parameter.numel()
