"""What torchtitan has to be told of a plan, by the keys of its configuration, and what it cannot be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from planner.configurations.forms.torchtitan.catalog import Flavor, flavors
from planner.domain.plan import Plan
from planner.errors import CannotExpress
from planner.parallelism import ZERO_STAGES
from planner.schedules import INPUT, SCHEDULES, csv_text, loop, schedule_of
from planner.specs.plan import PlanFile

NAMES = {listed.name: dict(listed.runs_as).get("torchtitan", "") for listed in SCHEDULES}
"""What PyTorch calls schedules; empty where it has none of their kind."""
PASSES_FILE = "plan_passes.csv"
"""What has the order of passes of a plan with one of its own; beside the configuration, where the run is started."""
PRECISIONS = {"bf16": "bfloat16", "fp32": "float32"}
POLICIES = {"none": "none", "op": "selective"}
SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "vocab_size",
    "tie_word_embeddings",
)
"""What must be equal in two models of a family."""


def model_flavor(file: PlanFile, version: str) -> Flavor | None:
    """Return the flavor whose sizes are those of the plan's model; None if there is none."""
    spec = dict(file.model.spec)
    if spec.get("attention_bias") or spec.get("mlp_bias") or spec.get("vocab_size_padded", 0) != 0:
        return None
    for flavor in flavors(version):
        config = flavor.config
        width = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
        same = all(config.get(key) == spec.get(key) for key in SIZES) and spec.get("head_dim") == width
        if config["model_type"] == file.model.family and same:
            return flavor
    return None


def settings(file: PlanFile, head: str) -> dict[str, Any]:
    """Return every value that the plan decides, by its dotted key; activation checkpointing under its name of 0.2.

    Args:
        file: a sound plan that the framework's capability admits.
        head: name of the module of the head.
    """
    plan = file.plan
    strategy = plan.stages[0].strategy
    replicated = plan.zero_stage == 0
    local = plan.micro_batch * (plan.num_microbatches if plan.num_stages > 1 else 1)
    return {
        "training.local_batch_size": local,
        "training.global_batch_size": plan.global_batch,
        "training.seq_len": file.job.sequence,
        "training.mixed_precision_param": PRECISIONS[file.job.precision],
        "parallelism.data_parallel_replicate_degree": plan.num_replicas if replicated else 1,
        "parallelism.data_parallel_shard_degree": 1 if replicated else plan.num_replicas,
        "parallelism.fsdp_reshard_after_forward": _reshard(plan),
        "parallelism.tensor_parallel_degree": strategy.degree("tp"),
        "parallelism.context_parallel_degree": strategy.degree("cp"),
        "parallelism.pipeline_parallel_degree": plan.num_stages,
        "parallelism.expert_parallel_degree": 1,
        **(_pipeline(plan, head) if plan.num_stages > 1 else {}),
        "activation_checkpoint.mode": _mode(plan),
        "compile.enable": not _splits(plan),
    }


def _reshard(plan: Plan) -> str:
    """Return when whole weights are dropped: with LoopedBFS the schedule does it, a chunk after its passes."""
    if plan.zero_stage and plan.num_stages > 1 and schedule_of(plan).gathers_once:
        return "never"
    return {3: "always", 2: "never"}.get(plan.zero_stage, "default")


def _pipeline(plan: Plan, head: str) -> dict[str, Any]:
    return {
        "parallelism.pipeline_parallel_schedule": _name(plan),
        **({"parallelism.pipeline_parallel_schedule_csv": PASSES_FILE} if _is_written_out(plan) else {}),
        "parallelism.pipeline_parallel_microbatch_size": plan.micro_batch,
        "parallelism.module_fqns_per_model_part": modules(plan, head),
    }


def _is_written_out(plan: Plan) -> bool:
    """Tell whether PyTorch has no name for the order of the passes, and reads it from a file."""
    return plan.num_stages > 1 and not NAMES.get(plan.schedule)


