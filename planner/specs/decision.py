"""The decision of a plan file: which layers run where, from and to a plain record."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.domain.plan import CP_COMM_TYPES, Plan, Stage, Strategy

if TYPE_CHECKING:
    from planner.specs.plan_record import DecisionRecord, PipelineRecord


def decision_record(plan: Plan) -> dict[str, Any]:
    """Return the decision as a plain record."""
    others = [_pipeline_record(pipeline) for pipeline in plan.other_pipelines]
    return {
        **_pipeline_record(plan),
        "zero_stage": plan.zero_stage,
        **({"other_pipelines": others} if others else {}),
    }


def _pipeline_record(plan: Plan) -> dict[str, Any]:
    """Return the replicas of one kind as a plain record."""
    return {
        "schedule": plan.schedule,
        **({"virtual_stages": plan.virtual_stages} if plan.virtual_stages > 1 else {}),
        **({"microbatch_group": plan.microbatch_group} if plan.microbatch_group else {}),
        "num_replicas": plan.num_replicas,
        "micro_batch": plan.micro_batch,
        "num_microbatches": plan.num_microbatches,
        **({"short_replicas": plan.short_replicas} if plan.short_replicas else {}),
        **({"order": list(plan.order)} if plan.order else {}),
        "stages": [
            {
                "group": stage.group,
                "layers": [stage.first_layer, stage.last_layer],
                **({"chunks": [list(chunk) for chunk in stage.chunks]} if stage.later_chunks else {}),
                "degrees": [{"axis": axis, "degree": degree} for axis, degree in stage.strategy.degrees],
                "sequence_parallel": stage.strategy.sequence_parallel,
                **({} if (kind := stage.strategy.cp_comm_type) == CP_COMM_TYPES[0] else {"cp_comm_type": kind}),
                "recompute": stage.recompute,
                "num_recomputed": stage.num_recomputed,
                **({"split": stage.split} if stage.split > 1 else {}),
            }
            for stage in plan.stages
        ],
    }


def decision(record: DecisionRecord) -> Plan:
    """Return the decision of a valid record; whether it makes sense is for the checks to judge."""
    return replace(
        _pipeline(record, record.zero_stage),
        other_pipelines=tuple(_pipeline(pipeline, record.zero_stage) for pipeline in record.other_pipelines),
    )


def _pipeline(record: PipelineRecord, zero_stage: int) -> Plan:
    """Return the replicas of one kind."""
    return Plan(
        stages=tuple(
            Stage(
                group=stage.group,
                first_layer=stage.layers[0],
                last_layer=stage.layers[1],
                strategy=Strategy(
                    degrees=tuple((item.axis, item.degree) for item in stage.degrees),
                    sequence_parallel=stage.sequence_parallel,
                    cp_comm_type=stage.cp_comm_type,
                ),
                recompute=stage.recompute,
                num_recomputed=stage.num_recomputed,
                later_chunks=tuple((first, last) for first, last in stage.chunks[1:]),
                split=stage.split,
            )
            for stage in record.stages
        ),
        schedule=record.schedule,
        num_replicas=record.num_replicas,
        micro_batch=record.micro_batch,
        num_microbatches=record.num_microbatches,
        zero_stage=zero_stage,
        virtual_stages=record.virtual_stages,
        microbatch_group=record.microbatch_group,
        short_replicas=record.short_replicas,
        order=tuple(record.order),
    )
