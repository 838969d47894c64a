"""Rules of the DeepSpeed plugin and of the Megatron plugin."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.accelerate.keys import VERSION
from planner.configurations.forms.accelerate.values import (
    DEEPSPEED,
    MEGATRON,
    count,
    kind,
    megatron,
    nearest_legal,
    world,
)
from planner.domain.configuration import WARNING, Configuration

PLUGIN = f"accelerate {VERSION}, utils/dataclasses.py DeepSpeedPlugin"
MEGATRON_PLUGIN = f"accelerate {VERSION}, utils/dataclasses.py MegatronLMPlugin"
BLOCK, MEGA = "deepspeed_config", "megatron_lm_config"
FILE, STAGE = f"{BLOCK}.deepspeed_config_file", f"{BLOCK}.zero_stage"
CONTEXT, GRANULARITY = f"{MEGA}.megatron_lm_context_parallel_size", f"{MEGA}.megatron_lm_recompute_granularity"
_IN_FILE = (
    "gradient_accumulation_steps",
    "gradient_clipping",
    "zero_stage",
    "offload_optimizer_device",
    "offload_param_device",
    "offload_param_nvme_path",
    "offload_optimizer_nvme_path",
    "zero3_save_16bit_model",
)
"""What the plugin wants in the file of DeepSpeed, where one is named."""


def stage(configuration: Configuration) -> int | None:
    """Return the ZeRO stage of the DeepSpeed plugin; None where another file says it."""
    value = configuration.get(STAGE)
    return value if isinstance(value, int) and FILE not in configuration else None


def _one_place(configuration: Configuration) -> Iterator[Complaint]:
    if kind(configuration) != DEEPSPEED or not configuration.get(FILE):
        return
    keys = [f"{BLOCK}.{name}" for name in _IN_FILE if f"{BLOCK}.{name}" in configuration]
    keys += ["mixed_precision"] if configuration.get("mixed_precision") is not None else []
    for key in keys:
        yield key, f"{key} stands beside {FILE}, and Accelerate refuses both; say it in that file, and remove it here"


def _offload(configuration: Configuration) -> Iterator[Complaint]:
    zero = stage(configuration)
    if kind(configuration) != DEEPSPEED or zero is None:
        return
    for what, least in (("optimizer", 1), ("param", 3)):
        key = f"{BLOCK}.offload_{what}_device"
        device = configuration.get(key)
        if device not in ("cpu", "nvme"):
            continue
        if zero < least:
            yield key, f"{key} {device} does nothing in ZeRO {zero}; write zero_stage {max(least, 2)}, or none"
        elif device == "nvme" and zero < 3:
            yield key, f"{key} nvme works in ZeRO 3 only, not {zero}; write zero_stage 3, or cpu"


def _lost_path(configuration: Configuration) -> Iterator[Complaint]:
    if kind(configuration) != DEEPSPEED or configuration.get(FILE):
        return
    for what in ("optimizer", "param"):
        key = f"{BLOCK}.offload_{what}_device"
        if configuration.get(key) == "nvme":
            effect = f"accelerate launch does not hand offload_{what}_nvme_path on, so that the path is the word none"
            yield key, f"{key} nvme: {effect}; write the path in a DeepSpeed file, and name it as deepspeed_config_file"


def _third_stage(configuration: Configuration) -> Iterator[Complaint]:
    zero = stage(configuration)
    for name in ("zero3_init_flag", "zero3_save_16bit_model"):
        key = f"{BLOCK}.{name}"
        if configuration.get(key) is True and zero is not None and zero != 3 and kind(configuration) == DEEPSPEED:
            yield key, f"{key} does nothing in ZeRO {zero}; write zero_stage 3, or false"


def _steps(configuration: Configuration) -> Iterator[Complaint]:
    for key in (f"{BLOCK}.gradient_accumulation_steps", f"{MEGA}.megatron_lm_num_micro_batches"):
        value = configuration.get(key)
        if key in configuration and isinstance(value, int) and not isinstance(value, bool) and value < 1:
            yield key, f"{key} should be at least 1, not {value}"


def _megatron_world(configuration: Configuration) -> Iterator[Complaint]:
    size = world(configuration)
    if kind(configuration) != MEGATRON or not size:
        return
    context = count(configuration, CONTEXT) or 1
    degrees = {"tp": megatron(configuration, "tp_degree"), "pp": megatron(configuration, "pp_degree"), "cp": context}
    width = degrees["tp"] * degrees["pp"] * degrees["cp"]
    if size % width:
        parts = " x ".join(f"{value} ({name})" for name, value in degrees.items() if value > 1)
        message = f"{size} processes do not divide by {parts}; start {nearest_legal(size, width)}"
        yield MEGA, f"{message}, or change the degrees{_unsaid(configuration)}"


def _unsaid(configuration: Configuration) -> str:
    return "" if CONTEXT in configuration else " (megatron_lm_context_parallel_size is 2 where it is not written)"


def _context(configuration: Configuration) -> Iterator[Complaint]:
    if kind(configuration) == MEGATRON and CONTEXT not in configuration:
        message = "megatron_lm_context_parallel_size is not written, and the plugin takes 2, not 1"
        yield MEGA, f"{message}; write megatron_lm_context_parallel_size: 1 if no context axis is meant"


def _recompute(configuration: Configuration) -> Iterator[Complaint]:
    if kind(configuration) == MEGATRON and GRANULARITY not in configuration:
        message = "megatron_lm_recompute_granularity is not written, and the plugin recomputes every layer in full"
        yield MEGA, f"{message}, a third more work; write selective if that is not meant"


def _sequence(configuration: Configuration) -> Iterator[Complaint]:
    key = f"{MEGA}.megatron_lm_sequence_parallelism"
    if kind(configuration) == MEGATRON and configuration.get(key) is True and megatron(configuration, "tp_degree") == 1:
        yield key, f"{key} does nothing with megatron_lm_tp_degree 1; raise it, or write false"


def _bubble(configuration: Configuration) -> Iterator[Complaint]:
    key = f"{MEGA}.megatron_lm_num_micro_batches"
    stages, steps = megatron(configuration, "pp_degree"), megatron(configuration, "num_micro_batches")
    if kind(configuration) == MEGATRON and stages > 1 and steps < 4 * stages:
        idle = (stages - 1) / (steps + stages - 1)
        message = f"{steps} micro-batches over {stages} stages leave {idle:.0%} of the step idle"
        yield (key if key in configuration else MEGA), f"{message}; write megatron_lm_num_micro_batches {8 * stages}"


RULES = (
    Rule(
        code="AC301",
        name="A step has micro-batches",
        summary="gradient_accumulation_steps >= 1, megatron_lm_num_micro_batches >= 1",
        why="The frameworks divide by them.",
        source="deepspeed runtime/config.py _batch_assertion",
        check=_steps,
    ),
    Rule(
        code="AC302",
        name="Enough micro-batches for the pipeline",
        summary="megatron_lm_num_micro_batches >= 4 x megatron_lm_pp_degree",
        why="A pipeline of P stages idles (P - 1) / (M + P - 1) of a step; the plugin takes M = 1 by default.",
        source=MEGATRON_PLUGIN,
        check=_bubble,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="AC120",
        name="Megatron's degrees divide the world",
        summary="num_processes % (tp x pp x cp) = 0",
        why="Megatron refuses it when its groups are made. The plugin takes cp = 2 where it is not written.",
        source=MEGATRON_PLUGIN,
        check=_megatron_world,
    ),
    Rule(
        code="AC121",
        name="Megatron's context degree is written",
        summary="MEGATRON_LM => megatron_lm_context_parallel_size is there",
        why="The plugin reads MEGATRON_LM_CONTEXT_PARALLEL_SIZE with the default 2.",
        source=MEGATRON_PLUGIN,
        check=_context,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="AC122",
        name="Megatron's sequence parallelism has a tensor axis",
        summary="megatron_lm_sequence_parallelism => megatron_lm_tp_degree > 1",
        why="Megatron switches it off without a word.",
        source="megatron-core 0.19.2, megatron/training/arguments.py validate_args",
        check=_sequence,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="AC610",
        name="One file says how DeepSpeed trains",
        summary="deepspeed_config_file => no zero_stage and its like, no mixed_precision",
        why=(
            "With a file of DeepSpeed's own the plugin refuses what the file should say, mixed_precision included: even"
            " where both say the same."
        ),
        source=f"{PLUGIN}._deepspeed_config_checks; commands/launch.py launch_command",
        check=_one_place,
    ),
    Rule(
        code="AC611",
        name="Offload has its ZeRO stage",
        summary="offload_optimizer_device: ZeRO 1 to 3, nvme ZeRO 3; offload_param_device: ZeRO 3",
        why="DeepSpeed ignores offload that its stage cannot do.",
        source="deepspeed runtime/zero/offload_config.py",
        check=_offload,
        caught=False,
    ),
    Rule(
        code="AC612",
        name="Paths of disks reach DeepSpeed",
        summary="device nvme => deepspeed_config_file",
        why="accelerate launch sets no variable for offload_*_nvme_path, and the plugin takes none for a path.",
        source=f"accelerate {VERSION}, utils/launch.py prepare_deepspeed_cmd_env; {PLUGIN}",
        check=_lost_path,
        caught=False,
    ),
    Rule(
        code="AC613",
        name="zero3 switches are of ZeRO 3",
        summary="zero3_init_flag, zero3_save_16bit_model => zero_stage 3",
        why="The plugin warns and sets them to false.",
        source=PLUGIN,
        check=_third_stage,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="AC614",
        name="Megatron's recompute is chosen",
        summary="MEGATRON_LM => megatron_lm_recompute_granularity is there",
        why="The plugin reads MEGATRON_LM_RECOMPUTE_GRANULARITY with the default full, method uniform, every layer.",
        source=MEGATRON_PLUGIN,
        check=_recompute,
        severity=WARNING,
        caught=False,
    ),
)
