"""Layers over stages and chunks, layouts, and recompute of a Bridge recipe (MB2, MB6)."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.bridge.degrees import CORE, PP, blamed
from planner.configurations.layout_text import written_out
from planner.domain.configuration import WARNING, Configuration

VPP, LAYOUT = "num_virtual_stages_per_pipeline_rank", "pipeline_model_parallel_layout"
ENDS = ("decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers")
VIRTUAL = "model.virtual_pipeline_model_parallel_size"
COUNTED = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")


def stages(configuration: Configuration) -> tuple[str, ...]:
    """Return the letters of every stage of the layout; none where there is none, or it is broken."""
    text = configuration.get(LAYOUT)
    found = written_out(text) if isinstance(text, str) else ()
    return found if isinstance(found, tuple) else ()


def stage_layers(configuration: Configuration) -> tuple[int, ...]:
    """Return the layers of every stage without a layout; none where they do not come out, or are not known."""
    layers, pp = configuration.number("num_layers"), configuration.number(PP)
    if not 0 < pp <= layers or isinstance(configuration.get(LAYOUT), str):
        return ()
    first, last = (configuration.get(key) for key in ENDS)
    if first is None and last is None:
        all_ = layers + sum(configuration.on(key) for key in COUNTED)
        return (all_ // pp,) * pp if all_ % pp == 0 else ()
    middle, rest = pp - (first is not None) - (last is not None), layers - (first or 0) - (last or 0)
    if rest < 0 or (rest % middle if middle > 0 else rest):
        return ()
    ends = ([first] if first is not None else [], [last] if last is not None else [])
    return (*ends[0], *([rest // middle] * middle if middle > 0 else []), *ends[1])


def _divide(configuration: Configuration) -> Iterator[Complaint]:
    layers, pp = configuration.number("num_layers"), configuration.number(PP)
    if not (layers and pp) or isinstance(configuration.get(LAYOUT), str) or stage_layers(configuration):
        return
    key = blamed(configuration, *ENDS, PP)
    if pp > layers:
        yield key, f"{layers} layers are fewer than {pp} stages, each of which needs one; write a smaller pp"
        return
    few, more = divmod(layers, pp)
    shares = [few + (index < more) for index in range(pp)]
    flags = " with embedding or loss counted" if any(map(configuration.on, COUNTED)) else ""
    layout = "E" + "|".join("t" * share for share in shares) + "L"
    hint = (
        f"model.{LAYOUT}={layout}" if len(layout) <= 60 else f"model.{LAYOUT} with {shares[0]} or {few} layers a stage"
    )
    yield key, f"{layers} layers do not divide over {pp} stages{flags}; write {hint}"


def _chunks(configuration: Configuration) -> Iterator[Complaint]:
    vpp = configuration.number(VPP)
    held = stage_layers(configuration)
    wrong = next((count for count in held if vpp > 1 and count % vpp), None)
    if wrong is not None:
        fits = [size for size in range(2, min(held) + 1) if all(count % size == 0 for count in held)]
        remedy = f"write {VIRTUAL} with one of {', '.join(map(str, fits))}" if fits else "remove it, or write a layout"
        key = blamed(configuration, VPP, PP)
        yield key, f"the {wrong} layers of a stage do not divide into {vpp} chunks (vpp); {remedy}"


def _single(configuration: Configuration) -> Iterator[Complaint]:
    if configuration.number(VPP) > 1 and configuration.number(PP) == 1:
        key = blamed(configuration, VPP, PP)
        yield key, f"vpp {configuration.number(VPP)} needs more than one pipeline stage; write {VIRTUAL}=null"


def _layout(configuration: Configuration) -> Iterator[Complaint]:
    text = configuration.get(LAYOUT)
    if not isinstance(text, str):
        return
    found = written_out(text)
    if isinstance(found, str):
        yield LAYOUT, found
        return
    joined = "".join(found)
    pp, vpp, layers = configuration.number(PP), configuration.number(VPP), configuration.number("num_layers")
    if not (joined.startswith("E") and joined.endswith("L") and joined.count("E") == joined.count("L") == 1):
        yield LAYOUT, "should begin with E (embedding) and end with L (loss), each once"
    if pp and len(found) % pp:
        yield LAYOUT, f"has {len(found)} stages, no multiple of pp {pp}; write {pp}, or a number of chunks for each"
    elif pp and vpp and len(found) != pp * vpp:
        yield LAYOUT, f"has {len(found)} stages, and pp {pp} x vpp {vpp} = {pp * vpp}; make them equal"
    if layers and joined.count("t") != layers:
        yield LAYOUT, f"has {joined.count('t')} layers (t), and the model has {layers}; make them equal"


def _prediction(configuration: Configuration) -> Iterator[Complaint]:
    found = stages(configuration)
    number, written = configuration.number("mtp_num_layers"), "".join(found).count("m")
    if found and "mtp_num_layers" in configuration and written != number:
        yield LAYOUT, f"has {written} m, and mtp_num_layers is {number}; write m once for each of them"
    if written and len({index for index, one in enumerate(found) if "m" in one}) > 1:
        yield LAYOUT, "has m in several stages; they belong into one"


def _alone(configuration: Configuration) -> Iterator[Complaint]:
    for index, one in enumerate(stages(configuration)):
        if "m" in one and "t" not in one:
            message = f"gives stage {index} no layer (t) beside m, and some versions build no such stage"
            yield LAYOUT, f"{message}; move a t there"


def _exclusive(configuration: Configuration) -> Iterator[Complaint]:
    if not isinstance(configuration.get(LAYOUT), str):
        return
    for key in (*ENDS, *COUNTED):
        if configuration.get(key):
            yield LAYOUT, f"stands beside {key}, which it excludes; write null or false for that one"


def _ends(configuration: Configuration) -> Iterator[Complaint]:
    ends = [key for key in ENDS if configuration.get(key) is not None]
    counted = [key for key in COUNTED if configuration.on(key)]
    if ends and counted:
        yield ends[0], f"stands beside {counted[0]}, which it excludes; write one of the two"


def _recompute(configuration: Configuration) -> Iterator[Complaint]:
    kind, method = configuration.get("recompute_granularity"), configuration.get("recompute_method")
    count = configuration.get("recompute_num_layers")
    if kind == "full" and method is None:
        yield "recompute_granularity", "is full, which needs model.recompute_method=uniform or block"
    if kind == "full" and method is not None and count is None:
        yield "recompute_method", f"is {method}, which needs model.recompute_num_layers=1 or more"
    if kind == "selective" and method is not None:
        yield "recompute_method", f"is {method}, which selective recompute does not take; write null"


RULES = (
    Rule(
        code="MB201",
        name="Layers divide over pipeline stages",
        summary="(layers + embedding and loss where counted) % pp = 0, or first and last stages, or a layout",
        why="Megatron-Core refuses it when it builds the model; versions around 2024-11 dropped layers in silence.",
        source=CORE,
        check=_divide,
    ),
    Rule(
        code="MB202",
        name="Layers of a stage divide into chunks",
        summary="layers of each stage % virtual_pipeline_model_parallel_size = 0",
        why="A benchmark recipe of 40 layers with pp 2 took vpp 12 over from one of 48, and died before the first"
        " step.",
        source=CORE + "; NVIDIA-NeMo/Megatron-Bridge pull request 5893",
        check=_chunks,
    ),
    Rule(
        code="MB203",
        name="Chunks need a pipeline",
        summary="pp > 1 with virtual stages",
        why="The interleaved schedule is one of pipelines.",
        source=CORE,
        check=_single,
    ),
    Rule(
        code="MB204",
        name="A layout holds the whole model",
        summary="E first, L last, as many t as layers, pp vpp stages",
        why="A layout says for every stage what it holds.",
        source=CORE,
        check=_layout,
    ),
    Rule(
        code="MB205",
        name="A layout holds the layers of multi-token prediction",
        summary="as many m as mtp_num_layers, all in one stage",
        why="The predictor reads what the last decoder layer leaves.",
        source=CORE,
        check=_prediction,
    ),
    Rule(
        code="MB206",
        name="Multi-token prediction has a layer beside it",
        summary="no stage with m and without t",
        why="Megatron-Core takes m alone in the last stage but one; other bridges crashed on it, for the stage has no"
        " decoder layer whose form the predictor could take.",
        source=CORE + "; modelscope/ms-swift pull request 9827",
        check=_alone,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="MB207",
        name="A layout stands alone",
        summary="no first and last numbers of layers, and no counted embedding or loss, beside a layout",
        why="Both say how layers are divided. A recipe may bring the others: set them to null or false.",
        source=CORE,
        check=_exclusive,
    ),
    Rule(
        code="MB208",
        name="First and last stages are told one way",
        summary="num_layers_in_first or last_pipeline_stage, or account_for_..._in_pipeline_split",
        why="Megatron-Core refuses both at once.",
        source=CORE,
        check=_ends,
    ),
    Rule(
        code="MB601",
        name="Recompute is told in full",
        summary="full with method and number of layers; selective without a method",
        why="Megatron-Core refuses the rest when the configuration is finalised.",
        source=CORE,
        check=_recompute,
    ),
)
"""In the order of their codes."""
