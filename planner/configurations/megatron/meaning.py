"""What settings of Megatron-LM mean: layout, ranks, model and precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.configurations.base import Setup
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.model import model, unplannable
from planner.configurations.megatron.recompute import recompute, unplannable_recompute
from planner.configurations.nodes import stage_kinds
from planner.domain.configuration import Configuration
from planner.domain.plan import CP_COMM_TYPES
from planner.errors import Problem, SpecError
from planner.specs.layout import Layout

SHARDING = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
"""Strategies of Megatron-FSDP -> ZeRO stage."""
NEEDED = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size", "micro_batch_size")
LATER = {
    "optimizer_cpu_offload": "an optimizer on the host",
    "cpu_offloading": "activations on the host",
    "cpu_offloading_num_layers": "activations on the host",
    "fine_grained_activation_offloading": "activations on the host",
    "hybrid_context_parallel": "context degrees that change with the sample",
    "use_precision_aware_optimizer": "optimizer states in other precisions than fp32",
    "tensor_parallel_num_weight_shards": "weights that are gathered for each product",
    "moe_paged_stash": "a mixture of experts",
}
"""Keys of what is read and judged, but not planned yet."""


def setup(configuration: Configuration, in_words: Callable[[str], str] = str) -> Setup:
    """Return what a configuration means.

    Args:
        configuration: with settings by Megatron's inner names.
        in_words: a sentence that names Megatron's flags -> the same in the words of the configuration's form.

    Raises:
        SpecError: it asks for what no plan can say, or does not say what a plan needs; with every reason.
    """
    facts = Facts(configuration)
    problems = [Problem(str(configuration.spot(key)), in_words(message)) for key, message in _problems(facts)]
    if problems:
        raise SpecError(problems)
    policy, layers, more = recompute(facts)
    layout = Layout(
        tp=facts.tp,
        pp=facts.pp,
        vpp=facts.vpp,
        vpp_group=_group(facts),
        dp=facts.dp or None,
        cp=facts.cp,
        cp_comm_type=_exchange(facts) if facts.cp > 1 else None,
        zero=_zero(facts),
        sp=facts.on("sequence_parallel") and facts.tp > 1,
        mbs=facts.mbs,
        gbs=facts.gbs or None,
        seq=facts.seq or None,
        recompute=policy,
        recompute_layers=layers,
        schedule="interleaved" if facts.vpp > 1 else "1f1b",
        framework="megatron",
        chunk_layers=(facts.chunks or ()) if facts.pp > 1 else (),
        stage_devices=stage_kinds(
            configuration.nodes,
            facts.pp,
            facts.dp,
            facts.width // facts.pp,
            pipelines_first=facts.on("use_tp_pp_dp_mapping"),
        ),
    )
    return Setup(
        layout=layout,
        world=facts.world or None,
        model=model(facts),
        precision=precision(facts),
        assumed=tuple(in_words(sentence) for sentence in (*_assumed(facts), *more)),
    )


def _group(facts: Facts) -> int | None:
    """Return how many micro-batches pass a chunk together, where it is not one a stage."""
    number = facts.value("microbatch_group_size_per_vp_stage")
    return number if facts.vpp > 1 and isinstance(number, int) and number != facts.pp else None


def _problems(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield (key, why) of everything that stands in the way of a plan."""
    for key in NEEDED:
        if not facts.size(key):
            yield key, f"{facts.of.name(key)} is not known; a plan needs it"
    for key, words in unplannable(facts):
        yield key, f"{words} cannot be planned yet; only the rules were checked"
    for key, words in LATER.items():
        if facts.value(key):
            yield key, f"{facts.of.name(key)}: {words} cannot be planned yet; only the rules were checked"
    if facts.ep > 1:
        yield "expert_model_parallel_size", "expert parallelism cannot be planned yet; only the rules were checked"
    if facts.cp > 1 and _exchange(facts) not in CP_COMM_TYPES:
        known = " or ".join(CP_COMM_TYPES)
        yield "cp_comm_type", f"--cp-comm-type {_exchange(facts)} cannot be planned yet; only {known} can"
    if (facts.count("num_distributed_optimizer_instances") or 1) > 1:
        yield (
            "num_distributed_optimizer_instances",
            "an optimizer sharded over some replicas only cannot be planned yet",
        )
    yield from _pipeline_problems(facts)
    yield from unplannable_recompute(facts)


def _pipeline_problems(facts: Facts) -> Iterator[tuple[str, str]]:
    ends = ("pipeline_model_parallel_layout", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")
    told_by_model = not facts.layers and facts.vpp and all(facts.value(end) is None for end in ends)
    if facts.pp <= 1 or told_by_model:
        return
    key = "pipeline_model_parallel_layout" if "pipeline_model_parallel_layout" in facts.of else "num_layers"
    if facts.chunks is None:
        yield key, "which layers each stage holds is not known or does not come out, and a plan needs it"
    elif any(size < 1 for stage in facts.chunks for size in stage):
        yield key, "stages without layers cannot be planned yet; give each stage, and each of its chunks, one at least"


def _exchange(facts: Facts) -> str:
    """Return how context ranks exchange; several kinds joined."""
    value = facts.value("cp_comm_type")
    return "+".join(dict.fromkeys(map(str, value))) if isinstance(value, list) else str(value or "p2p")


def _zero(facts: Facts) -> int:
    if facts.fsdp == "megatron":
        return SHARDING.get(str(facts.value("data_parallel_sharding_strategy")), 3)
    if facts.fsdp == "torch":
        return 3 if facts.on("torch_fsdp2_reshard_after_forward") else 2
    return int(facts.on("use_distributed_optimizer"))


def precision(facts: Facts) -> str:
    """Return the precision of training; fp32 where none is asked for."""
    if facts.value("fp4"):
        return "nvfp4"
    if facts.value("fp8"):
        return "mxfp8" if facts.value("fp8_recipe") == "mxfp8" else "fp8"
    return "bf16" if facts.on("bf16") else "fp16" if facts.on("fp16") else "fp32"


def _assumed(facts: Facts) -> Iterator[str]:
    """Yield what was taken for granted."""
    described = model(facts)
    if described is not None and "vocab_size" not in described:
        yield "the vocabulary is the tokenizer's, and no flag says its size; give the model, or --vocab-size"
    if facts.tokens:
        yield f"the tokenizer has {facts.tokens} tokens, as GPT-2's"
    if facts.value("rampup_batch_size"):
        yield "the global batch is the final one, not those of --rampup-batch-size"
    if facts.value("step_batch_size_schedule"):
        yield "the global batch of --step-batch-size-schedule changes; give the one to plan for"
    if facts.on("use_tp_pp_dp_mapping"):
        yield "ranks are counted tp-cp-pp-dp (--use-tp-pp-dp-mapping); the planner places them itself"
    if str(facts.value("optimizer")) not in {"adam", "None"}:
        yield f"the optimizer {facts.value('optimizer')} is priced as Adam; give an optimizer recipe in the job"
    if facts.unfused:
        yield "attention is predicted as a fused kernel runs it: the scores that it keeps here are not in the memory"
    if facts.on("sequence_parallel") and facts.tp == 1:
        yield "--sequence-parallel does nothing with a tensor degree of 1"
