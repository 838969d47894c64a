"""Hetu-Galvatron: a JSON of strings with one entry for each layer, on stages of equally many ranks.

Keys as ``galvatron/utils/config_utils.py`` and ``galvatron/core/runtime/hybrid_parallel_config.py`` of
PKU-DAIR/Hetu-Galvatron at cea12ff (2026-06-16) read them; ranks in the order tp, cp, dp, pp
(``galvatron/core/runtime/comm_groups.py``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from planner.domain.plan import Plan, Stage
from planner.errors import CannotExpress
from planner.export.base import Exporter, Part
from planner.export.nodes import nodes_of
from planner.export.table import table_json, table_part
from planner.specs.plan import PlanFile

NAME = "galvatron"
SCHEDULES = {"1f1b": "pipedream_flush", "gpipe": "gpipe"}
"""Ours -> theirs."""
DATA = {0: "ddp", 2: "zero2", 3: "zero3"}
"""ZeRO stage -> their kind of data parallelism."""


def _parts(file: PlanFile) -> tuple[Part, ...]:
    """Return the JSON, and the nodes in the order of its ranks.

    Raises:
        CannotExpress: with every reason.
    """
    from planner.placement import place

    reasons = list(_reasons(file))
    if reasons:
        raise CannotExpress(NAME, reasons)
    placed = place(file.plan, file.cluster, file.model, file.job, together=True)
    hosts = [f"{node.name} slots={len(node.devices)}\n" for node in nodes_of(placed, NAME)]
    return (
        Part(name="galvatron.json", text=json.dumps(_document(file), indent=2) + "\n"),
        Part(name="hostfile", text="".join(hosts)),
        table_part(placed),
        table_json(placed),
    )


def _reasons(file: PlanFile) -> Iterator[str]:
    """Yield what Galvatron has no words for."""
    plan = file.plan
    if file.job.optimizer is not None and file.job.optimizer.name != "adam-fp32-states":
        yield f"the optimizer recipe {file.job.optimizer.name}; it is written for adam-fp32-states"
    if plan.other_pipelines or plan.short_replicas:
        yield "replicas with unlike shares of the batch; all of its pipelines are alike"
        return
    if plan.virtual_stages > 1 or plan.schedule not in SCHEDULES:
        yield f"schedule {plan.schedule}; it has {' and '.join(SCHEDULES)}"
    if len({plan.num_replicas * stage.num_devices for stage in plan.stages}) > 1:
        yield "stages with unlike numbers of devices; each has world / pp of them"
    if plan.zero_stage not in DATA and plan.num_replicas * max(stage.split for stage in plan.stages) > 1:
        yield f"ZeRO stage {plan.zero_stage}; it has {', '.join(map(str, DATA))}"
    if any(stage.recompute != "none" for stage in plan.stages if stage.num_recomputed < stage.num_layers):
        yield "selective recompute; a layer is recomputed in full or not"
    if any(stage.strategy.degree("cp") > 1 and stage.strategy.cp_comm_type != "p2p" for stage in plan.stages):
        yield "context parallelism by a2a; its context ranks form a ring"
    ends = plan.stages[0].strategy, plan.stages[-1].strategy
    if len({end.degree("tp") for end in ends}) > 1 or len({end.degree("cp") for end in ends}) > 1:
        yield "embedding and head with unlike degrees; vtp and vcp hold of both"


def _document(file: PlanFile) -> dict[str, Any]:
    """Return the configuration."""
    plan = file.plan
    first = plan.stages[0].strategy
    return {
        "pp_deg": plan.num_stages,
        "tp_sizes_enc": _each(plan, lambda stage: [stage.strategy.degree("tp")] * stage.num_layers),
        "cp_sizes_enc": _each(plan, lambda stage: [stage.strategy.degree("cp")] * stage.num_layers),
        "tp_consecutive_flags": _each(plan, lambda stage: [1] * stage.num_layers),
        "dp_types_enc": _each(plan, lambda stage: [int(plan.zero_stage == 3)] * stage.num_layers),
        "use_sp": _each(plan, lambda stage: [0] * stage.num_layers),
        "checkpoint": _each(plan, _recomputed),
        "global_bsz": plan.global_batch,
        "chunks": plan.num_microbatches,
        "pp_division": ",".join(str(stage.num_layers) for stage in plan.stages),
        "pipeline_type": SCHEDULES[plan.schedule],
        "default_dp_type": DATA.get(plan.zero_stage, "ddp"),
        "vtp": first.degree("tp"),
        "vsp": 0,
        "vcp": first.degree("cp"),
        "vocab_sdp": int(plan.zero_stage == 3),
        "world_size": plan.num_devices,
    }


def _each(plan: Plan, values: Any) -> str:
    return ",".join(str(value) for stage in plan.stages for value in values(stage))


def _recomputed(stage: Stage) -> list[int]:
    return [int(index < stage.num_recomputed) for index in range(stage.num_layers)]


GALVATRON = Exporter(
    name=NAME,
    summary="JSON of Hetu-Galvatron: tensor degree and recompute layer by layer",
    parts=_parts,
    document=_document,
)
