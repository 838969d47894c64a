"""Kernels: attention that keeps its scores, graphs that recompute, offloading by Transformer Engine."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.recompute import granularity
from planner.configurations.megatron.rules.base import ARGUMENTS, CONFIG, rule
from planner.configurations.megatron.rules.environment import graphed
from planner.configurations.megatron.rules.recompute import FINE, HOW, MODULES, modules
from planner.domain.configuration import WARNING
from planner.units import GIB

LONG = 2048
"""[tokens] from which the scores outweigh everything else that a layer keeps: 5 a s / h > 34 for heads of 128."""
SCORES = 5
"""[bytes] of softmax input, softmax output and dropout mask per score (Korthikanti et al. 2022, section 4.1)."""
OFFLOAD = "NVTE_CPU_OFFLOAD_V1"


def _scores(facts: Facts) -> Iterator[Complaint]:
    """Tell of attention that is not fused, on long samples that are not recomputed."""
    key, kind = facts.unfused, granularity(facts)
    recomputed = kind == "full" or (kind == "selective" and "core_attn" in modules(facts))
    if not key or recomputed or facts.seq < LONG or not (facts.mbs and facts.heads and facts.tp and facts.cp):
        return
    size = SCORES * facts.heads / facts.tp * facts.seq * (facts.seq / facts.cp) * facts.mbs / GIB
    yield (
        key,
        (
            f"--{key.replace('_', '-')} {facts.value(key)} keeps the scores of attention, {size:.1f} GiB for each layer"
            f" and micro-batch at {facts.seq} tokens; write --transformer-impl transformer_engine --attention-backend"
            " flash, or --recompute-granularity selective"
        ),
    )


def _local(facts: Facts) -> Iterator[Complaint]:
    """Tell of the backend that only layers of Megatron's own have."""
    spec = facts.value("spec")
    if facts.value("attention_backend") == "local" and (not isinstance(spec, list) or spec[:1] != ["local"]):
        yield "attention_backend", "--attention-backend local needs --spec local; write both, or flash, fused or auto"


def _dropout(facts: Facts) -> Iterator[Complaint]:
    """Tell of dropout inside a graph that is recomputed."""
    scope = facts.value("cuda_graph_modules") or facts.value("cuda_graph_scope_deprecated") or []
    captured = [scope] if isinstance(scope, str) else scope
    whole = graphed(facts) == "full_iteration" or not captured
    if not graphed(facts) or granularity(facts) != "selective":
        return
    for module, part, dropout in (("core_attn", "attn", "attention_dropout"), ("mlp", "mlp", "hidden_dropout")):
        if module in modules(facts) and facts.value(dropout) and (whole or part in captured):
            name = dropout.replace("_", "-")
            yield (
                MODULES if MODULES in facts.of else HOW,
                (
                    f"a CUDA graph cannot recompute {module} with --{name} {facts.value(dropout)}, for it draws its"
                    f" numbers only once; write --{name} 0, or leave {module} out of the recompute"
                ),
            )


def _offloads(facts: Facts) -> Iterator[Complaint]:
    """Tell of a script that does not choose how Transformer Engine offloads."""
    setting = facts.of.environment.get(OFFLOAD)
    if facts.on(FINE) and (setting is None or str(setting.value) != "1"):
        yield (
            FINE,
            (
                f"from Transformer Engine 2.10 on --fine-grained-activation-offloading needs {OFFLOAD}=1, or weights"
                f" would be offloaded too; write export {OFFLOAD}=1"
            ),
        )


KERNELS = (
    rule(
        "MG718",
        "Recompute inside graphs has no dropout",
        "graphs, selective recompute of a captured module => its dropout is 0",
        _dropout,
        "A graph replays the random numbers that it was captured with, and recompute would have to draw them again; the"
        " core asserts it.",
        needs=(HOW, MODULES, "cuda_graph_impl", "cuda_graph_modules", "cuda_graph_scope_deprecated"),
        source=CONFIG,
        since="0.18",
    ),
    rule(
        "MG719",
        "Offloading leaves weights alone",
        f"offload of modules => {OFFLOAD} is 1",
        _offloads,
        "validate_args asserts it where Transformer Engine is 2.10 or newer; the variable may come from the image.",
        needs=(FINE,),
        source=ARGUMENTS,
        severity=WARNING,
        since="0.16",
    ),
    rule(
        "MG720",
        "Attention over long samples is fused",
        "unfused attention, nothing recomputed => seq < 2,048",
        _scores,
        "Attention that is not fused keeps its scores for the backward pass: 5 heads s^2 b bytes a layer, which grow"
        " with the square of the sample and soon outweigh all else. V100 and older cards have no fused kernel in"
        " Transformer Engine or FlashAttention 2: there, recompute core_attn.",
        needs=("transformer_impl", "attention_backend", HOW, MODULES),
        source="Korthikanti et al. 2022, Reducing Activation Recomputation, section 4.1; NVIDIA/Megatron-LM issue 965",
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG721",
        "Local attention has local layers",
        "--attention-backend local => --spec local",
        _local,
        "validate_args asserts it.",
        needs=("attention_backend", "spec"),
        source=ARGUMENTS,
        since="0.10",
    ),
)
