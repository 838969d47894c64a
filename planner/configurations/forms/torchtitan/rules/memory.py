"""TT6##: sharding, recompute, offload and checkpoints."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.torchtitan.degrees import degrees
from planner.configurations.forms.torchtitan.setup import EVERY, MODE, OPTION, RESHARD
from planner.domain.configuration import NOTE, WARNING, Configuration

OFFLOAD = "training.enable_cpu_offload"
PRECISION = "training.mixed_precision_param"
CHECKPOINT = "checkpoint.enable"


def _not_compiled(configuration: Configuration) -> Iterator[Complaint]:
    parts = configuration.get("compile.components")
    compiled = configuration.on("compile.enable") and isinstance(parts, list) and "model" in parts
    if configuration.get(MODE) == "memory_budget" and not compiled:
        yield (
            MODE,
            "a memory budget is kept by the compiler; write compile.enable = true, with model in compile.components",
        )


def _option(configuration: Configuration) -> Iterator[Complaint]:
    written = str(configuration.get(OPTION))
    if configuration.get(MODE) == "selective" and written != "op" and not EVERY.fullmatch(written):
        yield OPTION, f'selective_ac_option {written!r} is neither "op" nor a number in quotes, such as "2"'


def _in_full(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    if not found.sound or found.sharded or max(found.tensor, found.pipeline) == 1:
        return
    plain = configuration.get("training.dtype") == "float32" and configuration.get(PRECISION) == "bfloat16"
    if plain:
        yield (
            PRECISION,
            (
                "has no effect without sharding: tensor and pipeline ranks alone compute in float32; write"
                " data_parallel_shard_degree = 2 or more, or training.dtype = bfloat16"
            ),
        )


def _not_offloaded(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    if configuration.on(OFFLOAD) and found.sound and not found.sharded:
        yield (
            OFFLOAD,
            "has no effect without sharding: nothing is offloaded; write data_parallel_shard_degree = 2 or more",
        )


def _gathers_often(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    if found.sound and found.pipeline > 1 and found.sharded and configuration.get(RESHARD) == "always":
        yield (
            RESHARD,
            (
                "always gathers the weights of a stage anew for every micro-batch and way; default and never gather"
                " them once a step, and hold them"
            ),
        )


def _same_ranks(configuration: Configuration) -> Iterator[Complaint]:
    excluded = configuration.get("checkpoint.exclude_from_loading")
    data = degrees(configuration).data
    if configuration.on(CHECKPOINT) and not (isinstance(excluded, list) and "dataloader" in excluded):
        ranks = f", here {data}," if data else ""
        yield (
            CHECKPOINT,
            (
                f"a checkpoint resumes with the same number of data ranks{ranks} alone, since the state of the data"
                " loader is not"
                ' cut anew; checkpoint.exclude_from_loading = ["dataloader"] resumes with others, and starts the'
                " data over"
            ),
        )


RULES = (
    Rule(
        code="TT601",
        name="A memory budget is compiled",
        summary="activation checkpointing by memory budget needs compile.enable with model in compile.components",
        why="The compiler decides what is recomputed; torchtitan stops without it.",
        source="torchtitan/distributed/activation_checkpoint.py at v0.2.2, torchtitan/trainer.py at v0.3.0",
        check=_not_compiled,
    ),
    Rule(
        code="TT602",
        name="Selective checkpointing says what it selects",
        summary='selective_ac_option is "op" or a number in quotes',
        why="torchtitan stops with `Invalid selective AC option`.",
        source="torchtitan/distributed/activation_checkpoint.py at v0.2.2",
        check=_option,
        until="0.3",
    ),
    Rule(
        code="TT603",
        name="Mixed precision takes effect",
        summary="shard * cp > 1, or neither tensor nor pipeline ranks",
        why=(
            "Up to 0.2 FSDP does mixed precision, or autocast on a single device and with DDP. With tensor or"
            " pipeline ranks and nothing sharded torchtitan logs that mixed precision is disabled, and trains in"
            " float32: about twice the memory of activations, and a fraction of the speed."
        ),
        source="torchtitan/distributed/utils.py at v0.2.2 (maybe_enable_amp)",
        check=_in_full,
        severity=WARNING,
        until="0.3",
        caught=False,
    ),
    Rule(
        code="TT604",
        name="Offload takes effect",
        summary="enable_cpu_offload needs shard * cp > 1",
        why="Up to 0.2 offload is a policy of FSDP, which is not applied where nothing is sharded.",
        source="torchtitan/models/llama3/infra/parallelize.py at v0.2.2",
        check=_not_offloaded,
        severity=WARNING,
        until="0.3",
        caught=False,
    ),
    Rule(
        code="TT605",
        name="Stages gather their weights once a step",
        summary="fsdp_reshard_after_forward is not always with pp > 1",
        why="Each micro-batch gathers weights forward and backward, which the pipeline cannot hide.",
        source="torchtitan/distributed/fsdp.py at v0.3.0 (get_fsdp_reshard_after_forward_policy)",
        check=_gathers_often,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="TT606",
        name="Checkpoints resume on as many data ranks",
        summary="replicate * shard stays what it was when the checkpoint was saved",
        why=(
            "Weights and optimizer are cut anew for other degrees; the data loader's state is not. Since February"
            " 2025 torchtitan stops there; before, it skipped data without a word."
        ),
        source="torchtitan/components/dataloader.py at v0.3.0; github.com/pytorch/torchtitan/pull/816",
        check=_same_ranks,
        severity=NOTE,
        caught=False,
    ),
)
