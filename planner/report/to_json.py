"""The stable JSON of every command that finds or judges a plan: seconds, bytes, keys sorted, no dates.

``format_version`` rises when a key goes or changes its meaning; new keys may come at any time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from planner.domain.cluster import Cluster
from planner.domain.confidence import Confidence
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage
from planner.domain.prediction import Certificate, Outcome, Prediction, References, SearchReport, busiest_stage
from planner.errors import NoFeasiblePlan, Problem, Repair
from planner.loader import dump_yaml
from planner.report.pressure import warnings
from planner.report.staleness import stale_record, stale_stage_record
from planner.specs.plan import plan_record

FORMAT_VERSION = "1.0"
"""Of the documents that are written here."""


def dumped(document: Mapping[str, Any], form: str) -> str:
    """Return a document as text, `form` being ``json`` or ``yaml``; what is not finite becomes null."""
    value = plain(document)
    if form == "yaml":
        return dump_yaml(value)
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def plain(value: Any) -> Any:
    """Return `value` in dicts, lists, text and finite numbers, keys sorted."""
    if isinstance(value, Mapping):
        return {str(key): plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def plan_document(outcome: Outcome, cluster: Cluster, model: Model, job: Job, runs_on: Sequence[str]) -> dict[str, Any]:
    """Return what ``planner plan`` found; each ``plan`` is a plan file."""

    def file(plan: Plan, prediction: Prediction, certificate: Certificate | None) -> dict[str, Any]:
        return plan_record(plan, cluster, model, job, certificate, prediction)

    return {
        "format_version": FORMAT_VERSION,
        "status": outcome.search.status,
        "plan": file(outcome.plan, outcome.prediction, outcome.certificate),
        "runs_on": list(runs_on),
        "prediction": prediction_record(outcome.plan, outcome.prediction),
        "warnings": warning_records(outcome.prediction),
        "certificate": certificate_record(outcome.certificate),
        "references": references_record(outcome.references),
        "search": _search(outcome.search),
        "alternatives": [
            {
                "plan": file(one.plan, one.prediction, None),
                "prediction": prediction_record(one.plan, one.prediction),
                "objective_s": float(one.objective),
                "lost_because": one.lost_because,
            }
            for one in outcome.alternatives
        ],
    }


def prediction_document(
    plan: Plan,
    prediction: Prediction,
    problems: Sequence[Problem],
    cluster: Cluster,
    model: Model,
    job: Job,
    repairs: Sequence[Repair] = (),
) -> dict[str, Any]:
    """Return what ``planner predict`` says of a layout; ``plan`` is a plan file."""
    return {
        "format_version": FORMAT_VERSION,
        "plan": plan_record(plan, cluster, model, job, prediction=prediction),
        "prediction": prediction_record(plan, prediction),
        "problems": problem_records(problems),
        "warnings": warning_records(prediction),
        "repairs": repair_records(repairs),
    }


def no_plan_document(error: NoFeasiblePlan) -> dict[str, Any]:
    """Return why there is no plan."""
    shortage = error.shortage
    document: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "status": "infeasible",
        "message": str(error),
        "rejections": _rejections(tuple(error.rejections.items())),
        "repairs": repair_records(error.repairs),
    }
    if shortage is not None:
        document["shortage"] = {
            "missing_bytes": float(shortage.missing_bytes),
            "needed_bytes": float(shortage.needed_bytes),
            "limit_bytes": float(shortage.limit_bytes),
            "stage": shortage.stage,
            "num_stages": shortage.num_stages,
            "group": shortage.group,
            "description": shortage.description,
        }
    return document


def prediction_record(plan: Plan, prediction: Prediction) -> dict[str, Any]:
    """Return time and memory of a plan."""
    return {
        "step_time_s": float(prediction.step_time),
        "tokens_per_s": float(prediction.tokens_per_second),
        "tokens_per_s_per_device": float(prediction.tokens_per_second / prediction.num_devices),
        "samples_per_s": float(prediction.samples_per_second),
        "model_flops_utilization": float(prediction.model_flops_utilization),
        "num_devices": prediction.num_devices,
        "fits": prediction.fits,
        "bubble_fraction": float(prediction.bubble_fraction),
        "busiest_stage": busiest_stage(plan, prediction.stages),
        "time": {name: float(time) for name, time in prediction.time},
        **stale_record(plan),
        **(confidence_record(prediction.confidence) if prediction.confidence else {}),
        **({} if plan.has_even_replicas else {"pipelines": [_pipeline(one, plan) for one in plan.pipelines]}),
        "stages": [
            {
                **({"pipeline": kind} if plan.other_pipelines else {}),
                "group": stage.group,
                "devices": pipeline.num_replicas * stage.num_devices,
                "layers": [stage.first_layer, stage.last_layer],
                **({"chunks": [list(chunk) for chunk in stage.chunks]} if stage.later_chunks else {}),
                "time_s": float(predicted.time),
                "forward_time_s": float(predicted.forward),
                "backward_time_s": float(predicted.backward),
                "sync_time_s": float(predicted.sync),
                "in_flight": predicted.in_flight,
                **stale_stage_record(pipeline, index),
                "fits": predicted.fits,
                "peak_memory_bytes": float(predicted.peak_memory),
                "memory_limit_bytes": float(predicted.memory_limit),
                "memory": {name: float(size) for name, size in predicted.memory},
                "peaks": {name: float(size) for name, size in predicted.peaks},
                "peak_at": predicted.peak_at,
                "pressure": float(predicted.pressure),
            }
            for (kind, pipeline, index, stage), predicted in zip(_stages(plan), prediction.stages, strict=True)
        ],
    }


def _pipeline(kind: Plan, plan: Plan) -> dict[str, Any]:
    """Return what the replicas of a kind work on, and what the gradients of all of them together count."""
    return {
        "replicas": kind.num_replicas,
        "short_replicas": kind.short_replicas,
        "num_microbatches": kind.num_microbatches,
        "samples": kind.samples,
        "gradient_weight": kind.samples / plan.global_batch,
    }


def _stages(plan: Plan) -> Iterator[tuple[int, Plan, int, Stage]]:
    """Yield every stage with its kind of pipeline and that kind's number, and its own there."""
    for kind, pipeline in enumerate(plan.pipelines):
        yield from ((kind, pipeline, index, stage) for index, stage in enumerate(pipeline.stages))


