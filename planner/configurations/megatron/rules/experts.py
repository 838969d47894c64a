"""Mixtures of experts."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import ARGUMENTS, CONFIG, divisors, rule
from planner.domain.configuration import WARNING

EP, TP, ETP = "expert_model_parallel_size", "tensor_model_parallel_size", "expert_tensor_parallel_size"
LAYER = "NVIDIA/Megatron-LM, megatron/core/transformer/moe/moe_layer.py, core 0.19.2"
NEEDS = (EP, TP, ETP, "num_experts")


def _divide(facts: Facts) -> Iterator[Complaint]:
    if facts.experts and facts.ep and facts.experts % facts.ep:
        yield EP, f"{facts.experts} experts do not divide over {facts.ep} ranks; use {divisors(facts.experts)}"


def _given(facts: Facts) -> Iterator[Complaint]:
    if facts.ep > 1 and not facts.experts and facts.layers and not facts.on("use_checkpoint_args"):
        yield EP, f"an expert degree of {facts.ep} needs experts; give --num-experts, or remove it"


def _half(facts: Facts) -> Iterator[Complaint]:
    if facts.ep > 1 and facts.on("fp16"):
        yield "fp16", "expert parallelism does not train in fp16; write --bf16 instead of --fp16"


def _sequence(facts: Facts) -> Iterator[Complaint]:
    if facts.experts and facts.tp > 1 and not facts.on("sequence_parallel"):
        yield (
            TP,
            (
                f"experts with a tensor degree of {facts.tp} train only with --sequence-parallel; add it, or use a"
                " tensor degree of 1"
            ),
        )


def _grouped(facts: Facts) -> Iterator[Complaint]:
    if facts.on("moe_grouped_gemm") and not facts.on("bf16"):
        yield "moe_grouped_gemm", "grouped products of experts are made for bf16; add --bf16"


def _bias(facts: Facts) -> Iterator[Complaint]:
    if facts.experts and facts.on("add_bias_linear") and facts.etp > 1:
        taken = " (taken from the tensor degree)" if facts.value(ETP) is None else ""
        yield (
            ETP if ETP in facts.of else "num_experts",
            (
                f"experts with biases cannot be cut, and the expert tensor degree is {facts.etp}{taken}; add"
                " --disable-bias-linear, or write --expert-tensor-parallel-size 1"
            ),
        )


def _width(facts: Facts) -> Iterator[Complaint]:
    width = facts.count("moe_ffn_hidden_size")
    if width and not facts.experts:
        yield "moe_ffn_hidden_size", "--moe-ffn-hidden-size is the width of experts, and there are none; remove it"
    elif width and facts.etp and width % facts.etp:
        yield "moe_ffn_hidden_size", f"an expert's width of {width} does not divide over {facts.etp} ranks"


def _width_missing(facts: Facts) -> Iterator[Complaint]:
    given = facts.value("moe_ffn_hidden_size") or facts.value("ffn_hidden_size")
    if facts.experts and given is None and not facts.on("use_checkpoint_args"):
        message = (
            "neither --moe-ffn-hidden-size nor --ffn-hidden-size is given, so every expert is 4 times the hidden size"
        )
        yield "num_experts", f"{message} wide; say how wide they are"


def _chosen(facts: Facts) -> Iterator[Complaint]:
    top = facts.count("moe_router_topk")
    if facts.experts and top and top > facts.experts:
        yield "moe_router_topk", f"{top} experts for each token are more than the {facts.experts} that there are"


def _prediction(facts: Facts) -> Iterator[Complaint]:
    positions = "rope" if facts.on("use_rotary_position_embeddings") else facts.value("position_embedding_type")
    if facts.value("mtp_num_layers") and positions not in {"rope", "none"}:
        message = f"multi-token prediction needs --position-embedding-type rope or none, not {positions}"
        yield "mtp_num_layers", message


EXPERTS = (
    rule(
        "MG501",
        "Experts divide over expert ranks",
        "experts % ep = 0",
        _divide,
        "Every expert rank holds the same number.",
        needs=NEEDS,
    ),
    rule(
        "MG502",
        "An expert degree has experts",
        "ep > 1 => --num-experts",
        _given,
        "validate_args asserts it.",
        needs=NEEDS,
    ),
    rule(
        "MG503",
        "Expert parallelism trains in bf16",
        "ep > 1 => not fp16",
        _half,
        "Gradients of experts are scaled by a loss scale that is not shared across expert ranks; older cores refuse"
        " it.",
        needs=NEEDS,
        source="NVIDIA/Megatron-LM, megatron/training/arguments.py, validate_args, core 0.6 to 0.15",
        until="0.16",
    ),
    rule(
        "MG504",
        "Experts with a tensor axis cut the sequence",
        "experts, tp > 1 => --sequence-parallel",
        _sequence,
        "The layer of experts raises in the first forward pass; validate_args says nothing (NVIDIA/Megatron-LM issue"
        " 1587). The message there only speaks of performance.",
        needs=(*NEEDS, "sequence_parallel"),
        source=LAYER,
        since="0.8",
        caught=False,
    ),
    rule(
        "MG505",
        "Grouped products of experts are in bf16",
        "--moe-grouped-gemm => --bf16",
        _grouped,
        "The kernels are made for bf16 (and for fp8 over it).",
        needs=("bf16", "fp16"),
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG506",
        "Experts with biases are whole",
        "experts, biases => etp = 1",
        _bias,
        "The core asserts it when it builds the model's configuration.",
        needs=(*NEEDS, "add_bias_linear"),
        source=CONFIG,
        since="0.15",
    ),
    rule(
        "MG507",
        "The width of experts has experts and divides",
        "moe ffn % etp = 0",
        _width,
        "An expert's matrices are cut as a dense block's are.",
        needs=NEEDS,
        source=CONFIG,
    ),
    rule(
        "MG508",
        "The width of experts is given",
        "experts => --moe-ffn-hidden-size",
        _width_missing,
        "It defaults to the dense width, which multiplies the parameters by the number of experts.",
        needs=(*NEEDS, "moe_ffn_hidden_size"),
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG509",
        "Tokens choose among the experts that exist",
        "top-k <= experts",
        _chosen,
        "Top-k fails in the router.",
        needs=NEEDS,
        source=LAYER,
        caught=False,
    ),
    rule(
        "MG516",
        "Multi-token prediction has rotary positions or none",
        "mtp => rope or none",
        _prediction,
        "validate_args asserts it.",
        needs=("mtp_num_layers", "position_embedding_type"),
        source=ARGUMENTS,
    ),
)
