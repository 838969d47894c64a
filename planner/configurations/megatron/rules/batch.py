"""Batches."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import ARGUMENTS, rule
from planner.domain.configuration import WARNING

DEGREES = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
NEEDS = (*DEGREES, "micro_batch_size", "global_batch_size", "tensor_parallel_num_weight_shards")
CALCULATOR = "NVIDIA/Megatron-LM, megatron/core/num_microbatches_calculator.py, core 0.19.2"


def _given(facts: Facts) -> Iterator[Complaint]:
    if "micro_batch_size" not in facts.of and ("global_batch_size" in facts.of or "num_layers" in facts.of):
        yield (
            "micro_batch_size",
            "--micro-batch-size is missing, and Megatron has no default for it; write 1 to begin with",
        )


def _divides(facts: Facts) -> Iterator[Complaint]:
    width = facts.mbs * facts.dp
    if facts.value("global_batch_size") is None or not width or not facts.gbs or facts.gbs % width == 0:
        return
    if facts.on("decrease_batch_size_if_needed") or facts.value("step_batch_size_schedule"):
        return
    around = [n for n in (facts.gbs // width * width, -(-facts.gbs // width) * width) if n]
    yield (
        "global_batch_size",
        (
            f"{facts.mbs} x {facts.dp} (micro-batch x replicas) = {width} does not divide the global batch of"
            f" {facts.gbs}; write --global-batch-size {' or '.join(map(str, around))}, or use ranks for another number"
            f" of replicas ({facts.world} ranks / {facts.tp * facts.pp * facts.cp})"
        ),
    )


def _missing(facts: Facts) -> Iterator[Complaint]:
    if facts.mbs and "global_batch_size" not in facts.of and facts.value("step_batch_size_schedule") is None:
        count = f" = {facts.mbs * facts.dp}" if facts.dp else ""
        yield (
            "micro_batch_size",
            (
                f"--global-batch-size is not given, so one step is one micro-batch a replica ({facts.mbs} x"
                f" replicas{count}), and changes with the number of ranks"
            ),
        )


def _both(facts: Facts) -> Iterator[Complaint]:
    if facts.value("step_batch_size_schedule") is not None and "global_batch_size" in facts.of:
        yield "step_batch_size_schedule", "a schedule of batches and --global-batch-size both say the batch; keep one"


def _ramp(facts: Facts) -> Iterator[Complaint]:
    ramp, width = facts.value("rampup_batch_size"), facts.mbs * facts.dp
    if not isinstance(ramp, list) or len(ramp) != 3:
        return
    begin, step, samples = ramp
    if not facts.gbs:
        return
    if step < 1 or begin < 1 or samples < 0:
        yield "rampup_batch_size", "--rampup-batch-size is: first batch, increment, samples until the full batch"
    elif begin > facts.gbs or (facts.gbs - begin) % step:
        yield (
            "rampup_batch_size",
            (
                f"from {begin} to {facts.gbs} samples in steps of {step} does not come out; use a step that divides"
                f" {facts.gbs - begin}"
            ),
        )
    elif width and not facts.on("decrease_batch_size_if_needed"):
        wrong = next((size for size in (begin, begin + step) if size < facts.gbs and size % width), None)
        if wrong:
            yield (
                "rampup_batch_size",
                (
                    f"a batch of {wrong} on the way up is no multiple of {width} (micro-batch x replicas); begin with"
                    " and step by multiples of it"
                ),
            )


def _evaluated(facts: Facts) -> Iterator[Complaint]:
    batch = facts.count("eval_global_batch_size") or facts.gbs
    micro = facts.count("eval_micro_batch_size") or facts.mbs
    given = [key for key in ("eval_global_batch_size", "eval_micro_batch_size") if facts.count(key) is not None]
    if given and batch and micro and facts.dp and batch % (micro * facts.dp):
        yield given[0], f"{micro} x {facts.dp} does not divide the evaluation batch of {batch}"


def _iterations(facts: Facts) -> Iterator[Complaint]:
    if facts.value("train_iters") and facts.value("train_samples") and not facts.on("skip_train"):
        yield "train_samples", "--train-iters and --train-samples both say how long to train; keep one"
        return
    by = "train_iters" if facts.value("train_iters") else "train_samples"
    wrong = {
        "train_iters": ("lr_decay_samples", "lr_warmup_samples"),
        "train_samples": ("lr_decay_iters", "lr_warmup_iters"),
    }
    for key in wrong[by] if facts.value(by) and not facts.on("skip_train") else ():
        if facts.value(key):
            right = key.replace("samples", "iters") if by == "train_iters" else key.replace("iters", "samples")
            yield key, f"training is counted by {facts.of.name(by)}; write --{right.replace('_', '-')} instead"


def _warm_up(facts: Facts) -> Iterator[Complaint]:
    if facts.value("lr_warmup_fraction") is not None and (
        facts.value("lr_warmup_iters") or facts.value("lr_warmup_samples")
    ):
        yield "lr_warmup_fraction", "the warm-up is given as a fraction and as a number; keep one"


BATCH = (
    rule(
        "MG301",
        "The micro-batch is given",
        "--micro-batch-size is written",
        _given,
        "validate_args asserts it.",
        needs=NEEDS,
    ),
    rule(
        "MG302",
        "Micro-batches fill the global batch",
        "global batch % (micro-batch x replicas) = 0",
        _divides,
        "Replicas work on equal numbers of micro-batches. The usual causes are ranks that are not those that were"
        " meant, and a batch copied from another cluster (bigcode-project/starcoder issue 41).",
        needs=NEEDS,
        source=CALCULATOR,
    ),
    rule(
        "MG303",
        "The global batch is given",
        "--global-batch-size is written",
        _missing,
        "It defaults to micro-batch x replicas: no accumulation, an idle pipeline, and another training for every"
        " number of ranks.",
        needs=NEEDS,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG304",
        "The batch is said one way",
        "--step-batch-size-schedule => no --global-batch-size",
        _both,
        "parse_args notes whether the global batch was written, and validate_args raises.",
        needs=NEEDS,
    ),
    rule(
        "MG305",
        "A ramp of batches comes out",
        "(global - first) % step = 0, every batch % (micro x replicas) = 0",
        _ramp,
        "It is asserted, for the later batches only when training comes to them.",
        needs=NEEDS,
        source=CALCULATOR,
        caught=False,
    ),
    rule(
        "MG306",
        "Micro-batches fill the evaluation batch",
        "evaluation batch % (its micro-batch x replicas) = 0",
        _evaluated,
        "validate_args asserts it.",
        needs=NEEDS,
    ),
    rule(
        "MG307",
        "Training is counted one way",
        "iterations or samples, with their own schedules",
        _iterations,
        "validate_args asserts that schedules are counted as the training is.",
        source=ARGUMENTS,
    ),
    rule("MG308", "The warm-up is given one way", "a fraction or a number", _warm_up, "validate_args asserts it."),
)
