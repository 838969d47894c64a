"""TT1##: degrees of parallelism and the number of ranks."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.torchtitan.degrees import (
    CONTEXT,
    EXPERT,
    EXPERT_TENSOR,
    PIPELINE,
    REPLICATE,
    SHARD,
    TENSOR,
    degrees,
    is_old,
)
from planner.domain.configuration import NOTE, Configuration

MESH = "torchtitan/distributed/parallel_dims.py at v0.2.2 and v0.3.0 (_validate)"


def _below_one(configuration: Configuration) -> Iterator[Complaint]:
    for key in (REPLICATE, CONTEXT, TENSOR, PIPELINE, EXPERT, EXPERT_TENSOR):
        value = configuration.number(key, 1)
        if value < 1:
            yield key, f"is {value}; write a whole number from 1 on, 1 for none"
    shard = configuration.number(SHARD, -1)
    if shard < 1 and shard != -1:
        yield SHARD, f"is {shard}; write a whole number from 1 on, or -1 for all ranks that are left"


def _other_world(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    if not found.sound or not found.world:
        return
    axes = f"{found.replicate} replicate * {found.context} cp * {found.tensor} tp * {found.pipeline} pp"
    if found.shard == -1:
        if found.world % found.others or found.world < found.others:
            lower = found.world // found.others * found.others
            near = f"{lower} or {lower + found.others}" if lower else str(found.others)
            yield (
                SHARD,
                (
                    f"{found.world} ranks are no multiple of {axes} = {found.others}; run on {near} ranks, or change"
                    " a degree"
                ),
            )
    elif found.others * found.shard != found.world:
        left = found.world // found.others if found.world % found.others == 0 else 0
        remedy = f"write {SHARD.partition('.')[2]} = {left}" if left else "change a degree"
        yield (
            SHARD,
            (
                f"{found.shard} shard * {axes} = {found.others * found.shard} ranks, and the run has {found.world};"
                f" {remedy}"
            ),
        )


def _left_open(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    if found.sound and found.shard == -1:
        meant = f"write {found.shards}" if found.world else "write the number of ranks that are meant"
        yield (
            SHARD,
            (
                f"is -1, all ranks that are left: on another number of GPUs the same file"
                f" trains with another batch, and nothing says so; {meant}"
            ),
        )


def _replicas_alone(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    if not found.sound or found.sharded or found.replicate == 1 or max(found.tensor, found.pipeline) == 1:
        return
    yield (
        REPLICATE,
        (
            f"replicates weights over {found.replicate} ranks beside {found.tensor} tensor and {found.pipeline}"
            f" pipeline ranks, which DDP cannot; write data_parallel_shard_degree = {found.replicate} and"
            " data_parallel_replicate_degree = 1"
        ),
    )


def _waits_for_compile(configuration: Configuration) -> Iterator[Complaint]:
    key = f"{'parallelism' if is_old(configuration) else 'compile'}.enable_async_tensor_parallel"
    parts = configuration.get("compile.components")
    compiled = configuration.on("compile.enable") and isinstance(parts, list) and "model" in parts
    if configuration.on(key) and not compiled:
        yield (
            key,
            "asynchronous tensor parallelism needs a compiled model; write compile.enable = true, with model in it",
        )


RULES = (
    Rule(
        code="TT101",
        name="Degrees are numbers from 1 on",
        summary="every degree >= 1; data_parallel_shard_degree may be -1",
        why="torchtitan asserts it when it builds the mesh, in every process. Only the shard degree may be left open.",
        source=MESH,
        check=_below_one,
    ),
    Rule(
        code="TT102",
        name="The mesh takes all ranks",
        summary="replicate * shard * cp * tp * pp = ranks; expert parallelism takes no ranks of its own",
        why=(
            "torchtitan stops with `Invalid parallel dims` when it builds the mesh. Context ranks take their own"
            " factor: on 8 GPUs shard 8 with cp 8 is 64 ranks, not 8, though weights are shared out over shard * cp."
            " With -1 the quotient is rounded down first, and then the product fails."
        ),
        source=f"{MESH}; github.com/pytorch/torchtitan/issues/1184",
        check=_other_world,
    ),
    Rule(
        code="TT103",
        name="No degree is left open",
        summary="data_parallel_shard_degree is a number, not -1",
        why=(
            "-1 fits any number of ranks that the other degrees divide. In a file that is kept for production or for"
            " CI that hides a lost node: the global batch of -1 follows the ranks, and the learning rate does not."
        ),
        source=f"{MESH}; torchtitan/train.py at v0.2.2 (global_batch_size)",
        check=_left_open,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="TT104",
        name="DDP stands alone",
        summary="replicate > 1 with shard = 1 and cp = 1 needs tp = 1 and pp = 1",
        why=(
            "Up to 0.2 weights that are only replicated go through DDP, which stops with `DDP has not supported > 1D"
            " parallelism`. From 0.3 on the same degrees run as FSDP over one shard."
        ),
        source="torchtitan/models/llama3/infra/parallelize.py at v0.2.2; torchtitan/distributed/fsdp.py at v0.3.0",
        check=_replicas_alone,
        until="0.3",
    ),
    Rule(
        code="TT105",
        name="Asynchronous tensor parallelism is compiled",
        summary="enable_async_tensor_parallel needs compile.enable with model among compile.components",
        why="The collectives are taken apart by the compiler; without it torchtitan stops at the start.",
        source="torchtitan/distributed/tensor_parallel.py at v0.2.2; torchtitan/config/configs.py at v0.3.0",
        check=_waits_for_compile,
    ),
)