def confidence_record(confidence: Confidence) -> dict[str, Any]:
    """Return how far a prediction can be trusted."""
    times, memory, errors = confidence.step_time, confidence.peak_memory, confidence.held_out
    return {
        "interval": {
            "step_time_s": [float(times.low), float(times.high)],
            "peak_memory_bytes": [float(memory.low), float(memory.high)],
            "basis": times.basis,
            "memory_basis": memory.basis,
        },
        "profile": {
            "name": confidence.profile,
            "held_out": errors and {"rows": errors.rows, "mape": errors.mape, "median_ape": errors.median_ape},
        },
        "low_confidence": list(confidence.low),
    }


def certificate_record(certificate: Certificate) -> dict[str, Any]:
    """Return what was proved."""
    return {
        "objective_s": float(certificate.objective),
        "lower_bound_s": float(certificate.lower_bound),
        "gap": float(certificate.gap),
        "replay_lower_bound_s": float(certificate.replay_lower_bound),
    }


def references_record(references: References | None) -> dict[str, Any] | None:
    """Return what puts the step time in context; null for what was not computed."""
    if references is None:
        return None
    return {
        "flops_step_time_s": float(references.flops_step_time),
        "homogeneous_step_time_s": float(references.homogeneous_step_time) or None,
        "homogeneous_reference": references.homogeneous_reference or None,
        "whole_layer_ceiling": float(references.whole_layer_ceiling) or None,
    }


def problem_records(problems: Sequence[Problem]) -> list[dict[str, str]]:
    """Return problems with their places, and the code of the rule where there is one."""
    return [
        {"place": problem.place, "message": problem.message, **({"code": problem.code} if problem.code else {})}
        for problem in dict.fromkeys(problems)
    ]


def warning_records(prediction: Prediction) -> list[dict[str, Any]]:
    """Return what is to be warned of, stage by stage."""
    return [{"stage": index, "message": message} for index, message in warnings(prediction)]


def repair_records(repairs: Sequence[Repair]) -> list[dict[str, Any]]:
    """Return changes that would make a plan fit, cheapest first."""
    return [
        {
            "change": repair.change,
            "effect": repair.effect,
            "step_time_s": float(repair.step_time),
            "is_rough": repair.is_rough,
            "slower_by": repair.slower_by,
            "peak_memory_bytes": float(repair.peak_memory),
        }
        for repair in repairs
    ]


def _search(report: SearchReport) -> dict[str, Any]:
    return {
        "seconds": round(float(report.seconds), 3),
        "subproblems": report.subproblems,
        "pruned": report.pruned,
        "solved": report.solved,
        "rejections": _rejections(report.rejections),
    }


def _rejections(rejections: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return counted reasons, the most frequent first."""
    ordered = sorted(rejections, key=lambda item: (-item[1], item[0]))
    return [{"reason": reason, "count": number} for reason, number in ordered]
