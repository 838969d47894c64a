"""Rules of the precision and of the optimizer."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.deepspeed.keys import VERSION
from planner.configurations.forms.deepspeed.values import AUTO, given, is_true, stage
from planner.domain.configuration import NOTE, WARNING, Configuration

CONFIG = f"deepspeed {VERSION}, deepspeed/runtime/config.py"
ENGINE = f"deepspeed {VERSION}, deepspeed/runtime/engine.py"
_DTYPES = {
    **dict.fromkeys(("fp16", "float16", "half", "torch.float16"), "fp16"),
    **dict.fromkeys(("bf16", "bfloat16", "torch.bfloat16"), "bf16"),
    **dict.fromkeys(("fp32", "float32", "float", "torch.float32"), "fp32"),
}


def precision(configuration: Configuration) -> str | None:
    """Return ``bf16``, ``fp16`` or ``fp32``; None where a switch is ``auto``."""
    switches = {name: configuration.get(f"{name}.enabled") for name in ("bf16", "fp16")}
    on = next((name for name, value in switches.items() if value is True), None)
    if on:
        return on
    if is_true(configuration, "torch_autocast.enabled"):
        return _DTYPES.get(str(configuration.get("torch_autocast.dtype")))
    return None if AUTO in switches.values() else "fp32"


def _both(configuration: Configuration) -> Iterator[Complaint]:
    if is_true(configuration, "bf16.enabled") and is_true(configuration, "fp16.enabled"):
        yield "fp16.enabled", "fp16 and bf16 are both enabled; switch one of them off (bf16 needs no loss scale)"


def _neither(configuration: Configuration) -> Iterator[Complaint]:
    if precision(configuration) == "fp32":
        key = next((one for one in ("bf16.enabled", "fp16.enabled") if one in configuration), "")
        yield (
            key,
            'neither bf16 nor fp16 is enabled, so DeepSpeed trains in fp32; write "bf16": {"enabled": true}',
        )


def _scale(configuration: Configuration) -> Iterator[Complaint]:
    scale = given(configuration, "fp16.loss_scale")
    if isinstance(scale, (int, float)) and not isinstance(scale, bool) and scale < 0:
        yield "fp16.loss_scale", f"fp16.loss_scale should be 0 (dynamic) or more, not {scale}"
    if not is_true(configuration, "fp16.enabled") or scale != 0:
        return
    for key in ("fp16.loss_scale_window", "fp16.min_loss_scale"):
        value = given(configuration, key)
        if isinstance(value, int) and value < 1:
            yield key, f"{key} should be at least 1 where the loss scale is dynamic (loss_scale 0), not {value}"


def _accumulated(configuration: Configuration) -> Iterator[Complaint]:
    key, used = "data_types.grad_accum_dtype", precision(configuration)
    value = configuration.get(key)
    dtype = _DTYPES.get(str(value).lower()) if value is not None else None
    if value is not None and dtype is None and value != AUTO:
        yield key, f"{key} should be fp32, bf16 or fp16, not {value!r}"
    if dtype and used and dtype != used and stage(configuration) == 0:
        yield key, f"{key} {dtype} with {used} weights works with ZeRO only; write zero_optimization.stage 1, or {used}"


def _parameters(configuration: Configuration) -> Iterator[Complaint]:
    key, used = "data_types.param_dtype", precision(configuration)
    value = configuration.get(key)
    dtype = _DTYPES.get(str(value).lower()) if value is not None else None
    if dtype and used and dtype != used:
        yield key, f"{key} {dtype} is not the precision, {used}; write {used}, or leave it out and enable {dtype}"


def _clipping(configuration: Configuration) -> Iterator[Complaint]:
    key = "optimizer.params.max_grad_norm"
    value = configuration.get(key)
    if isinstance(value, (int, float)) and value > 0:
        yield key, f"{key} {value} is not read as clipping; write gradient_clipping {value} in the outermost level"


def _untested(configuration: Configuration) -> Iterator[Complaint]:
    name, allowed = configuration.get("optimizer.type"), configuration.get("zero_allow_untested_optimizer")
    if stage(configuration) and isinstance(name, str) and name.lower() in ("lamb", "sgd") and allowed is not True:
        yield (
            "optimizer.type",
            f"optimizer {name} is untested with ZeRO; write zero_allow_untested_optimizer true, or AdamW",
        )
    if isinstance(name, str) and name.lower() == "lamb" and given(configuration, "fp16.loss_scale") != 0:
        yield "fp16.loss_scale", "optimizer Lamb needs a dynamic loss scale; write fp16.loss_scale 0"


def _communication(configuration: Configuration) -> Iterator[Complaint]:
    for key in ("communication_data_type", "seq_parallel_communication_data_type"):
        value = given(configuration, key)
        if isinstance(value, str) and value.lower() not in ("fp32", "fp16", "bf16"):
            yield key, f"{key} should be fp32, fp16 or bf16, not {value}"


RULES = (
    Rule(
        code="DS701",
        name="bf16 or fp16",
        summary="not both bf16.enabled and fp16.enabled",
        why="DeepSpeed asserts it when it reads the file.",
        source=f"{CONFIG} _initialize_params",
        check=_both,
    ),
    Rule(
        code="DS702",
        name="A 16-bit precision is on",
        summary="bf16, fp16 or torch_autocast is enabled",
        why="Without them weights, gradients and exchanges are fp32: twice the memory and a fraction of the speed.",
        source=f"{ENGINE} get_data_types",
        check=_neither,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="DS703",
        name="The loss scale of fp16 is sound",
        summary="loss_scale >= 0; where it is 0: loss_scale_window >= 1, min_loss_scale >= 1",
        why="DeepSpeed refuses the block when it reads the file.",
        source=f"deepspeed {VERSION}, deepspeed/runtime/precision_config.py DeepSpeedFP16Config",
        check=_scale,
    ),
    Rule(
        code="DS704",
        name="Gradients add up in another type with ZeRO only",
        summary="data_types.grad_accum_dtype = precision in ZeRO 0",
        why="Without ZeRO there is no optimizer wrapper for mixed types, and the engine raises NotImplementedError.",
        source=f"{ENGINE} _do_optimizer_sanity_check",
        check=_accumulated,
    ),
    Rule(
        code="DS705",
        name="The type of parameters is the precision",
        summary="data_types.param_dtype = the enabled precision",
        why="DeepSpeed asserts it when the engine is built.",
        source=f"{ENGINE} _assert_valid_mixed_precision_config",
        check=_parameters,
    ),
    Rule(
        code="DS706",
        name="Clipping is a key of its own",
        summary="gradient_clipping, not optimizer.params.max_grad_norm",
        why="DeepSpeed warns and does not clip.",
        source=f"{CONFIG} _do_warning_check",
        check=_clipping,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="DS707",
        name="The optimizer goes with ZeRO",
        summary="ZeRO with Lamb or SGD => zero_allow_untested_optimizer; Lamb => dynamic loss scale",
        why="DeepSpeed asserts it when the engine is built.",
        source=f"{ENGINE} _do_optimizer_sanity_check, _do_sanity_check; runtime/zero/utils.py",
        check=_untested,
    ),
    Rule(
        code="DS708",
        name="Exchanges are in a known type",
        summary="communication_data_type is fp32, fp16 or bf16",
        why="DeepSpeed raises a ValueError when it reads the file.",
        source=f"{CONFIG} get_communication_data_type",
        check=_communication,
    ),
)
