"""How a published run was spread over its devices: degrees, micro-batches, and the layers of its stages."""

from __future__ import annotations

from dataclasses import dataclass

from planner.accuracy.refusal import NotJudgedError
from planner.accuracy.run import Run

UNITS = {0: (0, 0), 2: (1, 1), 6: (2, 4), 7: (3, 4)}
"""What a pipeline cuts beside its layers, by their number: those before the layers and those behind them.

Some count embedding and head as layers. DeepSpeed's pipelines of Megatron models cut whatever is called in turn:
embedding and transposition before; transposition, norm, head and cast to fp32 behind (DeepSpeedExamples,
Megatron-LM-v1.1.5-3D_parallelism, ``GPT2ModelPipe``), and a cast to 16 bits in front of all since Megatron-DeepSpeed
of 2021 (``GPTModelPipe``).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """How a run was spread, and its batch, all settled."""

    tensor: int
    context: int
    stages: int
    replicas: int
    micro_batch: int
    num_microbatches: int


def run_degrees(run: Run) -> Degrees:
    """Return the degrees of `run`; those that it does not name are 1, replicas what is left.

    Raises:
        NotJudgedError: they contradict one another, or the batch is not known.

    """
    assert run.gpus is not None, "runs without it are not judged"
    assert run.mbs is not None, "runs without it are not judged"
    tensor, stages, context = run.tp or 1, run.pp or 1, run.cp or 1
    replicas = run.dp or run.gpus // (tensor * stages * context)
    if tensor * stages * context * replicas != run.gpus:
        raise NotJudgedError("tp x pp x cp x dp is not the number of devices")
    batch = run.gbs or (run.mbs * replicas if stages == 1 else None)
    if batch is None:
        raise NotJudgedError("no global batch")
    num_microbatches, left = divmod(batch, run.mbs * replicas)
    if left:
        raise NotJudgedError("the global batch is no multiple of micro-batch times replicas")
    return Degrees(
        tensor=tensor,
        context=context,
        stages=stages,
        replicas=replicas,
        micro_batch=run.mbs,
        num_microbatches=num_microbatches,
    )


def written_layers(run: Run, stages: int) -> tuple[int, ...]:
    """Return the layers of each stage as the run says, nothing if it does not, or if a stage would have none."""
    counts = [int(word) for word in run.stage_layers.split() if word.isdigit()]
    beside = UNITS.get(sum(counts) - (run.layers or 0))
    if len(counts) != stages or beside is None:
        return ()
    before, behind = beside
    counts[0] -= before
    counts[-1] -= behind
    return tuple(counts) if min(counts) > 0 else ()
