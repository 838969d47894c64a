"""How tokens come to their experts."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import CONFIG, rule
from planner.domain.configuration import WARNING

EP, TP, ETP = "expert_model_parallel_size", "tensor_model_parallel_size", "expert_tensor_parallel_size"
DISPATCHER = "moe_token_dispatcher_type"
OVERLAP = "overlap_moe_expert_parallel_comm"
LAYER = "NVIDIA/Megatron-LM, megatron/core/transformer/moe/moe_layer.py, core 0.19.2"
NEEDS = (EP, TP, ETP, "num_experts")


def _shared(facts: Facts) -> Iterator[Complaint]:
    shared = facts.value("moe_shared_expert_intermediate_size") is not None
    if shared and facts.on("moe_shared_expert_overlap") and facts.value(DISPATCHER) == "allgather":
        yield (
            "moe_shared_expert_overlap",
            "shared experts overlap only with --moe-token-dispatcher-type alltoall or flex, and allgather is on",
        )


def _gathered(facts: Facts) -> Iterator[Complaint]:
    if facts.ep > 4 and facts.value(DISPATCHER) == "allgather":
        yield (
            DISPATCHER if DISPATCHER in facts.of else EP,
            (
                f"the allgather dispatcher gives every one of {facts.ep} expert ranks all tokens; write"
                " --moe-token-dispatcher-type alltoall"
            ),
        )


def _deep(facts: Facts) -> Iterator[Complaint]:
    flex = facts.value(DISPATCHER) == "flex"
    if facts.on("moe_enable_deepep") and not flex:
        yield "moe_enable_deepep", "DeepEP needs --moe-token-dispatcher-type flex"
    elif facts.value("moe_flex_dispatcher_backend") == "ncclep" and not flex:
        yield "moe_flex_dispatcher_backend", "the ncclep backend needs --moe-token-dispatcher-type flex"


def _hidden(facts: Facts) -> Iterator[Complaint]:
    if not facts.on(OVERLAP):
        return
    wrong = {
        "needs an expert degree above 1": facts.ep == 1,
        "needs --moe-token-dispatcher-type alltoall or flex": facts.value(DISPATCHER) == "allgather",
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
        elif facts.on(key) and (dispatcher := facts.value(DISPATCHER)) in {"allgather", "alltoall_seq"}:
            yield key, f"the dispatcher {dispatcher} cannot pad; write --moe-token-dispatcher-type alltoall or flex"


DISPATCH = (
    rule(
        "MG510",
        "Overlapped shared experts have a dispatcher that overlaps",
        "alltoall or flex",
        _shared,
        "The core raises ValueError.",
        needs=(DISPATCHER,),
        source=CONFIG,
    ),
    rule(
        "MG511",
        "Many expert ranks do not gather all tokens",
        "ep > 4 => not allgather",
        _gathered,
        "Allgather is the default and grows with the degree; alltoall sends each token where it goes.",
        needs=(*NEEDS, DISPATCHER),
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
        needs=(DISPATCHER,),
        source=CONFIG,
    ),
    rule(
        "MG513",
        "Hidden exchange of experts has what it needs",
        "ep > 1, alltoall or flex, chunks, no full recompute",
        _hidden,
        "The exchange of one micro-batch hides behind the compute of another, which needs both to be there.",
        needs=(*NEEDS, "pipeline_model_parallel_size", DISPATCHER, "recompute_granularity"),
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
        "padding for quantization => fp8 or fp4, and a dispatcher that pads",
        _quantised,
        "The core raises ValueError.",
        needs=("fp8", "fp4", DISPATCHER),
        source=CONFIG,
    ),
)
