"""PyTorch's pipeline schedules: the passes that it makes for every rank, and what it says of ours.

A request: `schedule` (a name that `get_schedule_class` knows), `ranks`, `stages` (of a rank), `microbatches`; with
`csv` the passes are read from that text instead of made, and then judged as PyTorch judges all passes. With `runtime`
they are read as torchtitan reads them, whatever the schedule is called, and its sends and receives are gone through.
"""

from __future__ import annotations

import tempfile
import types
import typing
from pathlib import Path

from torch.distributed.pipelining import schedules
from torch.distributed.pipelining._utils import generate_rank_to_stage_mapping, generate_stage_to_rank_mapping

V_SHAPED = ("ZBVZeroBubble", "DualPipeV")


def _stage(index: int, ranks: int, stages: int) -> types.SimpleNamespace:
    """What a schedule asks of a stage of rank 0, without a module or a process group."""
    return types.SimpleNamespace(
        submod=None,
        stage_index=index,
        num_stages=stages,
        group=None,
        group_size=ranks,
        group_rank=0,
        is_first=index == 0,
        is_last=index == stages - 1,
        stage_index_to_group_rank={number: number % ranks for number in range(stages)},
        has_backward=True,
    )


def passes(request: dict[str, typing.Any]) -> dict[str, object]:
    """The passes of every rank as cells, pairs as lists of two; of a `csv`, the ranks that hold the stages."""
    name, ranks, count = request["schedule"], request["ranks"], request["microbatches"]
    style = "v" if name in V_SHAPED else "loop"
    total = ranks * request["stages"]
    own = generate_rank_to_stage_mapping(ranks, total, style=style)[0]
    stages = [_stage(index, ranks, total) for index in own]
    kind = schedules._PipelineScheduleRuntime if request.get("runtime") else schedules.get_schedule_class(name)
    single = issubclass(kind, schedules.PipelineScheduleSingle)
    made = kind(stages[0] if single else stages, count)
    if "csv" in request:
        return _read(made, request["csv"], ranks, total, count, style)
    orders = made._get_pipeline_order() if single else made.pipeline_order
    return {"ranks": [[_cell(one) for one in orders[rank] if one and one.is_compute_op] for rank in range(ranks)]}


def _read(
    made: schedules.PipelineScheduleMulti, text: str, ranks: int, stages: int, count: int, style: str
) -> dict[str, object]:
    """What PyTorch makes of passes in a file: the rank of every stage."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "passes.csv"
        path.write_text(text, encoding="utf-8")
        made.pipeline_order = {}
        made._load_csv(str(path), format="compute_only")
    found = schedules._validate_schedule(made.pipeline_order, ranks, stages, count)
    assert found == generate_stage_to_rank_mapping(ranks, stages, style=style)
    return {"rank_of_stage": [found[stage] for stage in range(stages)], "steps": _gone_through(made, found, stages)}


def _gone_through(made: object, ranks: dict[int, int], stages: int) -> int:
    """How many slots the passes take with their sends and receives, one a slot; a deadlock raises.

    What FSDP adds (gathering weights, reducing gradients) waits for nobody else in the pipeline, and is left out.
    """
    own = (schedules.UNSHARD, schedules.RESHARD, schedules.REDUCE_GRAD)
    orders = {
        rank: [one for one in actions if one.computation_type not in own]
        for rank, actions in made.pipeline_order_with_comms.items()
    }
    ran = schedules._simulate_comms_compute(orders, lambda stage: ranks[stage], stages)
    return max(map(len, ran.values()))


def _cell(action: schedules._Action) -> object:
    """A pass; a pair as a list, as two stages run it at once."""
    return [str(one) for one in action.sub_actions] if action.sub_actions else str(action)