def _name(plan: Plan) -> str:
    """Return PyTorch's schedule; of passes that are written out, one that lays its stages out as the plan does."""
    if not _is_written_out(plan):
        return NAMES[plan.schedule]
    if plan.virtual_stages == 1:
        return NAMES["1f1b"]
    return NAMES["interleaved" if schedule_of(plan).placement is loop else "zbv"]


def passes_text(plan: Plan) -> str:
    """Return the passes of every rank, as PyTorch reads them; empty if it has a name for them."""
    return csv_text(schedule_of(plan), plan.num_stages, plan.num_microbatches) if _is_written_out(plan) else ""


def modules(plan: Plan, head: str) -> list[list[str]]:
    """Return the names of the modules of every stage of torchtitan's, in the order of the layers: chunk by chunk."""
    listed, stages = schedule_of(plan), plan.num_stages
    numbers = range(plan.virtual_stages * stages)
    runs = [plan.stages[listed.rank(number, 0, stages)].chunks[number // stages] for number in numbers]
    names = [[f"layers.{number}" for number in range(first, last + 1)] for first, last in runs]
    names[0].insert(0, "tok_embeddings")
    names[-1] += ["norm", head]
    return names


def _splits(plan: Plan) -> bool:
    """Return whether backward passes run in two parts, which a compiled model cannot."""
    listed = schedule_of(plan)
    return plan.num_stages > 1 and any(
        INPUT in listed.order(rank, plan.num_stages, plan.num_microbatches) for rank in range(plan.num_stages)
    )


def _mode(plan: Plan) -> str:
    """Return the mode of activation checkpointing; all stages have the same."""
    stage = plan.stages[0]
    return "full" if stage.num_recomputed else POLICIES[stage.recompute]


def refuse(target: str, reasons: Iterator[str]) -> None:
    """Stop where there are reasons to.

    Raises:
        CannotExpress: with every reason.
    """
    if found := list(reasons):
        raise CannotExpress(target, found)


def reasons(file: PlanFile) -> Iterator[str]:
    """Yield what no version of torchtitan can be told, beyond what the framework's capability says."""
    from planner.placement import place

    plan, job = file.plan, file.job
    tensor = plan.stages[0].strategy.degree("tp")
    order = place(plan, file.cluster, file.model, job).order
    if order != "tp-cp-dp-pp":
        yield f"the plan counts its ranks {order}, and torchtitan only tp-cp-dp-pp"
    if job.precision not in PRECISIONS:
        known = " or ".join(PRECISIONS)
        yield f"{job.precision} is no precision that the export can ask torchtitan for; plan with {known}"
    if any(stage.num_recomputed < stage.num_layers and stage.recompute not in POLICIES for stage in plan.stages):
        yield "torchtitan does not recompute attention's scores alone; plan with `recompute != selective`"
    if plan.num_stages > 1 and plan.schedule in {"1f1b", "gpipe"} and plan.num_microbatches < plan.num_stages:
        yield (
            f"{NAMES[plan.schedule]} needs as many micro-batches as stages, and the plan has"
            f" {plan.num_microbatches} for {plan.num_stages}; plan with `schedule = interleaved`, fewer stages or a"
            " larger batch"
        )
    shards = ZERO_STAGES[plan.zero_stage]
    if plan.num_stages > 1 and schedule_of(plan).gathers_once and shards.gradients and not shards.weights:
        yield f"{NAMES[plan.schedule]} drops the weights of a chunk after its passes; plan with `zero = 3`"
    heads = dict(file.model.spec).get("num_key_value_heads")
    if isinstance(heads, int) and heads % tensor:
        yield f"tensor degree {tensor} does not divide the {heads} heads of keys and values; plan with a tp that does"


def uneven_sequence(file: PlanFile, parts: int, what: str) -> Iterator[str]:
    """Yield that the sequence is not cut evenly, if it is not."""
    if file.job.sequence % parts:
        yield f"sequence {file.job.sequence:,} is no multiple of {parts}, {what}; plan with a sequence that is"


def shown(values: Mapping[str, Any], table: str) -> dict[str, Any]:
    """Return the values of one table, by the key inside it."""
    return {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{table}.")}
