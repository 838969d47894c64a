"""Layers over pipeline stages and their chunks."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.forms.megatron.facts import SPLITS, Facts
from planner.configurations.forms.megatron.layout_text import written_out
from planner.configurations.forms.megatron.rules.base import ARGUMENTS, CONFIG, CUT, divisors, rule
from planner.configurations.forms.megatron.rules.remedies import uneven_remedy
from planner.domain.configuration import WARNING

LAYOUT, FIRST, LAST = (
    "pipeline_model_parallel_layout",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
)
EMBEDDING, LOSS = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"
EACH, CHUNKS = "num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank"
HYBRID = ("hybrid_layer_pattern", "hybrid_override_pattern")


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


CHUNKS_FLAG = "--num-virtual-stages-per-pipeline-rank"


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


def _layout_alone(facts: Facts) -> Iterator[Complaint]:
    others = [key for key in (FIRST, LAST, EMBEDDING, LOSS) if facts.value(key) and key in facts.of]
    if facts.value(LAYOUT) is not None and others:
        names = ", ".join(facts.of.name(key) for key in others)
        yield LAYOUT, f"the layout says all about the stages, and {names} cannot stand beside it; remove {names}"


def _layout_text(facts: Facts) -> Iterator[Complaint]:
    text = facts.value(LAYOUT)
    found = written_out(text) if isinstance(text, str) else ()
    if isinstance(found, str):
        yield LAYOUT, f"the layout {found}"


def _layout_stages(facts: Facts) -> Iterator[Complaint]:
    stages = facts.stages_text
    if stages and facts.pp and len(stages) % facts.pp:
        yield (
            LAYOUT,
            (
                f"the layout has {len(stages)} stages, which {facts.pp} pipeline ranks cannot share equally;"
                f" separate a multiple of {facts.pp} by |, such as {-(-len(stages) // facts.pp) * facts.pp}"
            ),
        )


def _layout_layers(facts: Facts) -> Iterator[Complaint]:
    stages = facts.stages_text
    if stages and facts.layers:
        held = sum(stage.count("t") for stage in stages)
        if held != facts.layers:
            more = facts.layers - held
            change = f"add {more} t" if more > 0 else f"remove {-more} t, or write --num-layers {held}"
            yield LAYOUT, f"the layout has {held} decoder layers (t), and --num-layers says {facts.layers}; {change}"


def _layout_ends(facts: Facts) -> Iterator[Complaint]:
    stages = facts.stages_text
    if not stages:
        return
    flat = "".join(stages)
    if flat[:1] != "E" or flat.count("E") != 1:
        yield LAYOUT, "the layout should begin with the embedding, E, and have it once"
    if flat[-1:] != "L" or flat.count("L") != 1:
        yield LAYOUT, "the layout should end with the loss, L, and have it once"


def _layout_prediction(facts: Facts) -> Iterator[Complaint]:
    stages, number = facts.stages_text, facts.count("mtp_num_layers") or 0
    if not stages or not facts.vpp:
        return
    flat = "".join(stages)
    held = flat.count("m")
    if held != number:
        yield LAYOUT, f"the layout has {held} layers of multi-token prediction (m), and --mtp-num-layers says {number}"
    elif held and "t" in flat[flat.index("m") :]:
        yield LAYOUT, "layers of multi-token prediction (m) stand behind all decoder layers (t)"
    elif held:
        where = [index for index, stage in enumerate(stages) if "m" in stage]
        if len(where) > 1:
            yield LAYOUT, "all layers of multi-token prediction (m) stand in one stage of the layout"
        elif where[0] < len(stages) - facts.pp:
            yield LAYOUT, "layers of multi-token prediction (m) stand in the last chunk of their pipeline rank"


def _empty(facts: Facts) -> Iterator[Complaint]:
    chunks = facts.chunks
    if chunks is None or facts.pp < 2:
        return
    flat = [stage[number] for number in range(len(chunks[0])) for stage in chunks]
    negative = next((index for index, size in enumerate(flat) if size < 0), None)
    if negative is not None:
        yield "num_layers", f"stage {negative} would hold {flat[negative]} layers once embedding or loss take theirs"


def _more_stages(facts: Facts) -> Iterator[Complaint]:
    if (
        facts.pp > 1
        and 0 < facts.layers < facts.pp
        and facts.value(LAYOUT) is None
        and facts.padded_layers % facts.pp == 0
    ):
        yield "pipeline_model_parallel_size", f"{facts.pp} stages are more than the {facts.layers} layers"


def _hybrid(facts: Facts) -> Iterator[Complaint]:
    pattern = next((key for key in HYBRID if facts.value(key)), None)
    clash = [key for key in (EACH, CHUNKS, LAYOUT, EMBEDDING, LOSS) if facts.value(key) and key in facts.of]
    if pattern and clash:
        names = ", ".join(facts.of.name(key) for key in clash)
        yield pattern, f"stages of a hybrid model are the parts between | of its pattern; remove {names}"


def _hybrid_stages(facts: Facts) -> Iterator[Complaint]:
    for key in HYBRID:
        text = facts.value(key)
        parts = str(text).split("/", maxsplit=1)[0].count("|") + 1 if text else 1
        if parts > 1 and facts.pp and parts % facts.pp:
            yield key, f"the pattern has {parts} parts between |, which {facts.pp} pipeline ranks cannot share equally"


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
                f"the last stage also computes the logits of {size or padded} entries, worth {worth:.1f} layers, so all wait"
                f" for it; {uneven_remedy(facts, fewer_last=round(worth))}"
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
        "With unlike first and last stages each of them has to divide, not only the middle ones.",
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
        "MG209",
        "A layout stands alone",
        "layout => no first, last or account flags",
        _layout_alone,
        "The core raises ValueError for any of them beside a layout.",
        needs=SPLITS,
        source=CONFIG,
    ),
    rule(
        "MG210",
        "A layout can be read",
        "only E, t, m, L, |, x*n, (...)*n and commas",
        _layout_text,
        "Groups do not nest: the text is unrolled by two patterns, one after the other.",
        needs=(LAYOUT,),
        source=CUT,
        since="0.13",
    ),
    rule(
        "MG211",
        "Stages of a layout divide over the ranks",
        "stages % pp = 0",
        _layout_stages,
        "Stage i of the text is held by rank i mod pp; how often it comes round is the number of chunks.",
        needs=SPLITS,
        source=CUT,
        since="0.13",
    ),
    rule(
        "MG212",
        "A layout holds all layers",
        "number of t = --num-layers",
        _layout_layers,
        "It is asserted when the model's configuration is built.",
        needs=SPLITS,
        source=CUT,
        since="0.13",
    ),
    rule(
        "MG213",
        "A layout has its ends",
        "begins with one E, ends with one L",
        _layout_ends,
        "Embedding and loss may have stages of their own (E|tt|L), but each stands once, at its end.",
        needs=(LAYOUT,),
        source=CUT,
        since="0.13",
    ),
    rule(
        "MG214",
        "Multi-token prediction stands where it may",
        "number of m = --mtp-num-layers, all in one last chunk",
        _layout_prediction,
        "The layers of multi-token prediction follow all decoder layers, in one stage that is the last chunk of its"
        " rank. Some libraries also want a decoder layer beside them (modelscope/ms-swift pull request 9827).",
        needs=(*SPLITS, "mtp_num_layers"),
        source=CUT,
        since="0.13",
    ),
    rule(
        "MG215",
        "Accounted ends leave no stage below nothing",
        "layers of every chunk >= 0",
        _empty,
        "An accounted embedding takes the place of a layer of the first chunk, the loss of the last.",
        needs=SPLITS,
        source="NVIDIA/Megatron-LM, megatron/core/transformer/transformer_block.py, get_num_layers_to_build, core 0.19.2",
        since="0.11",
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
        "MG217",
        "Hybrid models cut stages in their pattern",
        "hybrid pattern => no other way to cut stages",
        _hybrid,
        "Stages are what | separates in --hybrid-layer-pattern.",
        needs=(*SPLITS, *HYBRID),
    ),
    rule(
        "MG218",
        "Parts of a hybrid pattern divide over the ranks",
        "parts % pp = 0",
        _hybrid_stages,
        "As in a layout, parts go round the ranks.",
        needs=("pipeline_model_parallel_size", *HYBRID),
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
