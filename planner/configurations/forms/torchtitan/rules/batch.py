"""TT3##: batch, micro-batches and gradient accumulation."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.torchtitan.degrees import (
    GLOBAL_BATCH,
    LOCAL_BATCH,
    MICRO_BATCH,
    degrees,
    micro_batches,
)
from planner.configurations.forms.torchtitan.stages import SCHEDULE, SINGLE, schedule_of, split
from planner.domain.configuration import NOTE, WARNING, Configuration

TORCH = "torch/distributed/pipelining/schedules.py"
ROUNDS = ("Interleaved1F1B", "InterleavedZeroBubble")


def _no_batch(configuration: Configuration) -> Iterator[Complaint]:
    for key in (LOCAL_BATCH, MICRO_BATCH):
        if configuration.number(key, 1) < 1:
            yield key, f"is {configuration.number(key)}; write a whole number from 1 on"
    if configuration.number(GLOBAL_BATCH, -1) == 0:
        yield GLOBAL_BATCH, "is 0; write the samples of a step, or -1 for local batch times data ranks"


def _uneven_micro_batches(configuration: Configuration) -> Iterator[Complaint]:
    local, micro = configuration.number(LOCAL_BATCH, 1), configuration.number(MICRO_BATCH, 1)
    if degrees(configuration).pipeline > 1 and min(local, micro) >= 1 and local % micro:
        down = local // micro * micro
        near = f"{down} or {down + micro}" if down else str(micro)
        yield (
            LOCAL_BATCH,
            (
                f"local batch {local} is no multiple of the micro-batch of {micro}; write"
                f" {LOCAL_BATCH.partition('.')[2]} = {near}, or a {MICRO_BATCH.partition('.')[2]} that divides"
                f" {local}"
            ),
        )


def _passes(configuration: Configuration) -> tuple[int, int, str]:
    """Return the pipeline ranks, the micro-batches of a pass, and the schedule; the first 1 where there is none."""
    found, number = degrees(configuration), micro_batches(configuration)
    return (found.pipeline if found.sound and number else 1), number, schedule_of(configuration)


def _too_few(configuration: Configuration) -> Iterator[Complaint]:
    pipeline, number, name = _passes(configuration)
    stages = len(split(configuration).parts) or pipeline * (1 if name in SINGLE else 2)
    micro = configuration.number(MICRO_BATCH, 1)
    if pipeline == 1:
        return
    needed = stages if name in {*SINGLE, "DualPipeV"} else 0
    if number < needed:
        other = "; where memory forbids it, Interleaved1F1B runs with fewer" if name in SINGLE else ""
        yield (
            LOCAL_BATCH,
            (
                f"{name} needs a micro-batch for each of {needed} stages, and a local batch of {number * micro} in"
                f" micro-batches of {micro} is {number}; write {LOCAL_BATCH.partition('.')[2]} = {needed * micro} or"
                f" more{other}"
            ),
        )


def _no_rounds(configuration: Configuration) -> Iterator[Complaint]:
    pipeline, number, name = _passes(configuration)
    if pipeline == 1 or name not in ROUNDS:
        return
    rounds = max(1, number // pipeline)
    if number % rounds:
        micro = configuration.number(MICRO_BATCH, 1)
        near = " or ".join(
            str(count * micro) for count in (number // pipeline * pipeline, -(-number // pipeline) * pipeline)
        )
        yield (
            LOCAL_BATCH,
            (
                f"{name} takes micro-batches in {rounds} rounds, and {number} do not divide into them; write"
                f" {LOCAL_BATCH.partition('.')[2]} = {near}"
            ),
        )


def _uneven_steps(configuration: Configuration) -> Iterator[Complaint]:
    found, local = degrees(configuration), configuration.number(LOCAL_BATCH, 1)
    batch = configuration.number(GLOBAL_BATCH, -1)
    if not found.sound or found.data is None or local < 1 or batch < 1:
        return
    share = local * found.data
    if batch % share:
        near = f"{batch // share * share} or {(batch // share + 1) * share}" if batch > share else str(share)
        yield (
            GLOBAL_BATCH,
            (
                f"global batch {batch} is no multiple of local batch {local} times {found.data} data ranks = {share};"
                f" write {GLOBAL_BATCH.partition('.')[2]} = {near}, or another local batch"
            ),
        )


def _bubble(configuration: Configuration) -> Iterator[Complaint]:
    pipeline, number, name = _passes(configuration)
    stages = len(split(configuration).parts)
    if pipeline == 1 or not name or not stages or name in SINGLE or number >= pipeline:
        return
    each = max(1, stages // pipeline)
    idle = (pipeline - 1) / (each * number + pipeline - 1)
    yield (
        SCHEDULE,
        (
            f"{number} micro-batches over {pipeline} pipeline ranks leave each idle for about {idle:.0%} of the step;"
            f" a local batch of {pipeline * configuration.number(MICRO_BATCH, 1)} or more leaves less"
        ),
    )


def _drains(configuration: Configuration) -> Iterator[Complaint]:
    found, local = degrees(configuration), configuration.number(LOCAL_BATCH, 1)
    batch = configuration.number(GLOBAL_BATCH, -1)
    if not found.sound or found.pipeline == 1 or not found.data or local < 1:
        return
    steps, left = divmod(batch, local * found.data)
    if steps > 1 and not left:
        yield (
            GLOBAL_BATCH,
            (
                f"a step is {steps} passes through the pipeline, which drains after each; write"
                f" {LOCAL_BATCH.partition('.')[2]} = {batch // found.data} with the same micro-batch, for one pass"
            ),
        )


RULES = (
    Rule(
        code="TT301",
        name="Batches are numbers from 1 on",
        summary="local_batch_size, pipeline_parallel_microbatch_size >= 1; global_batch_size >= 1 or negative",
        why="torchtitan asserts it when the trainer starts.",
        source="torchtitan/trainer.py at v0.3.0, torchtitan/train.py at v0.2.2",
        check=_no_batch,
    ),
    Rule(
        code="TT302",
        name="Micro-batches divide the local batch",
        summary="with pp > 1: local_batch_size % pipeline_parallel_microbatch_size = 0",
        why="torchtitan refuses; older versions crashed at the loss or hung (8 samples in 3 micro-batches).",
        source=(
            "torchtitan/trainer.py at v0.3.0, pipeline_parallel.py at v0.2.2; github.com/pytorch/torchtitan/issues/775"
        ),
        check=_uneven_micro_batches,
    ),
    Rule(
        code="TT303",
        name="Schedules with one stage a rank get a micro-batch for each stage",
        summary="local_batch_size / microbatch_size >= stages for 1F1B, GPipe and DualPipeV",
        why=(
            "torch refuses since January 2025; before, fewer micro-batches than stages hung without a word."
            " Schedules with several stages a rank take fewer, at the price of idle ranks."
        ),
        source=f"{TORCH}; github.com/pytorch/pytorch/pull/144702, github.com/pytorch/torchtitan/pull/781",
        check=_too_few,
    ),
    Rule(
        code="TT304",
        name="Interleaved schedules get whole rounds",
        summary="M % max(1, M // pp) = 0, M being the micro-batches of a pass",
        why=(
            "torch takes micro-batches in rounds of about one for each rank, and refuses what does not divide into"
            " them."
        ),
        source=TORCH,
        check=_no_rounds,
    ),
    Rule(
        code="TT305",
        name="The global batch is whole passes",
        summary="global_batch_size % (local_batch_size * replicate * shard) = 0",
        why="What is left over would be gradient accumulation; torchtitan asserts that it is a whole number.",
        source="torchtitan/train.py at v0.2.2, torchtitan/trainer.py at v0.3.0",
        check=_uneven_steps,
    ),
    Rule(
        code="TT306",
        name="Ranks have enough micro-batches to do",
        summary="M >= pp",
        why="About (pp - 1) / (v M + pp - 1) of the step each rank waits, v being its stages.",
        source="Narayanan et al. 2021, section 2.2; github.com/pytorch/pytorch/issues/126600",
        check=_bubble,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="TT307",
        name="The pipeline fills once a step",
        summary="global_batch_size = local_batch_size * data ranks, with pp > 1",
        why="Each pass of gradient accumulation fills and drains the pipeline anew, with the bubble of a whole step.",
        source="torchtitan/trainer.py at v0.3.0 (train_step)",
        check=_drains,
        severity=NOTE,
        caught=False,
    ),
)
