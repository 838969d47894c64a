"""Precisions."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import CONFIG, rule
from planner.domain.configuration import WARNING

FSDP = ("use_megatron_fsdp", "use_torch_fsdp2")


def _precision(facts: Facts) -> Iterator[Complaint]:
    if facts.on("fp16") and facts.on("bf16"):
        yield "fp16", "--fp16 and --bf16 cannot both be on; keep one"


def _narrow(facts: Facts) -> Iterator[Complaint]:
    if facts.value("fp8") and facts.value("fp4"):
        yield "fp4", "--fp8-format and --fp4-format cannot both be on; keep one"


def _wide(facts: Facts) -> Iterator[Complaint]:
    if (facts.value("fp8") or facts.value("fp4")) and not (facts.on("bf16") or facts.on("fp16")):
        key = "fp8" if facts.value("fp8") else "fp4"
        yield key, f"{facts.of.name(key)} without --bf16 keeps weights and everything else in fp32; add --bf16"


def _fp32(facts: Facts) -> Iterator[Complaint]:
    narrow = facts.value("fp8") or facts.value("fp4")
    if facts.layers and facts.world > 1 and not (facts.on("bf16") or facts.on("fp16") or narrow):
        yield "num_layers", "neither --bf16 nor --fp16 is given, so all is computed in fp32; add --bf16"


def _gathered(facts: Facts) -> Iterator[Complaint]:
    sharded = facts.on("use_distributed_optimizer") or facts.fsdp
    if facts.on("fp8_param_gather") and not sharded:
        yield "fp8_param_gather", "--fp8-param-gather needs --use-distributed-optimizer"
    elif facts.on("fp8_param_gather") and not facts.value("fp8"):
        yield "fp8_param_gather", "--fp8-param-gather needs --fp8-format"
    if facts.on("fp4_param_gather") and not facts.value("fp4"):
        yield "fp4_param_gather", "--fp4-param-gather needs --fp4-format"


def _edges(facts: Facts) -> Iterator[Complaint]:
    if facts.value("fp8") and facts.on("first_last_layers_bf16") and facts.value("fp8_recipe") == "delayed":
        yield (
            "first_last_layers_bf16",
            "first and last layers in bf16 do not go with --fp8-recipe delayed; use tensorwise",
        )


def _residual(facts: Facts) -> Iterator[Complaint]:
    if facts.on("fp32_residual_connection") and not (facts.on("bf16") or facts.on("fp16")):
        yield "fp32_residual_connection", "--fp32-residual-connection needs --bf16 or --fp16"


PRECISION = (
    rule(
        "MG706", "One 16-bit precision", "fp16 or bf16", _precision, "validate_args asserts it.", needs=("fp16", "bf16")
    ),
    rule("MG707", "One narrow precision", "fp8 or fp4", _narrow, "validate_args raises.", needs=("fp8", "fp4")),
    rule(
        "MG708",
        "Narrow products have 16-bit weights",
        "fp8 or fp4 => bf16",
        _wide,
        "All that is not a product stays in the precision of the weights.",
        needs=("fp8", "fp4", "bf16", "fp16"),
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG709",
        "Training is in 16 bits",
        "bf16 or fp16",
        _fp32,
        "fp32 is the default, and takes twice the memory and a fraction of the speed.",
        needs=("fp8", "fp4", "bf16", "fp16"),
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG710",
        "Narrow gathering has narrow, sharded weights",
        "fp8 gathering => fp8, distributed optimizer",
        _gathered,
        "validate_args and the core assert it.",
        needs=("fp8", "fp4", "use_distributed_optimizer", *FSDP),
    ),
    rule(
        "MG711",
        "Delayed scaling covers all layers",
        "first and last in bf16 => not delayed",
        _edges,
        "The core raises ValueError.",
        needs=("fp8", "fp8_recipe"),
        source=CONFIG,
    ),
    rule(
        "MG712",
        "fp32 residuals have 16-bit layers",
        "--fp32-residual-connection => bf16 or fp16",
        _residual,
        "validate_args asserts it.",
        needs=("bf16", "fp16"),
    ),
)
