"""What a DeepSpeed configuration says, where it says it: nothing is made up for ``auto`` or nonsense."""

from __future__ import annotations

from typing import Any

from planner.domain.configuration import Configuration

AUTO = "auto"
"""Value that Transformers and Accelerate replace by the script's; DeepSpeed's classes take their default."""


def given(configuration: Configuration, key: str) -> Any:
    """Return the value at `key` or its default; None where it is ``auto``, null, or unknown."""
    value = configuration.get(key)
    return None if value == AUTO else value


def count(configuration: Configuration, key: str) -> int | None:
    """Return the whole number from 1 on at `key`; None where there is none."""
    value = given(configuration, key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None


def is_true(configuration: Configuration, key: str) -> bool:
    """Return whether `key` is plainly on; ``auto`` is not."""
    return given(configuration, key) is True


def stage(configuration: Configuration) -> int | None:
    """Return the ZeRO stage; None where it is ``auto`` or nonsense. The old form ``true`` means 1."""
    whole = configuration.get("zero_optimization")
    if isinstance(whole, bool):
        return int(whole)
    value = given(configuration, "zero_optimization.stage")
    return value if isinstance(value, int) and value in (0, 1, 2, 3) else None


def tensor_degree(configuration: Configuration) -> int:
    """Return the degree of AutoTP; 1 where it is off."""
    return count(configuration, "tensor_parallel.autotp_size") or 1


def sequence_degree(configuration: Configuration) -> int:
    """Return the degree of Ulysses sequence parallelism."""
    return count(configuration, "sequence_parallel_size") or 1


def num_stages(configuration: Configuration) -> int:
    """Return the pipeline stages that the configuration names."""
    return count(configuration, "pipeline.stages") or 1


def world(configuration: Configuration) -> int | None:
    """Return the number of ranks, where it is known."""
    size = configuration.world.value if configuration.world else None
    return size if isinstance(size, int) and not isinstance(size, bool) and size >= 1 else None


def inner(configuration: Configuration) -> int:
    """Return the ranks of one replica."""
    return tensor_degree(configuration) * sequence_degree(configuration) * num_stages(configuration)


def replicas(configuration: Configuration) -> int | None:
    """Return the degree of data parallelism: of the mesh of Ulysses, else of the world, else of the batch.

    None where it cannot be told. With AutoTP the batch counts every tensor rank, as DeepSpeed does where no ``mpu`` is
    passed.
    """
    size, width = world(configuration), inner(configuration)
    if (written := count(configuration, "data_parallel_size")) and "sequence_parallel_size" in configuration:
        return written
    if size is not None:
        return size // width if size % width == 0 else None
    train, micro, steps = (count(configuration, key) for key in BATCH)
    if not (train and micro and steps) or train % (micro * steps):
        return None
    counted, tensor = train // (micro * steps), tensor_degree(configuration)
    return counted if counted % tensor else counted // tensor


def offload(configuration: Configuration, what: str) -> str:
    """Return where ``optimizer`` or ``param`` is offloaded: ``none``, ``cpu`` or ``nvme``."""
    old = {"optimizer": "cpu_offload", "param": "cpu_offload_param"}[what]
    if is_true(configuration, f"zero_optimization.{old}"):
        return "cpu"
    device = given(configuration, f"zero_optimization.offload_{what}.device")
    return device if device in ("cpu", "nvme") else "none"


BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
"""Global batch, micro-batch, micro-batches: any two define the third."""
