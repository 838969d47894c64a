"""TT4##: heads, sequence and context ranks."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.torchtitan.degrees import (
    CONTEXT,
    FLAVOR,
    SEQUENCE,
    TENSOR,
    degrees,
    is_old,
    model_of,
)
from planner.domain.configuration import WARNING, Configuration

BALANCER = "parallelism.context_parallel_load_balancer"
BALANCERS = ("headtail", "ptrr")


def _cut_heads(configuration: Configuration) -> Iterator[Complaint]:
    model, found = model_of(configuration), degrees(configuration)
    if model is None or not found.sound:
        return
    heads, keys = model.config["num_attention_heads"], model.config["num_key_value_heads"]
    for number, what in ((heads, "heads"), (keys, "heads of keys and values")):
        if number % found.tensor:
            able = [str(degree) for degree in range(1, keys + 1) if keys % degree == 0 == heads % degree]
            yield (
                TENSOR,
                (
                    f"{found.tensor} does not divide the {number} {what} of {model.model}"
                    f" {model.name}; write one of {', '.join(able)}"
                ),
            )
            return


def _cut_sequence(configuration: Configuration) -> Iterator[Complaint]:
    found, sequence = degrees(configuration), configuration.number(SEQUENCE)
    if not found.sound or sequence < 1:
        return
    if is_old(configuration):
        parts, what = found.tensor * 2 * found.context, f"2 * {found.tensor} tensor * {found.context} context ranks"
    else:
        tensor = found.tensor if configuration.on("parallelism.enable_sequence_parallel") else 1
        parts = tensor * (2 * found.context if found.context > 1 else 1)
        what = f"{tensor} tensor ranks" + (f" * 2 * {found.context} context ranks" if found.context > 1 else "")
    if sequence % parts:
        down = sequence // parts * parts
        near = f"{down} or {down + parts}" if down else str(parts)
        yield SEQUENCE, f"sequence {sequence} is no multiple of {what} = {parts}; write seq_len = {near}"


def _longest(configuration: Configuration) -> Iterator[Complaint]:
    model, sequence = model_of(configuration), configuration.number(SEQUENCE)
    if model and sequence > model.config["max_position_embeddings"]:
        most = model.config["max_position_embeddings"]
        yield (
            SEQUENCE,
            f"sequence {sequence} is longer than the {most} that {model.model} {model.name} has positions for",
        )


def _no_context(configuration: Configuration) -> Iterator[Complaint]:
    model, found = model_of(configuration), degrees(configuration)
    if not found.sound or found.context == 1:
        return
    if model and not model.context:
        yield CONTEXT, f"{model.model} has no context parallelism in this version; write context_parallel_degree = 1"
    elif str(configuration.get(FLAVOR)).endswith(("_varlen", "_varlen_attn")):
        yield (
            FLAVOR,
            f"attention over unlike lengths ({configuration.get(FLAVOR)}) has no context parallelism; use another",
        )


def _balancer(configuration: Configuration) -> Iterator[Complaint]:
    written = configuration.get(BALANCER)
    if degrees(configuration).context > 1 and written is not None and written not in BALANCERS:
        yield BALANCER, f"{BALANCER.partition('.')[2]} {written!r} does not exist; write headtail, ptrr or None"


RULES = (
    Rule(
        code="TT401",
        name="Tensor ranks divide the heads",
        summary="num_heads % tp = 0 and num_kv_heads % tp = 0",
        why=(
            "torchtitan copies no heads of keys and values to several ranks. Newer models have 2 to 8 of them, which"
            " caps tp. It refuses at the start: `tensor_parallel_degree must divide n_kv_heads`."
        ),
        source="torchtitan/models/common/decoder.py at v0.3.0; github.com/pytorch/torchtitan/issues/2574, pull/2577",
        check=_cut_heads,
        since="0.3",
    ),
    Rule(
        code="TT402",
        name="Ranks cut the sequence evenly",
        summary="seq_len % (2 tp cp) = 0 up to 0.2; from 0.3 on % (tp with sequence parallelism, times 2 cp if cp > 1)",
        why=(
            "Tensor ranks hold a part of the sequence each, context ranks two, one from its head and one from its tail."
        ),
        source="torchtitan/distributed/parallel_dims.py at v0.2.2 (seq_len_divisor), torchtitan/trainer.py at v0.3.0",
        check=_cut_sequence,
    ),
    Rule(
        code="TT403",
        name="The model has positions for the sequence",
        summary="seq_len <= max_seq_len of the model's rotary positions",
        why="0.3 refuses: `exceeds attention RoPE maximum supported sequence length`.",
        source="torchtitan/models/common/decoder.py at v0.3.0 (update_from_config)",
        check=_longest,
        since="0.3",
    ),
    Rule(
        code="TT404",
        name="The model was made for the sequence",
        summary="seq_len <= max_seq_len of the model",
        why="Up to 0.2 torchtitan warns, and computes positions beyond those that the model is published for.",
        source="torchtitan/models/*/model/args.py at v0.2.2 (update_from_config)",
        check=_longest,
        severity=WARNING,
        until="0.3",
        caught=False,
    ),
    Rule(
        code="TT405",
        name="The model's attention knows context ranks",
        summary="cp = 1 for gpt_oss, up to 0.2 for deepseek_v3, and for attention over unlike lengths",
        why="torchtitan stops with NotImplementedError when it builds the model, or parallelizes it.",
        source="torchtitan/models/*/model/args.py at v0.2.2; torchtitan/distributed/full_dtensor.py at v0.3.0",
        check=_no_context,
    ),
    Rule(
        code="TT406",
        name="The load balancer exists",
        summary="context_parallel_load_balancer is headtail, ptrr or None",
        why="torchtitan looks at it in the first step only, when it has loaded everything.",
        source="torchtitan/distributed/context_parallel.py at v0.2.2, context_parallel/api.py at v0.3.0",
        check=_balancer,
    ),
    Rule(
        code="TT407",
        name="Tensor ranks divided the heads",
        summary="num_heads % tp = 0 and num_kv_heads % tp = 0",
        why=(
            "Up to 0.2 torchtitan starts, builds the model, and fails in a reshape of the first step's attention,"
            " with nothing said of heads."
        ),
        source="github.com/pytorch/torchtitan/issues/2574",
        check=_cut_heads,
        until="0.3",
        caught=False,
    ),
)
