"""Rules of the keys themselves: unknown, misplaced, of a wrong kind."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.accelerate.keys import TABLES, VERSION
from planner.configurations.forms.accelerate.values import DEEPSPEED, FSDP, MEGATRON, fsdp_version, is_sagemaker, kind
from planner.configurations.nested import misfits, unknown
from planner.domain.configuration import NOTE, WARNING, Configuration

CONFIG = f"accelerate {VERSION}, commands/config/config_args.py"
LAUNCH = f"accelerate {VERSION}, commands/launch.py"
_OWNERS = {"fsdp_config": FSDP, "deepspeed_config": DEEPSPEED, "megatron_lm_config": MEGATRON}
_FIRST_VERSION = ("sharding_strategy", "backward_prefetch", "forward_prefetch", "use_orig_params", "sync_module_states")


def _refused(configuration: Configuration) -> Iterator[Complaint]:
    for one in unknown(configuration, TABLES):
        if one.strict and not is_sagemaker(configuration):
            yield one.key, f"Accelerate knows no key {one.key}, and refuses the file{one.hint}"


def _near(configuration: Configuration) -> Iterator[Complaint]:
    for one in unknown(configuration, TABLES):
        if not one.strict and one.near:
            yield one.key, f"Accelerate knows no key {one.key}, and ignores it without a word{one.hint}"


def _ignored(configuration: Configuration) -> Iterator[Complaint]:
    for one in unknown(configuration, TABLES):
        if not one.strict and not one.near:
            yield one.key, f"Accelerate knows no key {one.key}, and ignores it without a word; remove it"


def _from_text(_: Configuration) -> Iterator[Complaint]:
    """Say nothing: what breaks the rule shows when the text is read."""
    yield from ()


def _kinds(configuration: Configuration) -> Iterator[Complaint]:
    unread = {block for block, owner in _OWNERS.items() if kind(configuration) != owner}
    for key, message in misfits(configuration, TABLES, words=("auto",)):
        if key.partition(".")[0] not in unread:
            yield key, message


def _typed(configuration: Configuration) -> Iterator[Complaint]:
    if "distributed_type" not in configuration:
        yield "", "distributed_type is missing, and Accelerate refuses the file; write MULTI_GPU, FSDP or DEEPSPEED"


def _owned(configuration: Configuration) -> Iterator[Complaint]:
    used = kind(configuration)
    for block, owner in _OWNERS.items():
        if used and configuration.get(block) and used != owner:
            yield block, f"{block} is not read with distributed_type {used}; write {owner}, or remove the block"


def _versioned(configuration: Configuration) -> Iterator[Complaint]:
    if fsdp_version(configuration) != 2:
        return
    for name in _FIRST_VERSION:
        key = f"fsdp_config.fsdp_{name}"
        # Loading with little memory needs the launcher to see sync_module_states on, whatever the version.
        if key in configuration and name != "sync_module_states":
            instead = "; fsdp_reshard_after_forward takes its place" if name == "sharding_strategy" else ""
            yield key, f"{key} is of FSDP 1 and does nothing in version 2{instead}; remove it"


def _old(configuration: Configuration) -> Iterator[Complaint]:
    if configuration.get("fp16") is not None:
        yield "fp16", f"fp16 is an old key; write mixed_precision: {'fp16' if configuration.on('fp16') else repr('no')}"
    if configuration.get("dynamo_backend") is not None:
        yield "dynamo_backend", "dynamo_backend is an old key; write dynamo_config: {dynamo_backend: ...}"


RULES = (
    Rule(
        code="AC001",
        name="Outermost keys are known",
        summary="no outermost key that ClusterConfig does not have",
        why="Accelerate raises a ValueError that names the unknown keys before anything starts.",
        source=f"{CONFIG} BaseConfig.from_yaml_file",
        check=_refused,
    ),
    Rule(
        code="AC002",
        name="Keys in blocks are spelt as Accelerate spells them",
        summary="no key of a block is a misspelt known one",
        why=(
            "Keys of blocks are copied onto the arguments of accelerate launch by name. A misspelt one becomes an"
            " argument that nobody reads, and the default stays."
        ),
        source=f"{LAUNCH} _validate_launch_command",
        check=_near,
        caught=False,
    ),
    Rule(
        code="AC003",
        name="Every key in a block is Accelerate's",
        summary="no unknown keys in blocks, which are ignored",
        why="Keys of blocks become arguments of accelerate launch by name, and unknown ones are never read.",
        source=f"{LAUNCH} _validate_launch_command",
        check=_ignored,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="AC004",
        name="Every key stands once",
        summary="no duplicate keys; text that can be read",
        why="The YAML reader of Accelerate keeps the last of two without a word.",
        source=f"{CONFIG} (yaml.safe_load)",
        check=_from_text,
        caught=False,
    ),
    Rule(
        code="AC005",
        name="no is in quotes",
        summary="mixed_precision: 'no', distributed_type: 'NO'",
        why=(
            "YAML 1.1 takes no, off, yes and on for truth values. mixed_precision: no becomes False, and accelerate"
            " launch stops at False.lower()."
        ),
        source=f"{LAUNCH} launch_command; utils/launch.py prepare_multi_gpu_env",
        check=_from_text,
    ),
    Rule(
        code="AC006",
        name="The distributed type is given",
        summary="distributed_type is there",
        why="Accelerate raises a ValueError.",
        source=f"{CONFIG} BaseConfig.process_config",
        check=_typed,
    ),
    Rule(
        code="AC007",
        name="Blocks are of the distributed type",
        summary="fsdp_config with FSDP, deepspeed_config with DEEPSPEED, megatron_lm_config with MEGATRON_LM",
        why="The plugin is made for the distributed type alone; the other blocks are never read.",
        source=f"{LAUNCH} launch_command",
        check=_owned,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="AC008",
        name="Keys are of the version of FSDP",
        summary="fsdp_version 2 => no sharding_strategy, backward_prefetch, forward_prefetch, use_orig_params",
        why="FSDP 2 has no such options. accelerate to-fsdp2 rewrites a file.",
        source=f"accelerate {VERSION}, utils/dataclasses.py FullyShardedDataParallelPlugin; docs FSDP1 vs FSDP2",
        check=_versioned,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="AC009",
        name="No old keys",
        summary="mixed_precision and dynamo_config instead of fp16 and dynamo_backend",
        why="Accelerate translates them, for now.",
        source=f"{CONFIG} BaseConfig.process_config",
        check=_old,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="AC010",
        name="Values are of their kind",
        summary="numbers, switches and choices where the key wants them",
        why="Values go to the processes as text, where the plugins convert them and raise what int() raises.",
        source=f"{LAUNCH}; utils/launch.py, utils/dataclasses.py",
        check=_kinds,
    ),
)
