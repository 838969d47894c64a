"""What an Accelerate configuration says, where it says it."""

from __future__ import annotations

from planner.domain.configuration import Configuration

MESH = "parallelism_config"
AXES = ("dp_replicate", "dp_shard", "cp", "sp", "tp")
"""Degrees of the mesh, the outermost first."""
FSDP, DEEPSPEED, MEGATRON = "FSDP", "DEEPSPEED", "MEGATRON_LM"


def kind(configuration: Configuration) -> str:
    """Return the distributed type; empty where it is missing."""
    value = configuration.get("distributed_type")
    return value if isinstance(value, str) else ""


def is_sagemaker(configuration: Configuration) -> bool:
    """Return whether Amazon SageMaker starts the job, with other keys and rules."""
    return bool(configuration.get("compute_environment") == "AMAZON_SAGEMAKER")


def fsdp_version(configuration: Configuration) -> int:
    """Return 1 or 2; 0 where the job is not FSDP."""
    if kind(configuration) != FSDP:
        return 0
    value = configuration.get("fsdp_config.fsdp_version")
    return value if value in (1, 2) else 1


def world(configuration: Configuration) -> int | None:
    """Return the processes of all machines; None where they are not said."""
    return count(configuration, "num_processes")


def count(configuration: Configuration, key: str) -> int | None:
    """Return the whole number from 1 on at `key`, or its default; None where there is none."""
    value = configuration.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 1 else None


def axis_key(axis: str) -> str:
    """Return the key of a degree of the mesh."""
    return f"{MESH}.{MESH}_{axis}_size"


def degree(configuration: Configuration, axis: str) -> int:
    """Return a degree of the mesh; 1 where it is not written."""
    return count(configuration, axis_key(axis)) or 1


def has_mesh(configuration: Configuration) -> bool:
    """Return whether a mesh is described, be all its degrees 1."""
    return bool(configuration.get(MESH))


def megatron(configuration: Configuration, name: str) -> int:
    """Return a degree of the Megatron plugin."""
    return count(configuration, f"megatron_lm_config.megatron_lm_{name}") or 1


def nearest_legal(size: int, unit: int) -> str:
    """Return the multiples of `unit` next to `size`, as text."""
    below = size // unit * unit
    return " or ".join(str(one) for one in (below, below + unit) if one)
