"""Optimizers, their precisions, and what of them is on the host."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import rule

DIST, REDUCE, GATHER = "use_distributed_optimizer", "overlap_grad_reduce", "overlap_param_gather"
TORCH, FSDP, FORMAT = "use_torch_fsdp2", "use_megatron_fsdp", "ckpt_format"
OFFLOAD, AWARE = "optimizer_cpu_offload", "use_precision_aware_optimizer"
MOMENTS = ("exp_avg_dtype", "exp_avg_sq_dtype", "main_params_dtype", "main_grads_dtype")
NEEDS = (DIST, REDUCE, GATHER, TORCH, FSDP)
OPTIMIZER = "NVIDIA/Megatron-LM, megatron/core/optimizer/optimizer_config.py, core 0.19.2"


def _optimizer(facts: Facts) -> Iterator[Complaint]:
    name = facts.value("optimizer")
    if facts.fsdp and name not in {"sgd", "adam", None}:
        yield "optimizer", f"fully sharded data parallelism runs adam or sgd, not {name}"


def _muon(facts: Facts) -> Iterator[Complaint]:
    name = facts.value("optimizer")
    if name not in {"sgd", "adam", None} and facts.value(FORMAT) not in {"torch", "torch_dist"}:
        yield "optimizer", f"{name} saves only with --ckpt-format torch or torch_dist"


def _muon_once(facts: Facts) -> Iterator[Complaint]:
    if "muon" in str(facts.value("optimizer")) and facts.on(DIST):
        yield (
            "optimizer",
            "before core 0.18 muon does not go with --use-distributed-optimizer; use --optimizer dist_muon",
        )


def _offload(facts: Facts) -> Iterator[Complaint]:
    if facts.on(OFFLOAD) and not facts.on(AWARE):
        yield OFFLOAD, "--optimizer-cpu-offload needs --use-precision-aware-optimizer; add it"


def _offload_part(facts: Facts) -> Iterator[Complaint]:
    share = facts.value("optimizer_offload_fraction")
    if isinstance(share, (int, float)) and not 0 <= share <= 1:
        yield "optimizer_offload_fraction", f"the share of the optimizer on the host is {share}; it is from 0 to 1"


def _aware(facts: Facts) -> Iterator[Complaint]:
    if facts.on(AWARE) and not (facts.on(DIST) or facts.fsdp):
        yield AWARE, "--use-precision-aware-optimizer needs --use-distributed-optimizer; add it"


def _moments(facts: Facts) -> Iterator[Complaint]:
    for key in MOMENTS:
        if facts.value(key) not in {None, "fp32"} and key in facts.of and not facts.on(AWARE):
            yield key, f"{facts.of.name(key)} {facts.value(key)} needs --use-precision-aware-optimizer; add it"


def _gradients(facts: Facts) -> Iterator[Complaint]:
    kept = facts.on("bf16") and facts.on("accumulate_allreduce_grads_in_fp32")
    if kept and facts.value("main_grads_dtype") not in {None, "fp32"}:
        yield (
            "main_grads_dtype",
            "gradients are kept in fp32 (--accumulate-allreduce-grads-in-fp32) and in another precision",
        )


OPTIMIZER_RULES = (
    rule(
        "MG611",
        "Full sharding has an optimizer that it knows",
        "FSDP => adam or sgd",
        _optimizer,
        "validate_args asserts it.",
        needs=(*NEEDS, "optimizer"),
    ),
    rule(
        "MG612",
        "New optimizers have checkpoints that they know",
        "not adam or sgd => torch or torch_dist",
        _muon,
        "validate_args asserts it.",
        needs=(FORMAT, "optimizer"),
    ),
    rule(
        "MG613",
        "muon is not sharded",
        "muon => no distributed optimizer",
        _muon_once,
        "It needs whole matrices; later cores share them layer by layer instead.",
        needs=(DIST, "optimizer"),
        source="NVIDIA/Megatron-LM, megatron/training/arguments.py, validate_args, core 0.16",
        until="0.18",
    ),
    rule(
        "MG614",
        "An optimizer on the host is precision-aware",
        "offload => --use-precision-aware-optimizer",
        _offload,
        "The optimizer that is split between host and device reuses that code.",
        needs=(OFFLOAD, AWARE),
        since="0.11",
    ),
    rule(
        "MG615",
        "The share on the host is a share",
        "0 <= fraction <= 1",
        _offload_part,
        "More than all cannot be moved.",
        source=OPTIMIZER,
        caught=False,
    ),
    rule(
        "MG616",
        "A precision-aware optimizer is sharded",
        "precision-aware => distributed optimizer",
        _aware,
        "The optimizer's configuration asserts it.",
        needs=(DIST, TORCH, FSDP, AWARE),
        source=OPTIMIZER,
    ),
    rule(
        "MG617",
        "Precisions of states are used",
        "moments not in fp32 => precision-aware optimizer",
        _moments,
        "The optimizer's configuration asserts that they are fp32 otherwise.",
        needs=(AWARE,),
        source=OPTIMIZER,
    ),
    rule(
        "MG618",
        "Gradients have one precision",
        "bf16, fp32 accumulation => fp32 main gradients",
        _gradients,
        "validate_args asserts it.",
        needs=("main_grads_dtype",),
    ),
)
