"""One step of a small pipeline in PyTorch, its passes in the order of a file, compared with one process.

A request: `csv` (the passes), `rank_of_stage`, `microbatches`; each rank is a process, and they speak over gloo.
"""

from __future__ import annotations

import copy
import multiprocessing
import tempfile
import typing
from pathlib import Path

import torch
from torch import distributed
from torch.distributed.pipelining import PipelineStage, schedules

WIDTH = 8
PATIENCE = 120
"""Seconds that a rank may take; one that waits for ever is a deadlock."""


def train(request: dict[str, typing.Any]) -> dict[str, object]:
    """How many ranks ended with the gradients that one process has."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "passes.csv").write_text(request["csv"], encoding="utf-8")
        ranks = request["rank_of_stage"]
        forked = multiprocessing.get_context("fork")
        started = [
            forked.Process(target=_rank, args=(rank, ranks, request["microbatches"], folder), daemon=True)
            for rank in range(max(ranks) + 1)
        ]
        for one in started:
            one.start()
        for one in started:
            one.join(PATIENCE)
        ended = [one.exitcode for one in started]
        for one in started:
            one.kill()
    return {"ended": ended}


def _rank(rank: int, ranks: list[int], count: int, folder: str) -> None:
    """One process: exits with 0 if its gradients are those of the whole model in one process."""
    distributed.init_process_group("gloo", f"file://{folder}/meet", rank=rank, world_size=max(ranks) + 1)
    torch.manual_seed(0)
    modules = [torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()) for _ in ranks]
    whole = copy.deepcopy(torch.nn.Sequential(*modules))
    batch, wanted = torch.randn(2 * count, WIDTH), torch.randn(2 * count, WIDTH)
    _loss(whole(batch), wanted).backward()
    own = [stage for stage, its in enumerate(ranks) if its == rank]
    stages = [PipelineStage(modules[stage], stage, len(ranks), torch.device("cpu")) for stage in own]
    for stage in stages:
        stage.stage_index_to_group_rank = dict(enumerate(ranks))
    runtime = schedules._PipelineScheduleRuntime(stages, n_microbatches=count, loss_fn=_loss, scale_grads=False)
    runtime._load_csv(f"{folder}/passes.csv")
    given = (batch,) if 0 in own else ()
    runtime.step(*given, **({"target": wanted} if len(ranks) - 1 in own else {}))
    for stage in own:
        pairs = zip(modules[stage].parameters(), whole[stage].parameters(), strict=True)
        assert all(torch.allclose(one.grad, other.grad, atol=1e-4) for one, other in pairs)


def _loss(made: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return ((made - wanted) ** 2).sum()
