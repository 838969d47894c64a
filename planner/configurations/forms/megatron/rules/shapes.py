"""Sequence, heads, feed-forward width and vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm

from planner.configurations.base import Complaint
from planner.configurations.forms.megatron.facts import Facts
from planner.configurations.forms.megatron.rules.base import ARGUMENTS, CONFIG, divisors, rule
from planner.domain.configuration import WARNING

TP, CP, SP = "tensor_model_parallel_size", "context_parallel_size", "sequence_parallel"
ENGINE = "NVIDIA/TransformerEngine, docs/api, context parallelism; transformer_engine/pytorch/attention"


def _heads(facts: Facts) -> Iterator[Complaint]:
    if facts.heads and facts.tp and facts.heads % facts.tp:
        yield (
            TP,
            (
                f"{facts.heads} attention heads do not divide over {facts.tp} tensor ranks; use a degree of"
                f" {divisors(facts.heads)}"
            ),
        )


def _groups(facts: Facts) -> Iterator[Complaint]:
    if facts.groups and facts.tp and not facts.on("multi_latent_attention"):
        if facts.groups % facts.tp and facts.tp % facts.groups:
            yield (
                "num_query_groups",
                (
                    f"{facts.groups} key-value heads neither divide over {facts.tp} tensor ranks nor go evenly into them; use"
                    f" a tensor degree of {divisors(facts.groups)}, or a multiple of {facts.groups}"
                ),
            )


def _groups_once(facts: Facts) -> Iterator[Complaint]:
    if facts.groups and facts.tp and facts.groups % facts.tp and not facts.on("multi_latent_attention"):
        yield (
            "num_query_groups",
            (
                f"before core 0.16 {facts.groups} key-value heads must divide over the {facts.tp} tensor ranks; use a degree"
                f" of {divisors(facts.groups)}"
            ),
        )


def _groups_of_heads(facts: Facts) -> Iterator[Complaint]:
    if facts.on("group_query_attention") and facts.heads and facts.groups and facts.heads % facts.groups:
        yield (
            "num_query_groups",
            (
                f"{facts.groups} key-value heads do not divide the {facts.heads} query heads; use one of"
                f" {divisors(facts.heads)}"
            ),
        )


def _groups_unused(facts: Facts) -> Iterator[Complaint]:
    given = facts.count("num_query_groups")
    if given and "num_query_groups" in facts.of and not facts.on("group_query_attention") and given != facts.heads:
        yield (
            "num_query_groups",
            (
                f"--num-query-groups {given} does nothing without --group-query-attention, and every query head gets its own"
                " keys and values; add it"
            ),
        )


def _groups_missing(facts: Facts) -> Iterator[Complaint]:
    if facts.on("group_query_attention") and "num_query_groups" not in facts.of:
        yield (
            "group_query_attention",
            "--group-query-attention without --num-query-groups shares one key-value head; say how many",
        )


def _latent(facts: Facts) -> Iterator[Complaint]:
    if facts.on("multi_latent_attention") and facts.on("group_query_attention"):
        yield (
            "group_query_attention",
            "multi-head latent attention has no groups of queries; remove --group-query-attention",
        )


def _head_size(facts: Facts) -> Iterator[Complaint]:
    hidden = facts.size("hidden_size")
    if hidden and facts.heads and facts.value("kv_channels") is None and hidden % facts.heads:
        yield "num_attention_heads", f"{facts.heads} heads do not divide the hidden size {hidden}; give --kv-channels"


def _width(facts: Facts) -> Iterator[Complaint]:
    width = facts.count("ffn_hidden_size")
    if width and facts.tp and width % facts.tp:
        yield "ffn_hidden_size", f"a feed-forward width of {width} does not divide over {facts.tp} tensor ranks"


def _context(facts: Facts) -> Iterator[Complaint]:
    if facts.cp > 1 and facts.seq and facts.seq % (2 * facts.cp):
        step = facts.cp * lcm(2, facts.tp if facts.on(SP) and facts.tp else 1)
        padded = -(-facts.seq // step) * step
        yield (
            "seq_length",
            (
                f"{facts.seq} tokens do not cut into 2 x {facts.cp} parts, two for each context rank; write --seq-length"
                f" {padded}"
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
                f"{facts.seq} tokens{each} do not divide over {facts.tp} tensor ranks, which --sequence-parallel asks for;"
                f" write --seq-length {padded}"
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
                f"each rank has {facts.seq // parts} x {facts.mbs} tokens, and 8-bit products need a multiple of 16; write"
                f" --seq-length {-(-facts.seq // step) * step}"
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


def _required(facts: Facts) -> Iterator[Complaint]:
    names = ("hidden_size", "num_attention_heads", "max_position_embeddings", "seq_length")
    if not facts.layers or not facts.mbs or facts.on("use_checkpoint_args"):
        return
    missing = [key for key in names if facts.value(key) is None and not (key == "seq_length" and facts.seq)]
    if missing:
        flags = ", ".join("--" + key.replace("_", "-") for key in missing)
        yield (
            "num_layers",
            f"{flags} {'is' if len(missing) == 1 else 'are'} missing, and Megatron has no default",
        )


def _padding(facts: Facts) -> Iterator[Complaint]:
    size, rows = facts.vocabulary
    if size and rows and facts.tp and rows % facts.tp:
        key = "padded_vocab_size" if "padded_vocab_size" in facts.of else "vocab_size"
        yield (
            key,
            (
                f"{rows} rows of the vocabulary do not divide over {facts.tp} tensor ranks; pad it to"
                f" {-(-rows // (128 * facts.tp)) * 128 * facts.tp}"
            ),
        )


def _odd_padding(facts: Facts) -> Iterator[Complaint]:
    size, rows = facts.vocabulary
    if size and rows and "make_vocab_size_divisible_by" not in facts.of and rows != size and facts.tp > 1:
        alone = -(-size // 128) * 128
        if alone != rows and "padded_vocab_size" not in facts.of:
            yield (
                "vocab_size",
                (
                    f"{size} entries are padded to {rows} rows for {facts.tp} tensor ranks, and to {alone} for one: a"
                    " checkpoint of one does not fit the other; fix it by --make-vocab-size-divisible-by"
                ),
            )


SHAPES = (
    rule(
        "MG401",
        "Heads divide over tensor ranks",
        "heads % tp = 0",
        _heads,
        "Attention is cut by its heads.",
        needs=(TP, "num_attention_heads"),
        source=CONFIG,
    ),
    rule(
        "MG402",
        "Key-value heads fit the tensor ranks",
        "kv heads % tp = 0 or tp % kv heads = 0",
        _groups,
        "Where there are fewer key-value heads than tensor ranks, ranks share copies of them (from core 0.16 on). Models"
        " with 2 to 4 key-value heads are common now.",
        needs=(TP, "num_attention_heads", "num_query_groups", "group_query_attention"),
        source=CONFIG,
        since="0.16",
    ),
    rule(
        "MG403",
        "Key-value heads divide over tensor ranks",
        "kv heads % tp = 0",
        _groups_once,
        "Before core 0.16 key-value heads are not copied.",
        needs=(TP, "num_attention_heads", "num_query_groups", "group_query_attention"),
        source="NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py, core 0.15",
        until="0.16",
    ),
    rule(
        "MG404",
        "Query heads divide over key-value heads",
        "heads % kv heads = 0",
        _groups_of_heads,
        "Each key-value head serves the same number of query heads.",
        needs=("num_attention_heads", "num_query_groups"),
        source="NVIDIA/Megatron-LM, megatron/core/transformer/attention.py, core 0.19.2",
        caught=False,
    ),
    rule(
        "MG405",
        "A number of key-value heads is used",
        "--num-query-groups => --group-query-attention",
        _groups_unused,
        "core_transformer_config_from_args takes the number only with the switch: a model with more"
        " parameters and a larger cache is trained, and nothing says so.",
        needs=("num_query_groups", "group_query_attention", "num_attention_heads"),
        source="NVIDIA/Megatron-LM, megatron/training/argument_utils.py, core_transformer_config_from_args, core 0.19.2",
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG406",
        "Grouped queries have their number",
        "--group-query-attention => --num-query-groups",
        _groups_missing,
        "The default is 1: one key-value head for all, which no tensor degree can cut.",
        severity=WARNING,
        caught=False,
    ),
    rule("MG407", "Latent attention has no groups", "not both", _latent, "validate_args asserts it."),
    rule(
        "MG408",
        "Heads divide the hidden size",
        "hidden % heads = 0, or --kv-channels",
        _head_size,
        "The size of a head is hidden / heads unless it is given.",
        needs=("hidden_size", "num_attention_heads", "kv_channels"),
    ),
    rule(
        "MG409",
        "The feed-forward width divides",
        "ffn % tp = 0",
        _width,
        "Its matrices are cut by columns and by rows.",
        needs=(TP, "ffn_hidden_size"),
        source="NVIDIA/Megatron-LM, megatron/core/tensor_parallel/layers.py, core 0.19.2",
        caught=False,
    ),
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
        "Transformer Engine multiplies 8-bit matrices whose sides are multiples of 16; it asserts it in the first step.",
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
    rule(
        "MG416",
        "Sizes of the model are given",
        "layers, hidden, heads, positions, sequence",
        _required,
        "They have no defaults; --use-checkpoint-args takes them from a checkpoint.",
        source=ARGUMENTS,
    ),
    rule(
        "MG417",
        "The vocabulary divides over tensor ranks",
        "rows % tp = 0",
        _padding,
        "The embedding is cut by rows (hpcaitech/ColossalAI issue 6167: such a model trains, and cannot be loaded again).",
        needs=(TP, "vocab_size", "padded_vocab_size"),
        source="NVIDIA/Megatron-LM, megatron/core/tensor_parallel/utils.py, VocabUtility, core 0.19.2",
        caught=False,
    ),
    rule(
        "MG418",
        "Padding of the vocabulary does not depend on the degree",
        "rows are the same for every tp",
        _odd_padding,
        "Rows are padded to a multiple of 128 x tp, so the shape of the embedding changes with the tensor"
        " degree (NVIDIA-NeMo/Megatron-Bridge issue 1331, NVIDIA/Megatron-LM issue 1754).",
        needs=(TP, "vocab_size"),
        source="NVIDIA/Megatron-LM, megatron/core/tokenizers/utils/build_tokenizer.py,"
        " vocab_size_with_padding, core 0.19.2",
        severity="note",
        caught=False,
    ),
)
