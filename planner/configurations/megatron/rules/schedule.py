"""The interleaved schedule and its transfers."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import SPLITS, Facts
from planner.configurations.megatron.rules.base import PARALLEL, SCHEDULES, rule
from planner.domain.configuration import WARNING

GROUP = "microbatch_group_size_per_vp_stage"
OVERLAP, FLUSH = "overlap_p2p_comm", "overlap_p2p_comm_warmup_flush"
BATCH = ("micro_batch_size", "global_batch_size", "step_batch_size_schedule", "rampup_batch_size")
DEGREES = ("tensor_model_parallel_size", "context_parallel_size")
NEEDS = (*SPLITS, *BATCH, *DEGREES, GROUP)


def _key(facts: Facts) -> str:
    """Return the key that says how many chunks a stage has."""
    keys = ("num_virtual_stages_per_pipeline_rank", "num_layers_per_virtual_pipeline_stage")
    return next((key for key in keys if key in facts.of), "pipeline_model_parallel_layout")


def _steady(facts: Facts) -> bool:
    """Return whether the batch is one number."""
    return facts.value("step_batch_size_schedule") is None and facts.value("rampup_batch_size") is None


def _group(facts: Facts) -> Iterator[Complaint]:
    number, group = facts.microbatches, facts.count(GROUP) or facts.pp
    if facts.vpp < 2 or facts.pp < 2 or not number or not _steady(facts):
        return
    wide = facts.mbs * facts.dp
    rest = number % group
    if group < facts.pp:
        yield GROUP, f"a group of {group} micro-batches is smaller than the {facts.pp} stages; use {facts.pp} or more"
    elif group > number:
        fits = facts.pp * wide
        yield (
            "global_batch_size",
            (
                f"a replica has {number} micro-batches ({facts.gbs} / ({facts.mbs} x {facts.dp})), and {facts.vpp}"
                f" chunks a stage need groups of {group}; write --global-batch-size {fits} or more, or take chunks away"
            ),
        )
    elif 0 < rest < facts.pp:
        below, above = number - rest, number - rest + group
        yield (
            "global_batch_size",
            (
                f"{number} micro-batches leave {rest} for the last group of {group}, and fewer than the {facts.pp}"
                f" stages are refused; write --global-batch-size {below * wide} or {above * wide}"
            ),
        )


def _multiple(facts: Facts) -> Iterator[Complaint]:
    number = facts.microbatches
    if facts.vpp > 1 and facts.pp > 1 and number and _steady(facts) and number % facts.pp:
        wide = facts.mbs * facts.dp
        below, above = number // facts.pp * facts.pp, -(-number // facts.pp) * facts.pp
        listed = " or ".join(str(n * wide) for n in (below, above) if n)
        yield (
            "global_batch_size",
            (
                f"before core 0.10 chunks need a multiple of {facts.pp} micro-batches, and a replica has {number};"
                f" write --global-batch-size {listed}"
            ),
        )


def _two_stages(facts: Facts) -> Iterator[Complaint]:
    if facts.vpp > 1 and facts.pp == 2 and not facts.on(OVERLAP):
        yield (
            OVERLAP,
            (
                "chunks on 2 stages need overlapped transfers, for both neighbours of a stage are the same rank; remove"
                f" {facts.of.name(OVERLAP)}, or use more than 2 stages"
            ),
        )


def _two_stages_once(facts: Facts) -> Iterator[Complaint]:
    if facts.vpp > 1 and facts.pp == 2:
        yield _key(facts), "before core 0.8 chunks need more than 2 stages; use more, or take chunks away"


def _one_stage(facts: Facts) -> Iterator[Complaint]:
    if facts.vpp > 1 and facts.pp == 1:
        yield _key(facts), f"{facts.vpp} chunks a stage need a pipeline; give --pipeline-model-parallel-size 2 or more"


def _few(facts: Facts) -> Iterator[Complaint]:
    number = facts.microbatches
    if facts.pp > 1 and facts.vpp == 1 and 0 < number < facts.pp and _steady(facts):
        wide = facts.mbs * facts.dp
        yield (
            "global_batch_size",
            (
                f"a replica has {number} micro-batches for {facts.pp} stages, so {_share(facts)} of the step is spent"
                f" waiting; {facts.pp * wide} samples or more would fill the pipeline"
            ),
        )


def _share(facts: Facts) -> str:
    """Return the share of the step that stages wait: (p - 1) / (m v + p - 1)."""
    filled = facts.microbatches * max(1, facts.vpp)
    return f"{(facts.pp - 1) / (filled + facts.pp - 1):.0%}"


def _bubble(facts: Facts) -> Iterator[Complaint]:
    number = facts.microbatches
    if facts.pp < 2 or number < facts.pp or not facts.vpp or not _steady(facts):
        return
    share = (facts.pp - 1) / (number * facts.vpp + facts.pp - 1)
    if share > 0.2:
        needed = -(-9 * (facts.pp - 1) // facts.vpp)
        samples = -(-needed // facts.pp) * facts.pp * facts.mbs * facts.dp
        yield (
            "global_batch_size",
            (
                f"{number} micro-batches on {facts.pp} stages{f' of {facts.vpp} chunks' if facts.vpp > 1 else ''} leave"
                f" {share:.0%} of the step waiting; --global-batch-size {samples} brings it below 10%, more chunks too"
            ),
        )


def _flush(facts: Facts) -> Iterator[Complaint]:
    if facts.on(FLUSH) and (facts.vpp == 1 or not facts.on(OVERLAP)):
        yield (
            FLUSH,
            "overlap while the pipeline fills and drains needs overlapped transfers, thus several chunks a stage",
        )


def _deferred(facts: Facts) -> Iterator[Complaint]:
    if facts.on("defer_embedding_wgrad_compute"):
        if facts.pp == 1:
            yield (
                "defer_embedding_wgrad_compute",
                "deferred weight gradients of the embedding need a pipeline; remove it",
            )
        elif not facts.on("gradient_accumulation_fusion"):
            yield "defer_embedding_wgrad_compute", "deferred weight gradients need fused gradient accumulation"


SCHEDULE = (
    rule(
        "MG221",
        "Micro-batches come in whole groups",
        "pp <= G <= M, and M % G = 0 or M % G >= pp",
        _group,
        "Chunks take turns with groups of G micro-batches (--microbatch-group-size-per-virtual-pipeline-stage, by"
        " default pp). The schedule raises in the first step, not at start-up; a last group smaller than the pipeline"
        " would stall it. M need not be a multiple of pp x chunks, as some say.",
        needs=NEEDS,
        source=SCHEDULES,
        since="0.10",
        caught=False,
    ),
    rule(
        "MG222",
        "Micro-batches are a multiple of the stages",
        "M % pp = 0, with chunks",
        _multiple,
        "The older schedule has no incomplete groups (verl-project/verl pull request 1617).",
        needs=NEEDS,
        source="NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/schedules.py, core 0.9",
        until="0.10",
        caught=False,
    ),
    rule(
        "MG223",
        "Chunks on two stages overlap their transfers",
        "chunks, pp = 2 => overlapped transfers",
        _two_stages,
        "Sends to the next and to the previous stage go to the same rank and cannot be told apart unless they are"
        " separate (NVIDIA/Megatron-LM issue 750, commit 152c562).",
        needs=(*SPLITS, OVERLAP),
        since="0.8",
    ),
    rule(
        "MG224",
        "Chunks have more than two stages",
        "chunks => pp > 2",
        _two_stages_once,
        "Two stages were allowed from commit 152c562 on (2024-05, core 0.8; NVIDIA/Megatron-LM issue 750).",
        needs=SPLITS,
        source="NVIDIA/Megatron-LM, megatron/training/arguments.py, core 0.7",
        until="0.8",
    ),
    rule(
        "MG225",
        "Chunks have a pipeline",
        "chunks > 1 => pp > 1",
        _one_stage,
        "With one stage there is nothing to interleave, and validate_args asserts it.",
        needs=SPLITS,
    ),
    rule(
        "MG226",
        "A pipeline is filled",
        "M >= pp",
        _few,
        "The share of a step that stages wait is (pp - 1) / (M + pp - 1) (Narayanan et al. 2021, section 2.2).",
        needs=NEEDS,
        source="Narayanan et al. 2021, Efficient Large-Scale Language Model Training, section 2.2",
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG227",
        "Pipelines wait little",
        "(pp - 1) / (M chunks + pp - 1) <= 20%",
        _bubble,
        "More micro-batches or more chunks shorten the share of filling and draining; a smaller micro-batch too.",
        needs=NEEDS,
        source="Narayanan et al. 2021, Efficient Large-Scale Language Model Training, section 2.2",
        severity="note",
        caught=False,
    ),
    rule(
        "MG228",
        "Overlap of filling and draining has chunks",
        "--overlap-p2p-communication-warmup-flush => chunks",
        _flush,
        "Only the interleaved schedule overlaps transfers; the core raises.",
        needs=(*SPLITS, OVERLAP),
        source=PARALLEL,
    ),
    rule(
        "MG230",
        "Deferred gradients of the embedding have a pipeline",
        "--defer-embedding-wgrad-compute => pp > 1",
        _deferred,
        "They are computed while the pipeline drains, with fused accumulation.",
        needs=SPLITS,
        source=PARALLEL,
    ),
)
