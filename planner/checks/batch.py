"""The micro-batches of all replicas make up the global batch."""

from __future__ import annotations

from planner.checks.base import Check, Context
from planner.errors import Problem


def _check(context: Context) -> tuple[Problem, ...]:
    plan, wanted = context.plan, context.job.global_batch
    factors = {
        "micro_batch": plan.micro_batch,
        "num_microbatches": plan.num_microbatches,
        "num_replicas": plan.num_replicas,
    }
    too_small = [Problem(key, f"is {value}; must be at least 1") for key, value in factors.items() if value < 1]
    if too_small or plan.global_batch == wanted:
        return tuple(too_small)
    product = " x ".join(f"{key} {value}" for key, value in factors.items())
    each = plan.micro_batch * plan.num_replicas
    remedy = f"num_microbatches must be {wanted // each}"
    if wanted % each:
        remedy = f"micro_batch x num_replicas must divide {wanted}"
    return (
        Problem("num_microbatches", f"{product} = {plan.global_batch}, not the global batch of {wanted}; {remedy}"),
    )


BATCH = Check(name="batch", summary="the micro-batches of all replicas make up the global batch", check=_check)
