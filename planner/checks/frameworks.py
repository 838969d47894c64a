"""Which frameworks can run a plan, and why others cannot, from what each framework's profile says it can carry."""

from __future__ import annotations

from collections.abc import Iterable

from planner.domain.cluster import Cluster
from planner.domain.framework import Capability, Framework
from planner.domain.plan import Plan
from planner.parallelism import AXES, weight_copies
from planner.schedules import schedule_of


def refusals(plan: Plan, framework: Framework, cluster: Cluster) -> tuple[str, ...]:
    """Return the reasons why `framework` cannot run `plan` on `cluster`; none if it can."""
    can = framework.can
    uneven = (
        (can.tensor_parallel, any(stage.strategy.degree("tp") > 1 for stage in plan.all_stages), "tensor parallelism"),
        (
            can.sequence_parallel,
            any(s.strategy.sequence_parallel and s.strategy.degree("tp") > 1 for s in plan.all_stages),
            "sequence parallelism of the tensor axis",
        ),
        (
            can.uneven_layers,
            _differ(size for stage in plan.all_stages for size in stage.chunk_sizes),
            "stages with unlike numbers of layers",
        ),
        (
            can.uneven_tensor_parallel,
            _differ(stage.strategy.degree("tp") for stage in plan.all_stages),
            "stages with unlike tensor degrees",
        ),
        (can.uneven_recompute, _has_uneven_recompute(plan), "stages that recompute unlike numbers of layers"),
        (
            can.partial_recompute,
            any(0 < stage.num_recomputed < stage.num_layers for stage in plan.all_stages),
            "stages that recompute some of their layers in full and others not",
        ),
        (can.mixed_devices, _differ(_device(stage.group, cluster) for stage in plan.all_stages), "unlike devices"),
        (
            can.uneven_data_parallel,
            any(stage.split > 1 for stage in plan.all_stages),
            "stages that divide micro-batches unlike ways",
        ),
        (
            can.uneven_replicas,
            bool(plan.other_pipelines or plan.short_replicas),
            "replicas with unlike shares of the batch",
        ),
        (False, _mixes_policies(plan), "selective recompute beside full recompute or none"),
    )
    reasons = [
        *_pipeline_reasons(plan, framework),
        *_tensor_reasons(plan, can),
        *_context_reasons(plan, can),
        *(text for able, used, text in uneven if used and not able),
    ]
    used = {stage.group for stage in plan.all_stages}
    vendors = {group.device.vendor for group in cluster.groups if group.name in used} - {""}
    if len(vendors) > 1 and not can.several_vendors:
        reasons.append(f"devices of several vendors ({', '.join(sorted(vendors))})")
    return tuple(f"{framework.name} cannot run {reason}" for reason in reasons)


def runs_on(plan: Plan, frameworks: Iterable[Framework], cluster: Cluster) -> tuple[str, ...]:
    """Return the names of the frameworks that can run `plan` on `cluster`."""
    return tuple(framework.name for framework in frameworks if not refusals(plan, framework, cluster))


def _pipeline_reasons(plan: Plan, framework: Framework) -> list[str]:
    """Return what of pipeline, schedule and ZeRO stage is out of reach."""
    alone, can = _alone(plan), framework.can
    known = plan.schedule in can.schedules
    other = f"schedule {plan.schedule}" + f" (only {', '.join(can.schedules)})" * bool(can.schedules)
    if plan.num_stages <= 1:
        reasons = [] if known or _accumulates(plan) else [other]
        return reasons if alone or plan.zero_stage in can.zero_stages else [*reasons, f"ZeRO stage {plan.zero_stage}"]
    if not can.zero_stages_pipeline:
        return [f"a pipeline ({plan.num_stages} stages)"]
    reasons = []
    if not known:
        reasons.append(other)
    elif plan.microbatch_group and framework.name not in dict(schedule_of(plan).runs_as):
        reasons.append(f"micro-batches in groups of {plan.microbatch_group} (only of as many as there are stages)")
    if not alone and plan.zero_stage not in can.zero_stages_pipeline:
        possible = ", ".join(str(stage) for stage in can.zero_stages_pipeline)
        reasons.append(f"ZeRO stage {plan.zero_stage} with pipeline stages (only {possible})")
    return reasons


def _accumulates(plan: Plan) -> bool:
    """Return whether a single stage runs one micro-batch after the other and updates once, whatever its schedule."""
    listed = schedule_of(plan)
    return not listed.changes_semantics and listed.in_flight(0, 1, plan.num_microbatches) == 1


def _tensor_reasons(plan: Plan, can: Capability) -> list[str]:
    """Return what of ZeRO with tensor ranks is out of reach, where the framework has both."""
    cut = any(stage.strategy.degree("tp") > 1 for stage in plan.all_stages)
    able = can.zero_stages_pipeline if plan.num_stages > 1 else can.zero_stages
    reached = plan.zero_stage in can.tp_zero_stages or plan.zero_stage not in able
    if not can.tensor_parallel or not cut or reached or _alone(plan):
        return []
    sharded = ", ".join(map(str, can.tp_zero_stages))
    return [f"tensor parallelism with ZeRO stage {plan.zero_stage} (only {sharded})"]


def _alone(plan: Plan) -> bool:
    """Return whether no weights are shared with others, so that all ZeRO stages are the same."""
    copies = max((weight_copies(AXES, stage.strategy) for stage in plan.all_stages), default=1)
    return plan.num_replicas * copies == 1


def _context_reasons(plan: Plan, can: Capability) -> list[str]:
    """Return what of the context axis is out of reach; no framework has stages that are unlike in it."""
    used = {(stage.strategy.degree("cp"), stage.strategy.cp_comm_type) for stage in plan.all_stages}
    kinds = {kind for degree, kind in used if degree > 1}
    if not kinds:
        return []
    if not can.cp_comm_types:
        return ["context parallelism"]
    possible = can.cp_comm_types_pipeline if plan.num_stages > 1 else can.cp_comm_types
    where = " with pipeline stages" if plan.num_stages > 1 else ""
    only = f" (only {', '.join(possible)})" if possible else ""
    reasons = [f"context parallelism by {kind}{where}{only}" for kind in sorted(kinds - set(possible))]
    if plan.zero_stage not in can.cp_zero_stages:
        sharded = ", ".join(map(str, can.cp_zero_stages))
        reasons.append(f"context parallelism with ZeRO stage {plan.zero_stage} (only {sharded})")
    return [*reasons, "stages with unlike context degrees"] if len(used) > 1 else reasons


def _differ(values: Iterable[object]) -> bool:
    return len(set(values)) > 1


def _has_uneven_recompute(plan: Plan) -> bool:
    """Return whether one setting for all stages cannot say what is recomputed: every layer of every stage is one."""
    if all(stage.num_recomputed == stage.num_layers for stage in plan.all_stages):
        return False
    return _differ((stage.recompute, stage.num_recomputed) for stage in plan.all_stages)


def _mixes_policies(plan: Plan) -> bool:
    """Return whether layers that are not fully recomputed have unlike policies, or full ones stand beside selective.

    Frameworks have one policy for all layers, or a number of layers that are recomputed in full and no other policy.
    """
    left = {stage.recompute for stage in plan.all_stages if stage.num_recomputed < stage.num_layers}
    return len(left) > 1 or bool(left - {"none"} and any(stage.num_recomputed for stage in plan.all_stages))


def _device(group: str, cluster: Cluster) -> str:
    """Return the name of the group's device, or what tells an unknown group from all others."""
    return next((known.device.name for known in cluster.groups if known.name == group), f"group {group}")
