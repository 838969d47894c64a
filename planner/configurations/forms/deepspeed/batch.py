"""Rules of the batch: global batch = micro-batch x micro-batches x replicas."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.deepspeed.keys import VERSION
from planner.configurations.forms.deepspeed.values import (
    AUTO,
    BATCH,
    count,
    given,
    inner,
    is_true,
    num_stages,
    replicas,
    stage,
    tensor_degree,
    world,
)
from planner.domain.configuration import WARNING, Configuration

CONFIG = f"deepspeed {VERSION}, deepspeed/runtime/config.py"
TRAIN, MICRO, STEPS = BATCH
FAR = 4096
"""Other numbers of processes that are tried."""


def _product(configuration: Configuration) -> Iterator[Complaint]:
    train, micro, steps = (count(configuration, key) for key in BATCH)
    if not (train and micro and steps):
        return
    size, dp, tensor = world(configuration), replicas(configuration), tensor_degree(configuration)
    if size is None and not count(configuration, "data_parallel_size"):
        if train % (micro * steps):
            near = _both_sides(train, micro * steps)
            yield TRAIN, f"{TRAIN} {train} is no multiple of {micro} ({MICRO}) x {steps} ({STEPS}); write {near}"
        return
    if dp and train not in {micro * steps * dp, micro * steps * dp * tensor}:
        product = f"{micro} ({MICRO}) x {steps} ({STEPS}) x {dp} (replicas) = {micro * steps * dp}"
        yield TRAIN, f"{TRAIN} {train} is not {product}; {_remedies(configuration, train, micro, steps, dp)}"


def _remedies(configuration: Configuration, train: int, micro: int, steps: int, dp: int) -> str:
    """Return what would be right: the same processes with another batch, or other processes with this batch."""
    width, parts = inner(configuration), []
    if train % (micro * steps) == 0:
        meant = train // (micro * steps)
        seen = "; a world of 1 is what is seen without a launcher" if world(configuration) == 1 else ""
        parts.append(f"these three are right for {meant * width} processes: start so many{seen}")
    if train % (micro * dp) == 0:
        parts.append(f"write {STEPS} {train // (micro * dp)}")
    batches = [f"{TRAIN} {micro * steps * dp}"]
    batches += [
        f"{TRAIN} {one} with {STEPS} {one // (micro * dp)}"
        for one in _neighbours(train, micro * dp)
        if one != micro * steps * dp
    ]
    parts.append(f"write {' or '.join(batches)}")
    counts = [_divisor(train // micro, dp, step) for step in (-1, 1)] if train % micro == 0 else []
    others = [(one, train // micro // one) for one in counts if one and one != dp]
    if others:
        listed = " or ".join(f"{one * width} processes with {STEPS} {accumulated}" for one, accumulated in others)
        parts.append(f"keep {train} and start {listed}")
    return "; or ".join(dict.fromkeys(parts))


def _divisor(number: int, start: int, step: int) -> int | None:
    """Return the divisor of `number` that comes next from `start`, downwards or upwards, if it is not far away."""
    candidates = (start + step * distance for distance in range(FAR))
    return next((one for one in candidates if 1 <= one <= number and number % one == 0), None)


def _neighbours(number: int, unit: int) -> list[int]:
    """Return the multiples of `unit` next to `number`."""
    below = number // unit * unit
    return [one for one in dict.fromkeys((below, below + unit * (number % unit > 0))) if one]


def _both_sides(number: int, unit: int) -> str:
    return " or ".join(map(str, _neighbours(number, unit)))


def _counted(configuration: Configuration) -> Iterator[Complaint]:
    train, micro, steps = (count(configuration, key) for key in BATCH)
    dp, tensor = replicas(configuration), tensor_degree(configuration)
    if tensor > 1 and world(configuration) and train and micro and steps and dp and train == micro * steps * dp:
        counted = f"DeepSpeed counts all {dp * tensor} ranks of AutoTP as replicas unless the script passes mpu"
        yield TRAIN, f"{counted}, and wants {TRAIN} {train * tensor} for a batch of {train}; leave {TRAIN} out"


def _divides(configuration: Configuration) -> Iterator[Complaint]:
    train, micro, steps = (count(configuration, key) for key in BATCH)
    dp = replicas(configuration)
    if not train or (micro and steps) or AUTO in (configuration.get(MICRO), configuration.get(STEPS)):
        return
    known = [(name, value) for name, value in ((MICRO, micro), (STEPS, steps), ("replicas", dp)) if value]
    unit = 1
    for _, value in known:
        unit *= value
    if known and train % unit:
        left = MICRO if steps or not micro else STEPS
        parts = " x ".join(f"{value} ({name})" for name, value in known)
        near = _both_sides(train, unit)
        yield TRAIN, f"{TRAIN} {train} does not divide by {parts}, so no {left} makes it; write {TRAIN} {near}"


def _enough(configuration: Configuration) -> Iterator[Complaint]:
    if all(configuration.get(key) is None for key in BATCH[:2]):
        message = f"neither {TRAIN} nor {MICRO} is given, and DeepSpeed needs one of them; write {MICRO}"
        yield (STEPS if STEPS in configuration else ""), message


def _positive(configuration: Configuration) -> Iterator[Complaint]:
    for key in (*BATCH, "sequence_parallel_size", "data_parallel_size"):
        value = given(configuration, key)
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            yield key, f"{key} should be at least 1, not {value}"


def _bubble(configuration: Configuration) -> Iterator[Complaint]:
    stages, steps = num_stages(configuration), count(configuration, STEPS)
    if stages > 1 and steps and steps < 4 * stages:
        idle = (stages - 1) / (steps + stages - 1)
        wanted = f"{4 * stages} leave {(stages - 1) / (5 * stages - 1):.0%}, {8 * stages} {_idle(stages):.0%}"
        message = f"{steps} micro-batches over {stages} stages leave {idle:.0%} of the step idle; {wanted}"
        yield STEPS, message


def _idle(stages: int) -> float:
    return (stages - 1) / (9 * stages - 1)


def _unmanaged(configuration: Configuration) -> Iterator[Complaint]:
    key = "managed_gradient_accumulation"
    if given(configuration, key) is not False:
        return
    if is_true(configuration, "zero_optimization.overlap_comm") and stage(configuration) in (0, 1):
        yield (
            key,
            f"{key} false goes with zero_optimization.overlap_comm only in ZeRO 2 and 3; write overlap_comm false",
        )
    if num_stages(configuration) > 1:
        yield key, f"{key} false does not go with a pipeline; leave it out"
    if is_true(configuration, "compile.deepcompile"):
        yield key, f"{key} false does not go with compile.deepcompile; leave one of the two out"


RULES = (
    Rule(
        code="DS301",
        name="Batch is micro-batch times accumulation times replicas",
        summary=(
            "train_batch_size = train_micro_batch_size_per_gpu x gradient_accumulation_steps x world / (tensor x"
            " sequence x pipeline degree)"
        ),
        why=(
            "DeepSpeed asserts it when it reads the file. The usual causes: another number of GPUs than the file was"
            " written for, or processes that do not see each other (a world of 1). Give two of the three, and it finds"
            " the third. With AutoTP and no mpu DeepSpeed counts every tensor rank as a replica."
        ),
        source=f"{CONFIG} _batch_assertion; bigcode-project/starcoder issue 41, deepspeedai/DeepSpeed issue 6914",
        check=_product,
    ),
    Rule(
        code="DS302",
        name="The batch divides by what is given of it",
        summary="train_batch_size % (what is given of micro-batch, accumulation and replicas) = 0",
        why="DeepSpeed finds the missing part by whole division and then asserts the product.",
        source=f"{CONFIG} _set_batch_related_parameters",
        check=_divides,
    ),
    Rule(
        code="DS303",
        name="A batch is given",
        summary="train_batch_size or train_micro_batch_size_per_gpu",
        why="DeepSpeed asserts that one of them is there.",
        source=f"{CONFIG} _set_batch_related_parameters",
        check=_enough,
    ),
    Rule(
        code="DS304",
        name="Batches and degrees are at least 1",
        summary="train_batch_size, train_micro_batch_size_per_gpu, gradient_accumulation_steps, degrees >= 1",
        why="DeepSpeed asserts it when it reads the file.",
        source=f"{CONFIG} _batch_assertion",
        check=_positive,
    ),
    Rule(
        code="DS305",
        name="Enough micro-batches for the pipeline",
        summary="gradient_accumulation_steps >= 4 x pipeline stages",
        why=(
            "A pipeline of P stages idles (P - 1) / (M + P - 1) of a step with M micro-batches. DeepSpeed's maintainers"
            " advise 8 times as many micro-batches as stages."
        ),
        source="deepspeedai/DeepSpeed issue 4164",
        check=_bubble,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="DS306",
        name="Accumulation that the script manages",
        summary="managed_gradient_accumulation false: no pipeline, no DeepCompile, overlap_comm only in ZeRO 2 and 3",
        why="DeepSpeed asserts it when the engine is built.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/engine.py _do_sanity_check",
        check=_unmanaged,
    ),
    Rule(
        code="DS307",
        name="AutoTP counts every rank",
        summary="autotp_size > 1 without mpu => train_batch_size = micro-batch x accumulation x world",
        why=(
            "The tensor groups are made after the batch is checked, when the world is all that is known. Samples are"
            " still divided over world / autotp_size replicas: the batch of a step is smaller than the key says."
        ),
        source="deepspeed/__init__.py initialize; deepspeed/runtime/config.py DeepSpeedConfig.__init__",
        check=_counted,
        severity=WARNING,
    ),
)
