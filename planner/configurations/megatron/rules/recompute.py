"""Recompute and offload of activations."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import SPLITS, Facts
from planner.configurations.megatron.recompute import granularity
from planner.configurations.megatron.rules.base import ARGUMENTS, CONFIG, rule
from planner.domain.configuration import WARNING

HOW, METHOD, NUMBER, MODULES = "recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_modules"
KNOWN = ("core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts", "gdn_norm_out")
OFFLOADED = (
    "core_attn",
    "attn_proj",
    "expert_fc1",
    "fused_group_mlp",
    "moe_act",
    "attn_norm",
    "mlp_norm",
    "qkv_linear",
)
FINE = "fine_grained_activation_offloading"
NEEDS = (HOW, METHOD, NUMBER, MODULES)


def modules(facts: Facts) -> list[str]:
    """Return what selective recompute would recompute."""
    value = facts.value(MODULES)
    return [str(item) for item in value] if isinstance(value, list) else ["core_attn"]


def _full(facts: Facts) -> Iterator[Complaint]:
    if granularity(facts) != "full":
        return
    if facts.value(METHOD) is None:
        yield HOW, "full recompute needs --recompute-method uniform (all layers) or block (the first of each stage)"
    if facts.value(NUMBER) is None:
        yield HOW, "full recompute needs --recompute-num-layers; 1 with uniform, the layers of a stage with block"


def _selective(facts: Facts) -> Iterator[Complaint]:
    if granularity(facts) == "selective":
        for key in (METHOD, NUMBER):
            if facts.value(key) is not None:
                yield key, f"{facts.of.name(key)} is for full recompute, and it is selective; remove it"


def _unused(facts: Facts) -> Iterator[Complaint]:
    if granularity(facts) is None:
        for key in (METHOD, NUMBER, MODULES):
            if facts.value(key) is not None and key in facts.of:
                yield key, f"{facts.of.name(key)} does nothing without --recompute-granularity; add it"
                return


def _overridden(facts: Facts) -> Iterator[Complaint]:
    if facts.on("recompute_activations") and facts.value(HOW) == "full":
        yield (
            "recompute_activations",
            "--recompute-activations means selective recompute, and wins over --recompute-granularity full; remove it",
        )


def _known(facts: Facts) -> Iterator[Complaint]:
    if granularity(facts) == "selective":
        for name in modules(facts):
            if name not in KNOWN:
                yield MODULES, f"{name!r} is nothing that can be recomputed; use {', '.join(KNOWN)}"


def _belongs(facts: Facts) -> Iterator[Complaint]:
    if granularity(facts) != "selective":
        return
    names, shared = modules(facts), facts.value("moe_shared_expert_intermediate_size") is not None
    wrong = {
        "moe_act": ("--moe-grouped-gemm", not facts.on("moe_grouped_gemm")),
        "mla_up_proj": ("--multi-latent-attention", not facts.on("multi_latent_attention")),
        "shared_experts": ("no --moe-shared-expert-overlap", facts.on("moe_shared_expert_overlap") and shared),
        "gdn_norm_out": ("gated delta nets", facts.value("experimental_attention_variant") != "gated_delta_net"),
    }
    for name, (needed, broken) in wrong.items():
        if name in names and broken:
            yield MODULES, f"recompute of {name} needs {needed}"


def _nothing(facts: Facts) -> Iterator[Complaint]:
    if granularity(facts) == "selective" and "moe" in modules(facts) and not facts.experts:
        yield MODULES, "recompute of moe does nothing in a model without experts; leave it out, or write mlp"


def _fused(facts: Facts) -> Iterator[Complaint]:
    fused = facts.value("transformer_impl") == "transformer_engine" and facts.value("attention_backend") != "unfused"
    if granularity(facts) == "selective" and modules(facts) == ["core_attn"] and fused:
        key = HOW if HOW in facts.of else "recompute_activations"
        yield (
            key,
            (
                "fused attention does not keep its scores, so recompute of core_attn alone saves next to nothing and"
                " costs about 4%; leave it out, or add modules such as layernorm or mlp"
            ),
        )


def _number(facts: Facts) -> Iterator[Complaint]:
    number, chunks = facts.count(NUMBER), facts.chunks
    if granularity(facts) != "full" or number is None:
        return
    if number < 1:
        yield NUMBER, f"--recompute-num-layers is {number}; it should be 1 or more"
    elif chunks and number > (most := max(size for stage in chunks for size in stage)):
        what = "a chunk" if facts.vpp > 1 else "a stage"
        yield (
            NUMBER,
            f"--recompute-num-layers {number} is more than the {most} layers of {what}; {most} means all of them",
        )


def _distributed(facts: Facts) -> Iterator[Complaint]:
    if not facts.on("distribute_saved_activations"):
        return
    wrong = {
        "a tensor degree above 1": facts.tp == 1,
        "--recompute-granularity full": facts.value(HOW) != "full",
        "no --sequence-parallel": facts.on("sequence_parallel"),
    }
    missing = [words for words, broken in wrong.items() if broken]
    if missing:
        yield "distribute_saved_activations", f"--distribute-saved-activations needs {', '.join(missing)}"


def _host(facts: Facts) -> Iterator[Complaint]:
    number = facts.count("cpu_offloading_num_layers") or 0
    key = "cpu_offloading_num_layers" if "cpu_offloading_num_layers" in facts.of else "cpu_offloading"
    if not (facts.on("cpu_offloading") or number > 0):
        return
    if facts.pp > 1:
        yield key, f"offload of layers does not go with a pipeline, and there are {facts.pp} stages"
    if granularity(facts):
        yield key, "offload of layers does not go with recompute; keep one"
    if number and facts.layers and number >= facts.layers:
        yield key, f"{number} layers on the host are not fewer than the {facts.layers} of the model"


def _fine(facts: Facts) -> Iterator[Complaint]:
    if not facts.on(FINE):
        return
    names = [str(item) for item in facts.value("offload_modules") or []]
    if not names:
        yield FINE, f"say what goes to the host by --offload-modules: {', '.join(OFFLOADED)}"
    for name in names:
        if name not in OFFLOADED:
            yield "offload_modules", f"{name!r} is nothing that can be offloaded; use {', '.join(OFFLOADED)}"
    if "attn_proj" in names and "core_attn" not in names:
        yield "offload_modules", "attn_proj is offloaded only with core_attn, whose output it reads; add core_attn"
    if facts.on("cpu_offloading"):
        yield FINE, "offload of modules and offload of layers do not go together; keep one"


def _engine(facts: Facts) -> Iterator[Complaint]:
    if facts.on(FINE) and facts.value("transformer_impl") != "transformer_engine":
        yield FINE, "offload of modules needs --transformer-impl transformer_engine"


RECOMPUTE = (
    rule(
        "MG641",
        "Full recompute says how",
        "full => method and number of layers",
        _full,
        "The core raises ValueError for either.",
        needs=NEEDS,
        source=CONFIG,
    ),
    rule(
        "MG642",
        "Selective recompute counts no layers",
        "selective => no method, no number",
        _selective,
        "Selective recompute works on modules of every layer.",
        needs=NEEDS,
        source=CONFIG,
    ),
    rule(
        "MG643",
        "Recompute is on where it is described",
        "method, number or modules => granularity",
        _unused,
        "Nothing is recomputed without a granularity, and the run dies of memory that was thought to be free.",
        needs=NEEDS,
        source=CONFIG,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG644",
        "Recomputed modules exist",
        "modules in the known ones",
        _known,
        "The core asserts it.",
        needs=NEEDS,
        source=CONFIG,
        since="0.12",
    ),
    rule(
        "MG645",
        "Recomputed modules are there",
        "moe_act with grouped products, mla_up_proj with latent attention, ...",
        _belongs,
        "The core raises ValueError.",
        needs=(*NEEDS, "num_experts"),
        source=CONFIG,
        since="0.12",
    ),
    rule(
        "MG653",
        "Recomputed experts are there",
        "recompute of moe => experts",
        _nothing,
        "The core takes it and recomputes nothing, so that the memory that was hoped for is not saved.",
        needs=(*NEEDS, "num_experts"),
        source=CONFIG,
        severity=WARNING,
        since="0.12",
        caught=False,
    ),
    rule(
        "MG646",
        "Fused attention is not recomputed alone",
        "selective core_attn => unfused attention",
        _fused,
        "Fused and flash kernels compute the scores again in the backward pass anyway. Measured on 8 H100: 36.61 v"
        " 36.62 GB, 4% slower (NVIDIA-NeMo/Megatron-Bridge, activation recompute guide).",
        needs=(*NEEDS, "transformer_impl", "attention_backend"),
        source=CONFIG,
        severity="note",
        caught=False,
    ),
    rule(
        "MG647",
        "Recompute counts layers that are there",
        "1 <= number <= layers of a chunk",
        _number,
        "Block recompute takes the first layers of each chunk; more than there are is all of them.",
        needs=(*NEEDS, *SPLITS),
        source=CONFIG,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG652",
        "Recompute is said one way",
        "--recompute-activations => not full",
        _overridden,
        "The old switch sets the granularity to selective whatever else is written.",
        needs=NEEDS,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG648",
        "Distributed activations have what they need",
        "tp > 1, full recompute, no sequence parallelism",
        _distributed,
        "validate_args and the core assert it.",
        needs=(*NEEDS, "tensor_model_parallel_size", "sequence_parallel"),
        source=ARGUMENTS,
    ),
    rule(
        "MG649",
        "Layers on the host stand alone",
        "offload of layers => pp = 1, no recompute",
        _host,
        "The core raises ValueError.",
        needs=(*NEEDS, "pipeline_model_parallel_size"),
        source=CONFIG,
    ),
    rule(
        "MG650",
        "Modules on the host are named",
        "offload of modules => known modules",
        _fine,
        "The core asserts it.",
        needs=("offload_modules",),
        source=CONFIG,
        since="0.16",
    ),
    rule(
        "MG651",
        "Modules on the host run in Transformer Engine",
        "offload of modules => transformer_engine",
        _engine,
        "validate_args asserts it.",
        needs=("transformer_impl",),
        source=ARGUMENTS,
        since="0.16",
    ),
)
