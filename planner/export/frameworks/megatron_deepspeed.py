"""Plans as arguments of Megatron-DeepSpeed's ``pretrain_gpt.py``, and the JSON that it hands to DeepSpeed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.domain.plan import Plan
from planner.errors import CannotExpress
from planner.export.base import Exporter, Part, Program
from planner.export.ds_config import CONFIG, PRECISIONS, ds_config, ds_text
from planner.export.nodes import nodes_in_order
from planner.specs.plan import PlanFile

NAME = "megatron-deepspeed"
SCRIPT = "pretrain_gpt.py"
ORDER = "tp-cp-dp-pp"
"""Of PipeModelDataParallelTopology: model ranks innermost, then data ranks, then stages."""
Line = tuple[str, ...]
"""A flag and its values."""

_LLAMA: tuple[Line, ...] = (("--normalization", "rmsnorm"), ("--swiglu",), ("--use-rotary-position-embeddings",))
FAMILIES: dict[str, tuple[Line, ...]] = {"gpt2": (), "llama": _LLAMA, "mistral": _LLAMA}
"""Families that it can build -> what is said of them beside their size."""
ACTIVATIONS = {"gpt2": {None, "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"}}
SILU = {None, "silu", "swish"}


def _lines(file: PlanFile) -> list[Line]:
    """Return the flags, a line each.

    Raises:
        CannotExpress: with every reason.

    """
    reasons = [*_refused(file), *_model_refused(file)]
    if reasons:
        raise CannotExpress(NAME, reasons)
    plan = file.plan
    return [*_model(file), *_degrees(plan), *_batch(plan), *_recompute(plan), *_precision(file), *_deepspeed(plan)]


def _spec(file: PlanFile) -> dict[str, Any]:
    return dict(file.model.spec)


def _refused(file: PlanFile) -> Iterator[str]:
    """Yield why plan or job cannot be said."""
    if file.job.precision not in PRECISIONS:
        yield f"it trains in {', '.join(PRECISIONS)}, not in {file.job.precision}"
    if any(stage.recompute == "op" for stage in file.plan.stages):
        yield "recompute of single operators (op) is none of its policies"
    order, _ = nodes_in_order(file, NAME)
    if order != ORDER:
        yield f"it counts ranks in the order {ORDER}, and the plan in {order}; keep the nodes of a stage together"


def _model_refused(file: PlanFile) -> Iterator[str]:
    """Yield why the model cannot be said."""
    model, spec = file.model, _spec(file)
    if model.family not in FAMILIES:
        yield f"its {SCRIPT} builds {', '.join(FAMILIES)}, not {model.family}"
        return
    if spec.get("hidden_act") not in ACTIVATIONS.get(model.family, SILU):
        yield f"its {SCRIPT} has no flag for the activation function {spec['hidden_act']}"
    if bool(spec["attention_bias"]) != bool(spec["mlp_bias"]):
        yield f"its {SCRIPT} has biases in all of a layer's products or in none"
    if spec.get("rope_scaling"):
        yield f"its {SCRIPT} cannot stretch rotary positions (rope_scaling)"
    base, window = spec.get("rope_theta"), spec.get("sliding_window")
    if base is not None and float(base) != int(float(base)):
        yield f"--rotary-position-embeddings-theta takes a whole number, and rope_theta is {base}"
    if window and window < file.job.sequence:
        yield f"its {SCRIPT} has no sliding window of attention, and the model one of {window} tokens"
    if file.job.sequence > model.max_sequence:
        yield f"the model has positions for {model.max_sequence} tokens, and the job's samples have {file.job.sequence}"


def _model(file: PlanFile) -> Iterator[Line]:
    model, spec = file.model, _spec(file)
    yield "--num-layers", str(model.num_layers)
    yield "--hidden-size", str(model.hidden)
    yield "--ffn-hidden-size", str(spec["intermediate_size"])
    yield "--num-attention-heads", str(spec["num_attention_heads"])
    yield "--num-key-value-heads", str(spec["num_key_value_heads"])
    yield "--kv-channels", str(spec["head_dim"])
    yield "--seq-length", str(file.job.sequence)
    yield "--max-position-embeddings", str(model.max_sequence)
    yield from FAMILIES[model.family]
    base = spec.get("rope_theta")
    if base is not None and FAMILIES[model.family]:
        yield "--rotary-position-embeddings-theta", str(int(float(base)))
    if not spec["mlp_bias"]:
        yield ("--disable-bias-linear",)
    if not model.tied:
        yield ("--untie-embeddings-and-output-weights",)
    yield ("--no-query-key-layer-scaling",)


def _degrees(plan: Plan) -> Iterator[Line]:
    """Yield the degrees; that of data parallelism is what the ranks leave. Without stages, no pipeline engine."""
    strategy = plan.stages[0].strategy
    yield "--tensor-model-parallel-size", str(strategy.degree("tp"))
    if strategy.sequence_parallel and strategy.degree("tp") > 1:
        yield ("--sequence-parallel",)
    yield "--pipeline-model-parallel-size", str(plan.num_stages)
    if plan.num_stages == 1:
        yield ("--no-pipeline-parallel",)


def _batch(plan: Plan) -> Iterator[Line]:
    yield "--micro-batch-size", str(plan.micro_batch)
    yield "--global-batch-size", str(plan.global_batch)


def _recompute(plan: Plan) -> Iterator[Line]:
    """Yield what is recomputed: all stages alike, as the framework's profile demands."""
    if all(stage.num_recomputed == stage.num_layers for stage in plan.stages):
        yield ("--deepspeed-activation-checkpointing",)
        yield "--recompute-granularity", "full"
        yield "--recompute-method", "uniform"
        yield "--recompute-num-layers", "1"
    elif plan.stages[0].recompute == "selective":
        yield "--recompute-granularity", "selective"


