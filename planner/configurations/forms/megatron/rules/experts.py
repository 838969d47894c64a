"""Mixtures of experts."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.forms.megatron.facts import Facts
from planner.configurations.forms.megatron.rules.base import ARGUMENTS, CONFIG, divisors, rule
from planner.domain.configuration import WARNING

EP, TP, ETP = "expert_model_parallel_size", "tensor_model_parallel_size", "expert_tensor_parallel_size"
OVERLAP = "overlap_moe_expert_parallel_comm"
LAYER = "NVIDIA/Megatron-LM, megatron/core/transformer/moe/moe_layer.py, core 0.19.2"


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
                f"experts with a tensor degree of {facts.tp} train only with --sequence-parallel; add it, or use a tensor"
                " degree of 1"
            ),
        )


def _grouped(facts: Facts) -> Iterator[Complaint]:
    if facts.on("moe_grouped_gemm") and not facts.on("bf16"):
        yield "moe_grouped_gemm", "grouped products of experts are made for bf16; add --bf16"


def _bias(facts: Facts) -> Iterator[Complaint]:
    if facts.experts and facts.on("add_bias_linear") and facts.etp > 1:
        taken = "" if ETP in facts.of else " (taken from the tensor degree)"
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
        message = "neither --moe-ffn-hidden-size nor --ffn-hidden-size is given, so every expert is 4 times the hidden size"
        yield "num_experts", f"{message} wide; say how wide they are"


def _chosen(facts: Facts) -> Iterator[Complaint]:
    top = facts.count("moe_router_topk")
    if facts.experts and top and top > facts.experts:
        yield "moe_router_topk", f"{top} experts for each token are more than the {facts.experts} that there are"


def _shared(facts: Facts) -> Iterator[Complaint]:
    shared = facts.value("moe_shared_expert_intermediate_size") is not None
    if shared and facts.on("moe_shared_expert_overlap") and facts.value("moe_token_dispatcher_type") == "allgather":
        yield (
            "moe_shared_expert_overlap",
            "shared experts overlap only with --moe-token-dispatcher-type alltoall or flex, and allgather is on",
        )


def _gathered(facts: Facts) -> Iterator[Complaint]:
    if facts.ep > 4 and facts.value("moe_token_dispatcher_type") == "allgather":
        yield (
            "moe_token_dispatcher_type" if "moe_token_dispatcher_type" in facts.of else EP,
            (
                f"the allgather dispatcher gives every one of {facts.ep} expert ranks all tokens; write"
                " --moe-token-dispatcher-type alltoall"
            ),
        )


def _deep(facts: Facts) -> Iterator[Complaint]:
    flex = facts.value("moe_token_dispatcher_type") == "flex"
    if facts.on("moe_enable_deepep") and not flex:
        yield "moe_enable_deepep", "DeepEP needs --moe-token-dispatcher-type flex"
    elif facts.value("moe_flex_dispatcher_backend") == "ncclep" and not flex:
        yield "moe_flex_dispatcher_backend", "the ncclep backend needs --moe-token-dispatcher-type flex"


def _hidden(facts: Facts) -> Iterator[Complaint]:
    if not facts.on(OVERLAP):
        return
    wrong = {
        "needs an expert degree above 1": facts.ep == 1,
        "needs --moe-token-dispatcher-type alltoall or flex": facts.value("moe_token_dispatcher_type") == "allgather",
        "does not go with full recompute": facts.value("recompute_granularity") == "full",
        "needs several chunks a stage where there is a pipeline": facts.pp > 1 and facts.vpp == 1,
        "needs --bf16 or --fp16": not (facts.on("bf16") or facts.on("fp16")),
        "does not go with --moe-shared-expert-overlap": facts.on("moe_shared_expert_overlap"),
        "does not go with recompute of moe": "moe" in (facts.value("recompute_modules") or []),
    }
    for words, broken in wrong.items():
        if broken:
            yield OVERLAP, f"--overlap-moe-expert-parallel-comm {words}"


def _delayed(facts: Facts) -> Iterator[Complaint]:
    if facts.on("delay_wgrad_compute") and not facts.on(OVERLAP):
        yield (
            "delay_wgrad_compute",
            "--delay-wgrad-compute needs --overlap-moe-expert-parallel-comm; add it or remove both",
        )


def _quantised(facts: Facts) -> Iterator[Complaint]:
    keys = ("moe_router_padding_for_quantization", "moe_router_padding_for_fp8")
    for key in keys:
        if facts.on(key) and not (facts.value("fp8") or facts.value("fp4")):
            yield key, f"{facts.of.name(key)} pads for 8-bit products; give --fp8-format, or remove it"


def _prediction(facts: Facts) -> Iterator[Complaint]:
    if facts.value("mtp_num_layers") and facts.value("position_embedding_type") not in {"rope", "none"}:
        if not facts.on("use_rotary_position_embeddings"):
            yield (
                "mtp_num_layers",
                (
                    f"multi-token prediction needs --position-embedding-type rope or none, not"
                    f" {facts.value('position_embedding_type')}"
                ),
            )


NEEDS = (EP, TP, ETP, "num_experts")
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
        "Gradients of experts are scaled by a loss scale that is not shared across expert ranks; older cores refuse it.",
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
        "MG510",
        "Overlapped shared experts have a dispatcher that overlaps",
        "alltoall or flex",
        _shared,
        "The core raises ValueError.",
        needs=("moe_token_dispatcher_type",),
        source=CONFIG,
    ),
    rule(
        "MG511",
        "Many expert ranks do not gather all tokens",
        "ep > 4 => not allgather",
        _gathered,
        "Allgather is the default and grows with the degree; alltoall sends each token where it goes.",
        needs=(*NEEDS, "moe_token_dispatcher_type"),
        source=LAYER,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG512",
        "Flexible backends have the flexible dispatcher",
        "DeepEP, ncclep => flex",
        _deep,
        "The core raises ValueError.",
        needs=("moe_token_dispatcher_type",),
        source=CONFIG,
    ),
    rule(
        "MG513",
        "Hidden exchange of experts has what it needs",
        "ep > 1, alltoall or flex, chunks, no full recompute",
        _hidden,
        "The exchange of one micro-batch hides behind the compute of another, which needs both to be there.",
        needs=(*NEEDS, "pipeline_model_parallel_size", "moe_token_dispatcher_type", "recompute_granularity"),
        source=CONFIG,
        since="0.13",
    ),
    rule(
        "MG514",
        "Delayed weight gradients hide exchanges",
        "--delay-wgrad-compute => overlap of experts",
        _delayed,
        "The core asserts it.",
        source=CONFIG,
        since="0.13",
    ),
    rule(
        "MG515",
        "Padding for 8 bits has 8 bits",
        "padding for quantization => fp8 or fp4",
        _quantised,
        "The core raises ValueError.",
        needs=("fp8", "fp4"),
        source=CONFIG,
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
