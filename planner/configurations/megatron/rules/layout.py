"""Layouts and patterns, which say all about the stages."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.layout_text import written_out
from planner.configurations.megatron.facts import SPLITS, Facts
from planner.configurations.megatron.rules.base import CONFIG, CUT, rule

LAYOUT, FIRST, LAST = (
    "pipeline_model_parallel_layout",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
)
EMBEDDING, LOSS = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"
EACH, CHUNKS = "num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank"
HYBRID = ("hybrid_layer_pattern", "hybrid_override_pattern")


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


LAYOUT_RULES = (
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
)
