"""Layers over pipeline stages and their chunks."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import SPLITS, Facts
from planner.configurations.megatron.rules.base import ARGUMENTS, CONFIG, divisors, rule
from planner.configurations.megatron.rules.remedies import uneven_remedy
from planner.domain.configuration import WARNING

LAYOUT, FIRST, LAST = (
    "pipeline_model_parallel_layout",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
)
EMBEDDING, LOSS = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"
EACH, CHUNKS = "num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank"
HYBRID = ("hybrid_layer_pattern", "hybrid_override_pattern")
CHUNKS_FLAG = "--num-virtual-stages-per-pipeline-rank"


def _plain(facts: Facts, least: int = 2) -> bool:
    """Return whether layers are cut evenly over `least` stages or more, by number alone."""
    named = (LAYOUT, FIRST, LAST, *HYBRID)
    return facts.pp >= least and facts.layers > 0 and all(facts.value(key) is None for key in named)


def _even(facts: Facts) -> Iterator[Complaint]:
    if _plain(facts) and facts.padded_layers % facts.pp:
        counted = [word for word, key in (("embedding", EMBEDDING), ("loss", LOSS)) if facts.on(key)]
        extra = f" with {' and '.join(counted)} counted ({facts.padded_layers})" if counted else ""
        yield "num_layers", f"{facts.layers} layers{extra} do not divide over {facts.pp} stages; {uneven_remedy(facts)}"


def _chunks_divide(facts: Facts) -> Iterator[Complaint]:
    each = facts.count(EACH)
    if each is None or not facts.pp or not _plain(facts, least=1) or facts.padded_layers % facts.pp:
        return
    per_stage = facts.padded_layers // facts.pp
    if each < 1 or per_stage % each:
        yield (
            EACH,
            (
                f"{per_stage} layers a stage ({facts.layers} over {facts.pp}) do not divide into chunks of {each};"
                f" use --num-layers-per-virtual-pipeline-stage {divisors(per_stage)}"
            ),
        )


def _stages_divide(facts: Facts) -> Iterator[Complaint]:
    chunks, sizes = facts.count(CHUNKS), facts.stage_sizes
    if chunks is None or sizes is None or facts.value(LAYOUT) or any(facts.value(key) for key in HYBRID):
        return
    wrong = next(((stage, size) for stage, size in enumerate(sizes) if chunks < 1 or size % chunks), None)
    if wrong:
        yield (
            CHUNKS,
            (
                f"stage {wrong[0]} has {wrong[1]} layers, which do not divide into {chunks} chunks; use"
                f" {CHUNKS_FLAG} {divisors(wrong[1])}, or a layout with chunks of unlike size"
            ),
        )


def _one_way(facts: Facts) -> Iterator[Complaint]:
    given = [key for key in (EACH, CHUNKS, LAYOUT) if facts.value(key) is not None]
    if len(given) > 1:
        names = " and ".join(facts.of.name(key) for key in given)
        yield given[-1], f"{names} both say how many chunks a stage has; keep one"


def _first_last_chunks(facts: Facts) -> Iterator[Complaint]:
    if facts.value(EACH) is not None and (facts.value(FIRST) is not None or facts.value(LAST) is not None):
        yield (
            EACH,
            (
                "with unlike first or last stages the number of chunks is given, not their size; write"
                f" {CHUNKS_FLAG} N instead of --num-layers-per-virtual-pipeline-stage"
            ),
        )


def _first_last_account(facts: Facts) -> Iterator[Complaint]:
    if (facts.value(FIRST) is not None or facts.value(LAST) is not None) and (facts.on(EMBEDDING) or facts.on(LOSS)):
        key = FIRST if facts.value(FIRST) is not None else LAST
        other = EMBEDDING if facts.on(EMBEDDING) else LOSS
        yield key, f"{facts.of.name(key)} cannot go with {facts.of.name(other)}; one says the layers of an end, keep it"


def _first_last(facts: Facts) -> Iterator[Complaint]:
    first, last = facts.count(FIRST), facts.count(LAST)
    if (first is None and last is None) or facts.value(LAYOUT) or not facts.pp or not facts.layers:
        return
    key = FIRST if first is not None else LAST
    middle = facts.pp - (first is not None) - (last is not None)
    rest = facts.layers - (first or 0) - (last or 0)
    ends = " and ".join(f"{n} in the {name}" for n, name in ((first, "first"), (last, "last")) if n is not None)
    if any(number is not None and number < 1 for number in (first, last)):
        yield key, f"the ends of the pipeline have {ends}; each needs a layer at least, or write a layout"
    elif facts.pp == 1 and (rest or middle):
        yield key, f"there is one stage for all {facts.layers} layers, with {ends}; remove {facts.of.name(key)}"
    elif (middle and rest < 1) or (middle and rest % middle) or (not middle and rest):
        left = f"{rest} are left for {middle} stages" if middle else f"{rest} are left over, with no stage between"
        yield key, f"of {facts.layers} layers, {ends}, {left}, which does not come out; {uneven_remedy(facts)}"


def _first_last_alone(facts: Facts) -> Iterator[Complaint]:
    for key in (LAYOUT, EMBEDDING, LOSS, EACH, CHUNKS):
        if facts.pp == 1 and facts.value(key) and key in facts.of and not _single(facts, key):
            yield (
                key,
                f"{facts.of.name(key)} says how stages are cut, and there is one; give --pipeline-model-parallel-size",
            )
            return


def _single(facts: Facts, key: str) -> bool:
    """Return whether what is said of one stage says nothing: a layout of one stage, one chunk."""
    stages = facts.stages_text
    return (key == LAYOUT and stages is not None and len(stages) == 1) or facts.value(key) == 1


def _more_stages(facts: Facts) -> Iterator[Complaint]:
    if (
        facts.pp > 1
        and 0 < facts.layers < facts.pp
        and facts.value(LAYOUT) is None
        and facts.padded_layers % facts.pp == 0
    ):
        yield "pipeline_model_parallel_size", f"{facts.pp} stages are more than the {facts.layers} layers"


def _balance(facts: Facts) -> Iterator[Complaint]:
    """Tell of an end that is left as heavy as the others although the vocabulary makes it heavier."""
    size, padded = facts.vocabulary
    hidden, sizes = facts.size("hidden_size"), facts.stage_sizes
    if not (padded and hidden and sizes and _plain(facts)) or facts.on(LOSS) or len(set(sizes)) > 1:
        return
    layer = 12 * hidden * hidden
    worth = padded * hidden / layer
    if worth >= 1.0 and worth / sizes[-1] > 0.15:
        yield (
            "num_layers",
            (
                f"the last stage also computes the logits of {size or padded} entries, worth {worth:.1f} layers, so all"
                f" wait for it; {uneven_remedy(facts, fewer_last=round(worth))}"
            ),
        )


LAYERS = (
    rule(
        "MG201",
        "Layers divide over pipeline stages",
        "(layers + embedding + loss, where counted) % pp = 0",
        _even,
        "Every stage gets the same number of layers unless first and last counts or a layout say otherwise. Core before"
        " 0.10 (2024-11) dropped the rest silently: the model trained with fewer layers (modelscope/ms-swift issue 5737"
        " for today's assertion).",
        needs=(*SPLITS, *HYBRID),
    ),
    rule(
        "MG202",
        "Layers of a stage divide into chunks",
        "(layers / pp) % layers per chunk = 0",
        _chunks_divide,
        "Nine published recipes had this wrong, mostly copied from a model with another number of layers"
        " (NVIDIA-NeMo/Megatron-Bridge pull request 5893).",
        needs=(*SPLITS, *HYBRID),
    ),
    rule(
        "MG203",
        "Every stage divides into its chunks",
        "layers of every stage % chunks = 0",
        _stages_divide,
        "With unlike first and last stages each of them has to divide, not only the middle ones. A published recipe of"
        " 40 layers on 2 stages had 12 chunks, copied from a model of 48 layers, and died before the first step"
        " (NVIDIA-NeMo/Megatron-Bridge pull request 5893).",
        needs=(*SPLITS, *HYBRID),
        source=CONFIG,
    ),
    rule(
        "MG204",
        "Chunks are said one way",
        "at most one of the two flags and the layout",
        _one_way,
        "validate_args asserts it.",
        needs=SPLITS,
    ),
    rule(
        "MG205",
        "Unlike ends give the number of chunks",
        "first or last counts => no size of chunks",
        _first_last_chunks,
        "The size would mean another number of chunks for each stage.",
        needs=SPLITS,
        since="0.11",
    ),
    rule(
        "MG206",
        "Ends are counted or accounted for",
        "first or last counts => no --account-for-*",
        _first_last_account,
        "Both say how many layers an end holds.",
        needs=SPLITS,
        source=CONFIG,
    ),
    rule(
        "MG207",
        "Layers between the ends divide over the stages between",
        "(layers - first - last) % (pp - ends) = 0",
        _first_last,
        "What is more irregular needs a layout (modelscope/ms-swift issue 6476: 94 layers, last 22, 24 each before).",
        needs=(*SPLITS,),
        source=CONFIG,
    ),
    rule(
        "MG208",
        "Ways to cut stages have stages",
        "a cut is given => pp > 1",
        _first_last_alone,
        "With one stage nothing is cut, so the flag was meant for another degree. Chunks with one stage are refused.",
        needs=SPLITS,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG216",
        "No more stages than layers",
        "pp <= layers",
        _more_stages,
        "A stage without layers only passes on.",
        needs=SPLITS,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG219",
        "The head's stage has fewer layers",
        "logits worth a layer or more => the last stage holds fewer",
        _balance,
        "The product with a large vocabulary takes as long as several layers of a small model, and the whole"
        " pipeline runs at the pace of its slowest stage. --account-for-loss-in-pipeline-split or a smaller last stage"
        " evens that out.",
        needs=(*SPLITS, "vocab_size", "hidden_size"),
        source=ARGUMENTS,
        severity="note",
        caught=False,
    ),
)
