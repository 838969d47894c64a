"""Tokens of a sample, over context and tensor ranks."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import CONFIG, divisors, rule

TP, CP, SP = "tensor_model_parallel_size", "context_parallel_size", "sequence_parallel"
ENGINE = "NVIDIA/TransformerEngine, docs/api, context parallelism; transformer_engine/pytorch/attention"


def _context(facts: Facts) -> Iterator[Complaint]:
    if facts.cp > 1 and facts.seq and facts.seq % (2 * facts.cp):
        step = facts.cp * lcm(2, facts.tp if facts.on(SP) and facts.tp else 1)
        padded = -(-facts.seq // step) * step
        yield (
            "seq_length",
            (
                f"{facts.seq} tokens do not cut into 2 x {facts.cp} parts, two for each context rank; write"
                f" --seq-length {padded}"
            ),
        )


def _sequence(facts: Facts) -> Iterator[Complaint]:
    if not (facts.on(SP) and facts.tp > 1 and facts.seq and facts.cp) or (facts.cp > 1 and facts.seq % (2 * facts.cp)):
        return
    if facts.seq % (facts.cp * facts.tp):
        step = facts.cp * lcm(2 if facts.cp > 1 else 1, facts.tp)
        padded = -(-facts.seq // step) * step
        each = f" ({facts.seq // facts.cp} on each of {facts.cp} context ranks)" if facts.cp > 1 else ""
        yield (
            "seq_length",
            (
                f"{facts.seq} tokens{each} do not divide over {facts.tp} tensor ranks, which --sequence-parallel asks"
                f" for; write --seq-length {padded}"
            ),
        )


def _fp8(facts: Facts) -> Iterator[Complaint]:
    if not (facts.value("fp8") or facts.value("fp4")) or not facts.seq or not facts.cp or not facts.tp or not facts.mbs:
        return
    parts = facts.cp * (facts.tp if facts.on(SP) else 1)
    if facts.seq % parts == 0 and (facts.seq // parts * facts.mbs) % 16:
        step = 16 * parts
        yield (
            "seq_length",
            (
                f"each rank has {facts.seq // parts} x {facts.mbs} tokens, and 8-bit products need a multiple of 16;"
                f" write --seq-length {-(-facts.seq // step) * step}"
            ),
        )


def _exchange(facts: Facts) -> Iterator[Complaint]:
    kinds = facts.value("cp_comm_type")
    if facts.cp < 2 or not isinstance(kinds, list) or "a2a" not in kinds or not facts.tp:
        return
    for what, number, key in (("query", facts.heads, CP), ("key-value", facts.groups, "num_query_groups")):
        each = number // facts.tp if number and number % facts.tp == 0 else 0
        if each and each % facts.cp:
            yield (
                key if key in facts.of else CP,
                (
                    f"--cp-comm-type a2a cuts heads over the {facts.cp} context ranks, and each tensor rank has {each}"
                    f" {what} heads ({number} / {facts.tp}); use a context degree of {divisors(each)}, or p2p"
                ),
            )
            return


def _each_layer(facts: Facts) -> Iterator[Complaint]:
    kinds = facts.value("cp_comm_type")
    if facts.cp > 1 and isinstance(kinds, list) and len(kinds) > 1 and facts.layers and len(kinds) != facts.layers:
        yield (
            "cp_comm_type",
            f"--cp-comm-type has {len(kinds)} kinds for {facts.layers} layers; give one, or one for each",
        )


def _positions(facts: Facts) -> Iterator[Complaint]:
    most = facts.count("max_position_embeddings")
    if most is not None and facts.seq > most:
        yield (
            "max_position_embeddings",
            (
                f"samples have {facts.seq} tokens, and there are positions for {most}; write --max-position-embeddings"
                f" {facts.seq} or more"
            ),
        )


SEQUENCE = (
    rule(
        "MG410",
        "Tokens cut into two parts a context rank",
        "seq % (2 cp) = 0",
        _context,
        "Each context rank takes an early and a late part of the sample, so that causal attention costs all the same."
        " With sequence parallelism the joint multiple is cp x lcm(2, tp), not 2 x cp x tp (NVIDIA-NeMo/RL pull request"
        " 3563).",
        needs=(CP, TP, "seq_length"),
    ),
    rule(
        "MG411",
        "Tokens of a rank divide over tensor ranks",
        "--sequence-parallel => (seq / cp) % tp = 0",
        _sequence,
        "validate_args does not look; the scatter of the first layer stops in the first step.",
        needs=(CP, TP, SP, "seq_length"),
        source="NVIDIA/Megatron-LM, megatron/core/tensor_parallel/mappings.py, core 0.19.2",
        caught=False,
    ),
    rule(
        "MG412",
        "8-bit products have whole blocks of tokens",
        "fp8 => tokens of a rank % 16 = 0",
        _fp8,
        "Transformer Engine multiplies 8-bit matrices whose sides are multiples of 16; it asserts it in the first"
        " step.",
        needs=(CP, TP, SP, "seq_length", "micro_batch_size", "fp8", "fp4"),
        source=ENGINE,
        caught=False,
    ),
    rule(
        "MG413",
        "Heads divide over context ranks that exchange them",
        "a2a => (heads / tp) % cp = (kv / tp) % cp = 0",
        _exchange,
        "All-to-all exchange gives every context rank all tokens of a part of the heads; a ring (p2p) does not"
        " cut heads (hiyouga/LlamaFactory pull request 10794 for the same rule elsewhere).",
        needs=(CP, TP, "num_attention_heads", "num_query_groups", "group_query_attention", "cp_comm_type"),
        source=ENGINE,
        caught=False,
    ),
    rule(
        "MG414",
        "Kinds of exchange are one or as many as layers",
        "len(kinds) in (1, layers)",
        _each_layer,
        "A list gives one for each layer.",
        needs=(CP, "num_layers", "cp_comm_type"),
        source=CONFIG,
    ),
    rule(
        "MG415",
        "Positions reach to the end of a sample",
        "--max-position-embeddings >= --seq-length",
        _positions,
        "validate_args asserts it, for rotary positions too.",
        needs=("seq_length", "max_position_embeddings"),
    ),
)
