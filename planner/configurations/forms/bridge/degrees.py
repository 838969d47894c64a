"""Degrees, ranks, batch, sequence and experts of a Bridge recipe (MB1, MB3, MB4, MB5).

These are the rules of Megatron-Core and of Bridge's ConfigContainer under Bridge's names. What neither the overrides
nor a known recipe say is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.domain.configuration import WARNING, Configuration

CONFIG = "Megatron-Bridge, src/megatron/bridge/training/config.py at 067f987 (2026-08-22)"
RUNNER = "Megatron-Bridge, scripts/training/run_recipe.py and recipe_runner.py at 067f987 (2026-08-22)"
CORE = "Megatron-Core, megatron/core/parallel_state.py and transformer_config.py at d98e8a64 (2026-08-22)"
TP, PP, CP = "tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"
EP, ETP = "expert_model_parallel_size", "expert_tensor_parallel_size"


def width(configuration: Configuration) -> int:
    """Return tp pp cp; 0 if one of them is not known."""
    return configuration.number(TP) * configuration.number(PP) * configuration.number(CP)


def world(configuration: Configuration) -> int:
    """Return the ranks, 0 if they are not known."""
    return int(configuration.world.value) if configuration.world else 0


def replicas(configuration: Configuration) -> int:
    """Return the data degree, 0 if it is not known or does not come out."""
    each, ranks = width(configuration), world(configuration)
    return ranks // each if each and ranks % each == 0 else 0


def blamed(configuration: Configuration, *keys: str) -> str:
    """Return the first of `keys` that is written, else the recipe, which says what is not."""
    return next((key for key in keys if key in configuration), "recipe")


def _ranks(configuration: Configuration) -> Iterator[Complaint]:
    each, ranks = width(configuration), world(configuration)
    if each and ranks and ranks % each:
        degrees = " x ".join(
            f"{name} {configuration.number(key)}" for name, key in (("tp", TP), ("pp", PP), ("cp", CP))
        )
        key = blamed(configuration, PP, TP, CP)
        yield key, f"{degrees} = {each} does not divide {ranks} ranks; change one of the degrees"


def _expert_ranks(configuration: Configuration) -> Iterator[Complaint]:
    yield from _dividing(configuration, configuration.number(ETP, 1) or 1, "1")


def _inherited_ranks(configuration: Configuration) -> Iterator[Complaint]:
    yield from _dividing(configuration, configuration.number(ETP) or configuration.number(TP), "tp")


def _dividing(configuration: Configuration, etp: int, usual: str) -> Iterator[Complaint]:
    """Yield what is wrong with the ranks of experts, whose tensor degree is `usual` where it is not written."""
    ep, pp, ranks = configuration.number(EP), configuration.number(PP), world(configuration)
    written = configuration.number(ETP)
    if not (ep > 1 and pp and etp and ranks) or ranks % (etp * ep * pp) == 0:
        return
    inherited = "" if written else f" (etp is {usual} where it is not written)"
    most = min(ep, ranks // (etp * pp))
    fits = next((size for size in range(most, 0, -1) if ranks % (etp * pp * size) == 0), 0)
    remedies = [] if etp == 1 else ["model.expert_tensor_parallel_size=1"] if ranks % (ep * pp) == 0 else []
    remedies += [f"model.expert_model_parallel_size={fits}"] if fits else []
    remedy = f"; write {' or '.join(remedies)}" if remedies else "; change a degree or the ranks"
    product = f"etp {etp} x ep {ep} x pp {pp} = {etp * ep * pp}"
    yield blamed(configuration, EP, ETP, PP, TP), f"{product} does not divide {ranks} ranks{inherited}{remedy}"


def _experts(configuration: Configuration) -> Iterator[Complaint]:
    ep, experts = configuration.number(EP), configuration.number("num_experts")
    if ep > 1 and experts and experts % ep:
        yield EP, f"is {ep}, which does not divide {experts} experts; choose a divisor of {experts}"


def _sequence_parallel_experts(configuration: Configuration) -> Iterator[Complaint]:
    tp, experts = configuration.number(TP), configuration.number("num_experts")
    if experts and tp > 1 and configuration.get("sequence_parallel") is False:
        key = blamed(configuration, "sequence_parallel", TP)
        yield key, f"tp {tp} trains experts only with sequence parallelism; write model.sequence_parallel=true"


def _batch(configuration: Configuration) -> Iterator[Complaint]:
    total, each = configuration.number("global_batch_size"), configuration.number("micro_batch_size")
    copies = replicas(configuration)
    if total and each and copies and total % (each * copies):
        at_once = f"micro_batch_size {each} x dp {copies} = {each * copies}"
        near = max(1, round(total / (each * copies))) * each * copies
        yield "global_batch_size", f"is {total}, which {at_once} does not divide; write {near}"


def _owner(configuration: Configuration) -> Iterator[Complaint]:
    own, length = configuration.number("model.seq_length"), configuration.number("seq_length")
    if own and own != length:
        told = f"the dataset's, {length}" if length else "that of the dataset"
        yield "model.seq_length", f"is replaced by {told}; write dataset.seq_length={own} instead"


def _context(configuration: Configuration) -> Iterator[Complaint]:
    length, cp = configuration.number("seq_length"), configuration.number(CP)
    if length and cp > 1 and length % (2 * cp):
        near = -(-length // (2 * cp)) * 2 * cp
        yield "seq_length", f"is {length}, no multiple of 2 cp = {2 * cp}; write {near}, or another context degree"


def _cut(configuration: Configuration) -> Iterator[Complaint]:
    length, cp, tp = configuration.number("seq_length"), configuration.number(CP), configuration.number(TP)
    if length and cp and tp > 1 and configuration.on("sequence_parallel") and length % (cp * tp):
        near = -(-length // (cp * tp)) * cp * tp
        yield "seq_length", f"is {length}, which cp {cp} x tp {tp} = {cp * tp} does not cut evenly; write {near}"


def _heads(configuration: Configuration) -> Iterator[Complaint]:
    tp = configuration.number(TP)
    for key in ("num_attention_heads", "num_query_groups"):
        number = configuration.number(key)
        if tp > 1 and number and number % tp:
            fits = next(size for size in range(min(tp, number), 0, -1) if number % size == 0)
            yield TP, f"is {tp}, which does not divide {number} ({key}); write {fits}"


RULES = (
    Rule(
        code="MB101",
        name="Degrees divide the ranks",
        summary="world % (tp pp cp) = 0",
        why="The rest is the data degree. Bridge refuses it once the processes have started.",
        source=CONFIG,
        check=_ranks,
    ),
    Rule(
        code="MB102",
        name="Expert degrees divide the ranks",
        summary="world % (etp ep pp) = 0, where etp is 1 unless it is written",
        why="Experts have groups of their own. Megatron-Core takes tp for an etp that is not written, Bridge 1.",
        source=CORE + "; Megatron-Bridge, src/megatron/bridge/models/transformer_config.py at 067f987",
        check=_expert_ranks,
        since="0.7",
    ),
    Rule(
        code="MB103",
        name="Expert degrees divide the ranks, with the tensor degree of all",
        summary="world % (etp ep pp) = 0, where etp is tp unless it is written",
        why="The tensor degree of experts is silently that of everything else, so that tp 4 and ep 4 need 16 ranks;"
        " write model.expert_tensor_parallel_size=1. Bridge 0.7 takes 1 by itself; when that began is not known.",
        source="NVIDIA-NeMo/Megatron-Bridge issue 546; NVIDIA-NeMo/Speech issue 14838",
        check=_inherited_ranks,
        until="0.7",
    ),
    Rule(
        code="MB301",
        name="The batch is whole micro-batches",
        summary="global_batch_size % (micro_batch_size dp) = 0",
        why="All replicas run the same number of micro-batches.",
        source=CORE,
        check=_batch,
    ),
    Rule(
        code="MB401",
        name="The dataset owns the sequence length",
        summary="dataset.seq_length is written, not model.seq_length",
        why="The runner sets the model's length to the dataset's after all overrides: the model's is lost in silence.",
        source=RUNNER,
        check=_owner,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="MB402",
        name="Context ranks cut samples into pairs",
        summary="seq_length % (2 cp) = 0 with cp > 1",
        why="For balance under the causal mask each rank holds one run from the front and one from the back.",
        source=CORE,
        check=_context,
    ),
    Rule(
        code="MB403",
        name="Sequence parallelism cuts evenly",
        summary="seq_length % (cp tp) = 0 with sequence_parallel",
        why="Each tensor rank holds an equal run of what its context rank has.",
        source=CORE,
        check=_cut,
    ),
    Rule(
        code="MB404",
        name="Tensor degree divides the heads",
        summary="num_attention_heads % tp = 0 and num_query_groups % tp = 0",
        why="Heads are not cut.",
        source=CORE,
        check=_heads,
    ),
    Rule(
        code="MB501",
        name="Expert degree divides the experts",
        summary="num_moe_experts % ep = 0",
        why="Each rank holds the same number of experts.",
        source=CORE,
        check=_experts,
    ),
    Rule(
        code="MB502",
        name="Experts with tensor parallelism cut the sequence",
        summary="sequence_parallel with experts and tp > 1",
        why="Otherwise each tensor rank would send every token to the experts.",
        source=CORE + "; NVIDIA/Megatron-LM issue 1587",
        check=_sequence_parallel_experts,
    ),
)
"""In the order of their codes."""
