"""What a configuration of torchtitan means in the planner's words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planner.configurations.base import Setup
from planner.configurations.forms.torchtitan.degrees import (
    CONTEXT,
    EXPERT,
    EXPERT_TENSOR,
    GLOBAL_BATCH,
    LOCAL_BATCH,
    MICRO_BATCH,
    PIPELINE,
    REPLICATE,
    SEQUENCE,
    SHARD,
    TENSOR,
    Degrees,
    degrees,
    is_old,
    micro_batches,
    model_of,
)
from planner.configurations.forms.torchtitan.stages import (
    FOLDED,
    PARTS,
    SCHEDULE,
    SCHEDULE_CSV,
    SCHEDULES,
    layer_numbers,
    schedule_of,
    split,
)
from planner.domain.configuration import Configuration
from planner.errors import Problem, SpecError
from planner.specs.layout import Layout
from planner.specs.problems import shown

RESHARD = "parallelism.fsdp_reshard_after_forward"
SEQUENCE_PARALLEL = "parallelism.enable_sequence_parallel"
MODE, OPTION = "activation_checkpoint.mode", "activation_checkpoint.selective_ac_option"
EVERY = re.compile(r"[0-9]{1,4}")
"""What selective_ac_option is where every n-th layer is recomputed."""
MOST = 10**9
"""Of any number that a plan has."""
PRECISIONS = {"bfloat16": "bf16", "float32": "fp32"}


def setup(configuration: Configuration) -> Setup:
    """Return what a configuration without errors means.

    Raises:
        SpecError: no plan can say it.
    """
    found, model = degrees(configuration), model_of(configuration)
    problems = list(_nonsense(configuration)) or list(_unsayable(configuration, found))
    if problems:
        raise SpecError(problems)
    chunks = _chunks(configuration, found)
    recompute, recomputed = _recompute(configuration, found)
    layout = Layout(
        tp=found.tensor,
        pp=found.pipeline,
        vpp=len(chunks[0]) if chunks else 1,
        dp=found.data,
        cp=found.context,
        ep=found.expert,
        etp=_expert_tensor(configuration, found),
        zero=_zero(configuration, found),
        sp=found.tensor > 1 and (is_old(configuration) or configuration.on(SEQUENCE_PARALLEL)),
        mbs=configuration.number(MICRO_BATCH if found.pipeline > 1 else LOCAL_BATCH, 1),
        gbs=_global_batch(configuration, found),
        seq=configuration.number(SEQUENCE),
        recompute=recompute,
        recompute_layers=recomputed,
        schedule=SCHEDULES[schedule_of(configuration)] if found.pipeline > 1 else None,
        framework="torchtitan",
        chunk_layers=chunks,
    )
    return Setup(
        layout=layout,
        world=found.ranks,
        model=None if model is None else model.config,
        precision=_precision(configuration, found),
        assumed=tuple(_assumed(configuration, found)),
    )


def _problem(configuration: Configuration, key: str, message: str) -> Problem:
    return Problem(str(configuration.spot(key)), f"{configuration.name(key)} {message}")


def _nonsense(configuration: Configuration) -> Iterator[Problem]:
    """Yield numbers that no plan can have."""
    for key in (REPLICATE, SHARD, CONTEXT, TENSOR, PIPELINE, EXPERT, EXPERT_TENSOR, LOCAL_BATCH, MICRO_BATCH, SEQUENCE):
        value = configuration.get(key, 1)
        number = value if isinstance(value, int) and not isinstance(value, bool) else 0
        good = 1 <= number <= MOST or (number == -1 and key == SHARD)
        if not good:
            yield _problem(configuration, key, f"should be a whole number from 1 to {MOST:,}, not {shown(value)}")
    if configuration.number(GLOBAL_BATCH, -1) > MOST:
        yield _problem(configuration, GLOBAL_BATCH, f"is more than {MOST:,} samples")


def _unsayable(configuration: Configuration, found: Degrees) -> Iterator[Problem]:
    """Yield what no plan can say of a configuration whose numbers make sense."""

    def problem(key: str, message: str) -> Problem:
        return _problem(configuration, key, message)

    if configuration.get(MODE) == "memory_budget":
        yield problem(MODE, "memory_budget leaves it to the compiler what is recomputed; write selective, full or none")
    if found.pipeline <= 1:
        return
    if configuration.get(SCHEDULE_CSV):
        message = "gives an order of passes, which is not read back; check the plan file, or name a schedule"
        yield problem(SCHEDULE_CSV, message)
    elif not SCHEDULES.get(schedule_of(configuration)):
        known = ", ".join(SCHEDULES)
        yield problem(SCHEDULE, f"is {configuration.get(SCHEDULE)}, which the planner cannot predict; it knows {known}")
    cut = split(configuration)
    if any(not layer_numbers(part) for part in cut.parts):
        yield problem(PARTS, "leaves a stage without layers, which the planner cannot predict; give each stage a layer")
    elif len(cut.parts) % found.pipeline:
        yield problem(PIPELINE, f"is {found.pipeline}, which does not divide the {len(cut.parts)} stages")
    elif not cut.parts:
        yield problem(PARTS, "is not given and the model's layers are not known; name a flavor, or give the lists")


def _chunks(configuration: Configuration, found: Degrees) -> tuple[tuple[int, ...], ...]:
    """Return the layers of every chunk of every stage; empty without a pipeline."""
    if found.pipeline <= 1:
        return ()
    sizes = [len(layer_numbers(part)) for part in split(configuration).parts]
    if schedule_of(configuration) in FOLDED:
        return tuple(zip(sizes[: found.pipeline], reversed(sizes[found.pipeline :]), strict=False))
    return tuple(tuple(sizes[stage :: found.pipeline]) for stage in range(found.pipeline))


def _zero(configuration: Configuration, found: Degrees) -> int:
    """Return what is sharded: weights too where they are dropped after the forward pass, else gradients.

    LoopedBFS drops those of a chunk after its passes (torch/distributed/pipelining/schedules.py, 2.13), and gathers
    them once a chunk and way where FSDP does not drop them before.
    """
    policy = configuration.get(RESHARD)
    if not found.sharded and (found.replicate > 1 or policy == "default"):
        return 0
    if found.pipeline > 1 and SCHEDULES.get(schedule_of(configuration)) == "breadth-first":
        return 3
    return 3 if policy == "always" or (policy == "default" and found.pipeline == 1) else 2


def _expert_tensor(configuration: Configuration, found: Degrees) -> int | None:
    """Return the tensor degree inside experts: that of 0.2, and 1 since."""
    if found.expert <= 1:
        return None
    return found.expert_tensor if is_old(configuration) else 1


def _global_batch(configuration: Configuration, found: Degrees) -> int | None:
    written = configuration.number(GLOBAL_BATCH, -1)
    if written > 0:
        return written
    return None if found.data is None else found.data * configuration.number(LOCAL_BATCH)


def _recompute(configuration: Configuration, found: Degrees) -> tuple[str, int | None]:
    """Return the policy, and of how many layers of each stage if not of all."""
    mode, option = configuration.get(MODE), str(configuration.get(OPTION))
    if mode != "selective":
        return ("full" if mode == "full" else "none"), None
    if not EVERY.fullmatch(option):
        return "op", None
    every = int(option)
    held = _fewest_layers(configuration, found)
    return ("full", None) if every <= 1 else ("full", held // every) if held else ("none", None)


def _fewest_layers(configuration: Configuration, found: Degrees) -> int:
    """Return the layers of the smallest stage; 0 where the model is not known."""
    model = model_of(configuration)
    chunks = _chunks(configuration, found)
    return min(map(sum, chunks)) if chunks else model.config["num_hidden_layers"] if model else 0


def _precision(configuration: Configuration, found: Degrees) -> str | None:
    """Return what products are computed in; before 0.3 tensor and pipeline ranks without sharding stay in full."""
    if is_old(configuration) and not found.sharded and max(found.tensor, found.pipeline) > 1:
        return PRECISIONS.get(str(configuration.get("training.dtype")))
    return PRECISIONS.get(str(configuration.get("training.mixed_precision_param")))


def _assumed(configuration: Configuration, found: Degrees) -> Iterator[str]:
    """Yield what the layout leaves out, or says otherwise."""
    shards, data = found.shards, found.data
    if found.replicate > 1 and shards is not None and shards > 1:
        yield (
            f"HSDP: weights are shared out over {shards} ranks and copied {found.replicate} times; the plan shares"
            f" them out over all {data}, so that a device needs up to {found.replicate} times the predicted memory"
            " for weights, gradients and optimizer"
        )
    if shards is None:
        yield "data_parallel_shard_degree is -1: data parallelism takes the devices that the other degrees leave"
    if configuration.number(GLOBAL_BATCH, -1) <= 0 and data is None:
        yield "global_batch_size is not given, and depends on the number of devices"
    local, batch = configuration.number(LOCAL_BATCH), _global_batch(configuration, found)
    if found.pipeline > 1 and batch and data and batch > local * data:
        steps, micro = batch // (local * data), micro_batches(configuration)
        yield (
            f"gradients are accumulated over {steps} passes of {micro} micro-batches, between which the pipeline"
            f" drains; the plan runs all {steps * micro} without draining"
        )
    if found.context > 1:
        yield "context ranks gather keys and values; the plan has them go round a ring, which moves as many bytes"
    if configuration.get(MODE) == "selective" and EVERY.fullmatch(str(configuration.get(OPTION))):
        yield f"every {configuration.get(OPTION)}. layer is recomputed; the plan recomputes that share of each stage"
    if configuration.get("training.dtype") == "bfloat16":
        yield "training.dtype bfloat16 keeps no fp32 weights; the plan counts fp32 weights and optimizer states"
    if configuration.on("training.enable_cpu_offload"):
        yield "training.enable_cpu_offload is left out: the plan keeps everything on the devices"
    if EXPERT in configuration and found.expert > 1 and model_of(configuration) is None:
        yield "the model is not known, and so are its experts"
