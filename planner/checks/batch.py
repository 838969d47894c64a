"""The micro-batches of all replicas make up the global batch."""

from __future__ import annotations

from collections.abc import Iterator

from planner.checks.base import Check, Context, places
from planner.domain.plan import Plan
from planner.errors import Problem


def _check(context: Context) -> tuple[Problem, ...]:
    plan, wanted = context.plan, context.job.global_batch
    problems = [problem for prefix, pipeline in context.pipelines() for problem in _own_problems(prefix, pipeline)]
    if problems or plan.global_batch == wanted:
        return tuple(problems)
    if not plan.has_even_replicas:
        works = " and ".join(
            f"{one.micro_batch} x ({one.num_microbatches} x {one.num_replicas} - {one.short_replicas})"
            for one in plan.pipelines
        )
        message = f"{works} = {plan.global_batch} samples (micro_batch x (num_microbatches x num_replicas -"
        return (Problem("num_microbatches", f"{message} short_replicas)), not the global batch of {wanted}"),)
    product = f"micro_batch {plan.micro_batch} x num_microbatches {plan.num_microbatches}"
    each = plan.micro_batch * plan.num_replicas
    remedy = f"num_microbatches must be {wanted // each}"
    if wanted % each:
        remedy = f"micro_batch x num_replicas must divide {wanted}"
    total = f"{product} x num_replicas {plan.num_replicas} = {plan.global_batch}"
    return (Problem("num_microbatches", f"{total}, not the global batch of {wanted}; {remedy}"),)


def _own_problems(prefix: str, plan: Plan) -> Iterator[Problem]:
    """Yield what is wrong with the numbers of one kind of pipeline, whatever the global batch."""
    for key in ("micro_batch", "num_microbatches", "num_replicas"):
        value = getattr(plan, key)
        if value < 1:
            yield Problem(f"{prefix}{key}", f"is {value}; must be at least 1")
    short, most = plan.short_replicas, plan.num_replicas - 1 if plan.num_microbatches > 1 else 0
    if not 0 <= short <= max(0, most):
        message = f"is {short}; must be 0 to {max(0, most)}: fewer than the replicas, each with a micro-batch left"
        yield Problem(f"{prefix}short_replicas", message)
    for place, stage in places(plan, prefix, "split"):
        if stage.split < 1 or plan.micro_batch % stage.split:
            yield Problem(place, f"is {stage.split}; must divide the micro-batch of {plan.micro_batch}")


BATCH = Check(
    code="PL102",
    name="batch",
    summary="the micro-batches of all replicas make up the global batch",
    why="The optimizer sees another number of samples than the job says; its learning rate no longer fits them.",
    check=_check,
)
