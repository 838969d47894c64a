"""TT2##: layers over stages, and schedules."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.torchtitan.degrees import PIPELINE, degrees, model_of
from planner.configurations.forms.torchtitan.stages import (
    FOLDED,
    LOOPED,
    PARTS,
    PER_STAGE,
    SCHEDULE,
    SCHEDULES,
    SINGLE,
    schedule_of,
    split,
)
from planner.domain.configuration import WARNING, Configuration
from planner.specs.problems import nearest

SPLIT = "torchtitan/distributed/pipeline_parallel.py at v0.2.2 and v0.3.0"
INTERLEAVED = "pipeline_parallel_schedule = Interleaved1F1B"
PLAIN = "pipeline_parallel_schedule = 1F1B"
SPLITTING = ("InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV")
"""Schedules that run the gradients of inputs and of weights apart."""


def pipeline_degree(configuration: Configuration) -> int:
    """Return the pipeline degree; 1 where degrees make no sense."""
    found = degrees(configuration)
    return found.pipeline if found.sound else 1


def _unknown_schedule(configuration: Configuration) -> Iterator[Complaint]:
    if pipeline_degree(configuration) > 1 and not schedule_of(configuration):
        written = str(configuration.get(SCHEDULE))
        yield SCHEDULE, f"{written} is no schedule of torch{nearest(written, SCHEDULES)}"


def _uneven_stages(configuration: Configuration) -> Iterator[Complaint]:
    pipeline, cut = pipeline_degree(configuration), split(configuration)
    number = len(cut.parts)
    if pipeline == 1 or number % pipeline == 0:
        return
    key = PARTS if cut.key == PARTS else PER_STAGE
    near = " or ".join(
        dict.fromkeys(str(max(1, each) * pipeline) for each in (number // pipeline, number // pipeline + 1))
    )
    made = "lists" if key == PARTS else f"stages of {configuration.get(PER_STAGE)} layers"
    yield key, f"{number} {made} do not divide over {pipeline} pipeline ranks; make them {near}"


def _each(configuration: Configuration) -> tuple[int, int, str]:
    """Return the stages of each rank, the pipeline ranks, and the schedule; (0, 0, "") where that makes no sense."""
    pipeline, name = pipeline_degree(configuration), schedule_of(configuration)
    number = len(split(configuration).parts)
    if pipeline == 1 or not name or not number or number % pipeline:
        return 0, 0, ""
    return number // pipeline, pipeline, name


def _per_rank(configuration: Configuration) -> Iterator[Complaint]:
    each, pipeline, name = _each(configuration)
    listed = split(configuration).key == PARTS
    key = PARTS if listed else PER_STAGE
    if name in FOLDED and each != 2:
        yield key, f"{name} runs exactly two stages a rank, and these are {each}; make {2 * pipeline} stages"
    elif name in SINGLE and each > 1 and not listed:
        yield (
            key,
            f"{name} runs one stage a rank, and these are {each}; write more layers a stage, or {INTERLEAVED}",
        )
    elif name in LOOPED and each == 1 and not listed:
        yield key, f"{name} runs two or more stages a rank, and these are one; write fewer layers a stage, or {PLAIN}"


def _left_out(configuration: Configuration) -> Iterator[Complaint]:
    each, pipeline, name = _each(configuration)
    if name in SINGLE and each > 1 and split(configuration).key == PARTS:
        yield (
            PARTS,
            (
                f"{name} runs the first of the {each} stages of each rank and leaves out the others, with their"
                f" layers; make {pipeline} stages, or write {INTERLEAVED}"
            ),
        )


def _one_each(configuration: Configuration) -> Iterator[Complaint]:
    each, pipeline, name = _each(configuration)
    if name in LOOPED and each == 1 and split(configuration).key == PARTS:
        yield (
            PARTS,
            (
                f"{name} gains from two or more stages a rank, and these are one; make {2 * pipeline} stages, or"
                f" write {PLAIN}"
            ),
        )


def _too_few_layers(configuration: Configuration) -> Iterator[Complaint]:
    cut = split(configuration)
    if pipeline_degree(configuration) > 1 and cut.trouble:
        yield cut.key, cut.trouble


def _no_pipeline(configuration: Configuration) -> Iterator[Complaint]:
    model = model_of(configuration)
    if pipeline_degree(configuration) > 1 and model and not model.pipeline:
        yield PIPELINE, f"{model.model} cannot be cut into stages in this version; write pipeline_parallel_degree = 1"


def _tied(configuration: Configuration) -> Iterator[Complaint]:
    model = model_of(configuration)
    if pipeline_degree(configuration) > 1 and model and model.pipeline and model.config["tie_word_embeddings"]:
        yield (
            PIPELINE,
            (
                f"{model.model} {model.name} uses the embedding's weights in its head, which stages cannot share;"
                " write pipeline_parallel_degree = 1"
            ),
        )


def _captured(configuration: Configuration) -> Iterator[Complaint]:
    if pipeline_degree(configuration) > 1 and not configuration.on("training.disable_cuda_graphs"):
        yield PIPELINE, "CUDA graphs, on by default, do not go with stages; write training.disable_cuda_graphs = True"


def _compiled(configuration: Configuration) -> Iterator[Complaint]:
    name, parts = schedule_of(configuration), configuration.get("compile.components")
    compiled = configuration.on("compile.enable") and isinstance(parts, list) and "model" in parts
    if pipeline_degree(configuration) > 1 and name in SPLITTING and compiled:
        yield (
            SCHEDULE,
            (f"{name} takes the backward pass apart, which compiled models cannot; write compile.enable = false"),
        )


RULES = (
    Rule(
        code="TT201",
        name="The schedule exists",
        summary="pipeline_parallel_schedule is one of 1F1B, GPipe, Interleaved1F1B, LoopedBFS, ...",
        why="torch looks schedules up by their name, in any case, and stops with `Unknown schedule name` on others.",
        source="torch/distributed/pipelining/schedules.py (get_schedule_class)",
        check=_unknown_schedule,
    ),
    Rule(
        code="TT202",
        name="Stages divide over pipeline ranks",
        summary="number of stages % pp = 0, by lists or by ceil((layers + first + last) / layers_per_stage)",
        why=(
            "torchtitan stops with `must be divisible by pipeline parallel size`, or asserts it when it builds the"
            " stages."
        ),
        source=SPLIT,
        check=_uneven_stages,
    ),
    Rule(
        code="TT203",
        name="The schedule gets the stages a rank that it runs",
        summary=(
            "by layers_per_stage: one for 1F1B and GPipe, two or more for looped; two for ZBVZeroBubble and DualPipeV"
        ),
        why=(
            "torchtitan refuses at the start: `Single stage schedule requires exactly 1 stage per rank`,"
            " `Multi-stage schedule requires at least 2`, `v schedules assume 2`."
        ),
        source=SPLIT,
        check=_per_rank,
    ),
    Rule(
        code="TT204",
        name="Each stage has layers to hold",
        summary="stages <= layers + first + last; first and last less layers <= the smallest stage",
        why=(
            "Embedding and head count as first_stage_less_layers and last_stage_less_layers layers, 1 each by"
            " default. torchtitan refuses where they are more than a stage."
        ),
        source=f"{SPLIT} (generate_llm_fqn_per_model_part)",
        check=_too_few_layers,
    ),
    Rule(
        code="TT207",
        name="The model can be cut into stages",
        summary="pp = 1 for models without a pipelining function (qwen3, gpt_oss up to 0.2)",
        why="torchtitan stops with `does not support pipelining`.",
        source="torchtitan/train.py and torchtitan/models/*/__init__.py at v0.2.2",
        check=_no_pipeline,
    ),
    Rule(
        code="TT208",
        name="A pipeline's head has weights of its own",
        summary="pp = 1 where enable_weight_tying",
        why="torchtitan stops with `Weight tying is not supported with Pipeline Parallel`.",
        source="torchtitan/models/common/decoder.py at v0.3.0 (update_from_config)",
        check=_tied,
        since="0.3",
    ),
    Rule(
        code="TT209",
        name="Pipelines run without CUDA graphs",
        summary="pp > 1 needs training.disable_cuda_graphs",
        why=(
            "0.3 captures CUDA graphs by default, and refuses at the start: `CUDA graphs do not support pipeline"
            " parallelism`."
        ),
        source="torchtitan/trainer.py at v0.3.0 (_validate_cuda_graphs)",
        check=_captured,
        since="0.3",
    ),
    Rule(
        code="TT210",
        name="Each listed stage is run",
        summary="with lists: 1F1B and GPipe have one stage a rank",
        why=(
            "A single-stage schedule takes the first stage of each rank, whatever else the lists give to it."
            " torchtitan builds the others, does not run them, and does not say so."
        ),
        source=f"{SPLIT} (build_pipeline_schedule)",
        check=_left_out,
        caught=False,
    ),
    Rule(
        code="TT211",
        name="Looped schedules have several stages a rank",
        summary="with lists: two or more stages a rank for Interleaved1F1B, LoopedBFS and InterleavedZeroBubble",
        why="With one stage a rank these schedules run, and fill and drain no faster than the plain ones.",
        source="Narayanan et al. 2021, section 2.2.2",
        check=_one_each,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="TT212",
        name="Schedules that take the backward pass apart are not compiled",
        summary="compile.enable = false, or no model in it, for InterleavedZeroBubble, ZBVZeroBubble and DualPipeV",
        why=(
            "torch stops with `is not supported with stage modules that have used torch.compile`. From 0.3 on"
            " torchtitan compiles in a way that torch does not object to."
        ),
        source="torch/distributed/pipelining/schedules.py of torch 2.13 (_check_torch_compile_compatibility)",
        check=_compiled,
        until="0.3",
    ),
)
