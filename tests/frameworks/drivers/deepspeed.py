"""DeepSpeed by its own words: the configuration, then the engine as one rank of a world that sends nothing.

A request: `text` (the JSON), `world`, `rank` (default 0), and for pipelines `stages`, `layers`, `partition_method`,
`tp` (the degrees of PipelineModule, which a program says and no JSON), or for AutoTP `heads`, `kv_heads` of the Llama
that it divides; or `hostfile` (its text) with `include`, `exclude`; or `keys: true`. Optimizers are left out: the
offloading ones want to be compiled.
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

import ds_keys
import pydantic
import shims
import torch

shims.stub_triton()

import deepspeed
from deepspeed.accelerator import get_accelerator
from deepspeed.comm import comm
from deepspeed.comm import torch as backend
from deepspeed.launcher import runner
from deepspeed.pipe import LayerSpec, PipelineModule
from deepspeed.runtime.config import DeepSpeedConfigError
from deepspeed.runtime.engine import DeepSpeedEngine
from deepspeed.runtime.pipe.topology import PipeModelDataParallelTopology
from deepspeed.utils import groups
from torch.testing._internal.distributed.fake_pg import FakeStore

REFUSALS = (AssertionError, ValueError, RuntimeError, pydantic.ValidationError, DeepSpeedConfigError, SystemExit)

backend.build_shm_op = lambda: None  # would compile C++
CLEAN = dict(vars(groups))


def answer(request: dict[str, typing.Any]) -> dict[str, object]:
    """What DeepSpeed makes of it: hosts, or batch sizes, ZeRO stage, degrees, and the cuts of a pipeline."""
    if request.get("keys"):
        return {"version": importlib.metadata.version("deepspeed"), **ds_keys.keys()}
    if "hostfile" in request:
        pool = runner._parse_hostfile(request["hostfile"].splitlines())
        return {"hosts": runner.parse_inclusion_exclusion(pool, request.get("include", ""), request.get("exclude", ""))}
    place = {"WORLD_SIZE": str(request["world"]), "RANK": str(request.get("rank", 0)), "LOCAL_RANK": "0"}
    torch.distributed.init_process_group(
        "fake", store=FakeStore(), rank=request.get("rank", 0), world_size=request["world"]
    )
    try:
        with mock.patch.dict(os.environ, place), tempfile.TemporaryDirectory() as folder, _without_optimizers():
            deepspeed.init_distributed(verbose=False)
            return _engine(request, Path(folder) / "plan.json")
    finally:
        torch.distributed.destroy_process_group()
        comm.cdb = None
        vars(groups).update(CLEAN)


def _engine(request: dict[str, typing.Any], path: Path) -> dict[str, object]:
    path.write_text(request["text"], encoding="utf-8")
    model = _pipeline(request) if "stages" in request else _model(request)
    engine, *_ = deepspeed.initialize(model=model, config=str(path))
    return {
        "train_batch_size": engine.train_batch_size(),
        "train_micro_batch_size_per_gpu": engine.train_micro_batch_size_per_gpu(),
        "gradient_accumulation_steps": engine.gradient_accumulation_steps(),
        "zero_stage": engine.zero_optimization_stage(),
        "dp": engine.dp_world_size,
        "tp": engine.mp_world_size,
        "sp": engine.sequence_parallel_size,
        **(_cuts(engine) if "stages" in request else {}),
    }


def _model(request: dict[str, typing.Any]) -> torch.nn.Module:
    """A small Llama where one is asked for; otherwise the model does not matter."""
    if "heads" not in request:
        return torch.nn.Linear(4, 4)
    import transformers

    heads, kv_heads = request["heads"], request.get("kv_heads", request["heads"])
    size = {"hidden_size": 8 * heads, "intermediate_size": 24 * heads, "num_hidden_layers": 1, "vocab_size": 96}
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            num_attention_heads=heads, num_key_value_heads=kv_heads, pad_token_id=0, bos_token_id=1, **size
        )
    )


def _pipeline(request: dict[str, typing.Any]) -> PipelineModule:
    tp = request.get("tp", 1)
    dp, left = divmod(request["world"], request["stages"] * tp)
    if left:
        raise ValueError("the world is not a multiple of stages x tp, which PipelineModule is not asked")
    return PipelineModule(
        [LayerSpec(torch.nn.Linear, 4, 4) for _ in range(request["layers"])],
        topology=PipeModelDataParallelTopology(num_pp=request["stages"], num_mp=tp, num_dp=dp),
        loss_fn=torch.nn.MSELoss(),
        partition_method=request.get("partition_method", "uniform"),
    )


def _cuts(engine: typing.Any) -> dict[str, object]:
    grid = engine.module._grid
    return {
        "tp": grid.slice_parallel_size,
        "parts": list(engine.module.parts),
        "stage": grid.get_stage_id(),
        "dp_rank": grid.get_data_parallel_id(),
        "tp_rank": grid.get_slice_parallel_rank(),
        "micro_batches": engine.micro_batches,
    }


@contextlib.contextmanager
def _without_optimizers() -> typing.Iterator[None]:
    nothing = {
        name: lambda *_, **__: None
        for name in ("_configure_optimizer", "_configure_zero_optimizer", "_configure_bf16_optimizer")
    }
    # A CPU has no fp16 to train in, and what has it is what the plan is for.
    with (
        mock.patch.multiple(DeepSpeedEngine, **nothing),
        mock.patch.object(get_accelerator(), "is_fp16_supported", return_value=True),
    ):
        yield