def _precision(file: PlanFile) -> Iterator[Line]:
    if file.job.precision != "fp32":
        yield (f"--{file.job.precision}",)


def _deepspeed(plan: Plan) -> Iterator[Line]:
    yield ("--deepspeed",)
    yield "--deepspeed_config", CONFIG
    yield "--zero-stage", str(plan.zero_stage)


def _environment(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return the variable without which sequence parallelism is refused."""
    strategy = plan.stages[0].strategy
    is_cut = strategy.sequence_parallel and strategy.degree("tp") > 1
    return (("CUDA_DEVICE_MAX_CONNECTIONS", "1"),) if is_cut else ()


def _document(file: PlanFile) -> dict[str, Any]:
    return {
        "arguments": [word for line in _lines(file) for word in line],
        "environment": dict(_environment(file.plan)),
        "ds_config": ds_config(file.plan, file.job.precision),
    }


def _parts(file: PlanFile) -> tuple[Part, ...]:
    lines, environment = _lines(file), _environment(file.plan)
    named = "".join(f"{name}={value}\n" for name, value in environment)
    return (
        Part(name="arguments.txt", text="".join(" ".join(line) + "\n" for line in lines)),
        Part(name="environment.env", text=_HEAD + named),
        Part(name=CONFIG, text=ds_text(ds_config(file.plan, file.job.precision))),
    )


def _program(file: PlanFile) -> Program:
    words = [word for line in _lines(file) for word in line]
    return Program(command=(SCRIPT, *words), environment=_environment(file.plan), parts=_parts(file))


_HEAD = """\
# Variables that every rank of pretrain_gpt.py (deepspeedai/Megatron-DeepSpeed) needs for this plan.
# Yours to add to its arguments: tokenizer, data, --train-iters, learning rate, --save and --load.
"""

MEGATRON_DEEPSPEED = Exporter(
    name=NAME,
    summary="Megatron-DeepSpeed: arguments of its pretrain_gpt.py, and ds_config.json",
    framework=NAME,
    parts=_parts,
    program=_program,
    document=_document,
)
