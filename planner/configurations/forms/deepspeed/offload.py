"""Rules of offload: what may be moved to the host or to disks, in which ZeRO stage."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.deepspeed.keys import VERSION
from planner.configurations.forms.deepspeed.values import given, is_true, offload, stage
from planner.domain.configuration import Configuration

ZERO = f"deepspeed {VERSION}, deepspeed/runtime/zero/config.py"
OFFLOAD = f"deepspeed {VERSION}, deepspeed/runtime/zero/offload_config.py"
OPTIMIZER, PARAM = "zero_optimization.offload_optimizer", "zero_optimization.offload_param"


def _spot(configuration: Configuration, block: str) -> str:
    return f"{block}.device" if f"{block}.device" in configuration else block


def _optimizer(configuration: Configuration) -> Iterator[Complaint]:
    where, zero = offload(configuration, "optimizer"), stage(configuration)
    key = _spot(configuration, OPTIMIZER)
    if where != "none" and zero == 0:
        yield key, f"offload_optimizer ({where}) does nothing in ZeRO 0; write zero_optimization.stage 1, 2 or 3"
    elif where == "nvme" and zero in (1, 2):
        yield key, f"offload_optimizer to nvme works in ZeRO 3 only, not {zero}; write stage 3, or device cpu"


def _param(configuration: Configuration) -> Iterator[Complaint]:
    where, zero = offload(configuration, "param"), stage(configuration)
    if where != "none" and zero is not None and zero < 3:
        key = _spot(configuration, PARAM)
        yield (
            key,
            f"offload_param ({where}) does nothing in ZeRO {zero}; write zero_optimization.stage 3, or leave it out",
        )


def _path(configuration: Configuration) -> Iterator[Complaint]:
    for what, block in (("optimizer", OPTIMIZER), ("param", PARAM)):
        if offload(configuration, what) == "nvme" and not configuration.get(f"{block}.nvme_path"):
            yield f"{block}.device", f"{block}.device nvme needs {block}.nvme_path, a folder on a local disk"


def _ratio(configuration: Configuration) -> Iterator[Complaint]:
    key = f"{OPTIMIZER}.ratio"
    ratio, zero = given(configuration, key), stage(configuration)
    if key not in configuration or isinstance(ratio, bool) or not isinstance(ratio, (int, float)):
        return
    if not 0 <= ratio <= 1:
        yield key, f"{key} should be from 0 to 1, not {ratio}"
    elif ratio < 1 and zero is not None and zero < 3:
        yield key, f"{key} {ratio}: a part can be offloaded in ZeRO 3 only, not {zero}; write ratio 1.0, or stage 3"


def _super(configuration: Configuration) -> Iterator[Complaint]:
    key, zero = f"{OPTIMIZER}.super_offload", stage(configuration)
    if is_true(configuration, key) and (zero in (0, 1, 2) or offload(configuration, "optimizer") != "cpu"):
        yield key, f"{key} works in ZeRO 3 with device cpu only; write stage 3 and device cpu, or leave it out"


def _masters(configuration: Configuration) -> Iterator[Complaint]:
    zero, where = stage(configuration), offload(configuration, "optimizer")
    for key in (
        "fp16.fp16_master_weights_and_grads",
        "bf16.bf16_master_weights_and_grads",
        "bf16.bf16_optimizer_states",
    ):
        if is_true(configuration, key) and zero == 0:
            yield key, f"{key} works in ZeRO 1, 2 and 3 only; write zero_optimization.stage 1 or more, or leave it out"
    key = "fp16.fp16_master_weights_and_grads"
    if is_true(configuration, key) and is_true(configuration, "fp16.enabled") and zero and where == "none":
        yield key, f"{key} needs offload_optimizer to the cpu (DeepSpeedCPUAdam); write it, or leave {key} out"
    key = "bf16.bf16_optimizer_states"
    if is_true(configuration, key) and given(configuration, "bf16.bf16_master_weights_and_grads") is not True:
        yield key, f"{key} needs bf16.bf16_master_weights_and_grads; write both, or neither"


RULES = (
    Rule(
        code="DS601",
        name="Optimizer offload has its ZeRO stage",
        summary="offload_optimizer: ZeRO 1, 2 or 3; to nvme: ZeRO 3",
        why=(
            "In ZeRO 0 nothing reads the block: the job runs without offload and dies of memory. nvme is known to the"
            " optimizer of ZeRO 3 only."
        ),
        source=f"{OFFLOAD}; www.deepspeed.ai/docs/config-json, Optimizer offloading",
        check=_optimizer,
        caught=False,
    ),
    Rule(
        code="DS602",
        name="Parameter offload is ZeRO 3",
        summary="offload_param => zero_optimization.stage 3",
        why="Only ZeRO 3 shards parameters, so that there is something to offload. The block is ignored otherwise.",
        source=f"{OFFLOAD} (valid only with stage 3); www.deepspeed.ai/docs/config-json, Parameter offloading",
        check=_param,
        caught=False,
    ),
    Rule(
        code="DS603",
        name="Offload to disks names a folder",
        summary="device nvme => nvme_path",
        why="The swapper joins paths to nvme_path, and fails on nothing when the engine is built.",
        source=OFFLOAD,
        check=_path,
    ),
    Rule(
        code="DS604",
        name="A part of the optimizer is offloaded in ZeRO 3",
        summary="0 <= offload_optimizer.ratio <= 1; < 1 => zero_optimization.stage 3",
        why="DeepSpeed asserts it when it reads the file.",
        source=f"{ZERO} offload_ratio_check",
        check=_ratio,
    ),
    Rule(
        code="DS605",
        name="SuperOffload is ZeRO 3 with the host",
        summary="super_offload => zero_optimization.stage 3, offload_optimizer.device cpu",
        why="It is an optimizer of ZeRO 3 that works on the CPU of the same chip.",
        source=OFFLOAD,
        check=_super,
        caught=False,
    ),
    Rule(
        code="DS606",
        name="16-bit master weights have what they need",
        summary=(
            "*_master_weights_and_grads => ZeRO >= 1; of fp16 => offload_optimizer; bf16_optimizer_states => of bf16"
        ),
        why="DeepSpeed asserts it, partly when it reads the file, partly when it makes the optimizer.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/config.py _do_error_check; runtime/zero/stage_1_and_2.py",
        check=_masters,
    ),
)
