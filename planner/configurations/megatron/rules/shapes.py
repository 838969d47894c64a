"""Sequence, heads, feed-forward width and vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import ARGUMENTS, CONFIG, divisors, rule
from planner.domain.configuration import WARNING

TP, CP, SP = "tensor_model_parallel_size", "context_parallel_size", "sequence_parallel"


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
    groups, tensor = facts.groups, facts.tp
    if groups and tensor and groups % tensor and tensor % groups and not facts.on("multi_latent_attention"):
        yield (
            "num_query_groups",
            (
                f"{groups} key-value heads neither divide over {tensor} tensor ranks nor go evenly into them; use"
                f" a tensor degree of {divisors(groups)}, or a multiple of {groups}"
            ),
        )


def _groups_once(facts: Facts) -> Iterator[Complaint]:
    if facts.groups and facts.tp and facts.groups % facts.tp and not facts.on("multi_latent_attention"):
        yield (
            "num_query_groups",
            (
                f"before core 0.16 {facts.groups} key-value heads must divide over the {facts.tp} tensor ranks; use a"
                f" degree of {divisors(facts.groups)}"
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
                f"--num-query-groups {given} does nothing without --group-query-attention, and every query head gets"
                " its own keys and values; add it"
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
        "Where there are fewer key-value heads than tensor ranks, ranks share copies of them (from core 0.16 on)."
        " Models with 2 to 4 key-value heads are common now.",
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
        source="NVIDIA/Megatron-LM, megatron/training/argument_utils.py, core_transformer_config_from_args, 0.19.2",
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
        "The embedding is cut by rows (hpcaitech/ColossalAI issue 6167: such a model trains, and cannot be loaded"
        " again).",
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
