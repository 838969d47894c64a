"""The size of a model in Megatron-LM's flags, for the families that its ``pretrain_gpt.py`` can build."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from planner.domain.model import Model
from planner.loader import scalar
from planner.specs.plan import PlanFile

GELU = {None, "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"}
"""Activation functions that are GELU, or its usual approximation."""
SILU = {None, "silu", "swish"}
LLAMA_3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""What --use-rope-scaling takes for granted."""
Line = tuple[str, ...]
"""A flag and its values."""


@dataclass(frozen=True, slots=True)
class Kind:
    """How a family is said."""

    flags: tuple[Line, ...]
    activations: frozenset[str | None]
    rotary: bool


_RMS: tuple[Line, ...] = (("--normalization", "RMSNorm"), ("--swiglu",), ("--position-embedding-type", "rope"))
KINDS = {
    "gpt2": Kind((("--position-embedding-type", "learned_absolute"),), frozenset(GELU), rotary=False),
    "llama": Kind(_RMS, frozenset(SILU), rotary=True),
    "mistral": Kind(_RMS, frozenset(SILU), rotary=True),
    "qwen2": Kind((*_RMS, ("--add-qkv-bias",)), frozenset(SILU), rotary=True),
    "qwen3": Kind((*_RMS, ("--qk-layernorm",)), frozenset(SILU), rotary=True),
}
"""Families that it can build."""
CANNOT = {
    "bert": "BERT is not trained by pretrain_gpt.py; Megatron-LM has pretrain_bert.py for it",
    "gemma": "Gemma's GeGLU and scaled embedding have no flags in pretrain_gpt.py; Megatron-Bridge builds it",
    "gemma2": "Gemma 2's GeGLU, its four norms a layer and its capped logits have no flags in pretrain_gpt.py",
    "gpt_neox": "GPT-NeoX runs attention and feed-forward side by side, and pretrain_gpt.py one after the other",
}
"""Families that it cannot -> why."""


def refused(file: PlanFile) -> Iterator[str]:
    """Yield why the model cannot be said."""
    model = file.model
    spec: dict[str, Any] = dict(model.spec)
    kind = KINDS.get(model.family)
    if kind is None:
        yield CANNOT.get(model.family, f"pretrain_gpt.py cannot build a model of family {model.family}")
        return
    if spec.get("hidden_act") not in kind.activations:
        yield f"pretrain_gpt.py has no flag for the activation function {spec['hidden_act']} of this family"
    attention, mlp = bool(spec["attention_bias"]), bool(spec["mlp_bias"])
    wanted = {"qwen2": (True, False), "qwen3": (False, False)}.get(model.family, (mlp, mlp))
    if (attention, mlp) != wanted:
        yield "pretrain_gpt.py has biases in all of a layer's products, in none, or (Qwen2) on queries, keys and values"
    if kind.rotary:
        yield from _rotary_refused(spec)
    elif file.job.sequence > model.max_sequence:
        yield f"the model has positions for {model.max_sequence} tokens, and the job's samples have {file.job.sequence}"
    if spec.get("type_vocab_size"):
        yield "pretrain_gpt.py has no token types"


def _rotary_refused(spec: dict[str, Any]) -> Iterator[str]:
    base, scaling = spec.get("rope_theta"), dict(spec.get("rope_scaling") or ())
    if base is not None and float(base) != int(base):
        yield f"--rotary-base takes a whole number, and rope_theta is {base}"
    if scaling and _scaling(scaling) is None:
        name = scaling.get("rope_type", scaling.get("type", "without a name"))
        yield f"pretrain_gpt.py cannot stretch rotary positions as rope_scaling says ({name})"


def _scaling(scaling: dict[str, Any]) -> tuple[Line, ...] | None:
    """Return the flags of a stretching of rotary positions; None if there are none for it."""
    name, factor = scaling.get("rope_type", scaling.get("type")), scaling.get("factor")
    if name == "llama3" and all(scaling.get(key) == value for key, value in LLAMA_3.items()):
        return (("--use-rope-scaling",), ("--rope-scaling-factor", _number(factor)))
    if name == "linear" and isinstance(factor, (int, float)) and float(factor) == int(factor):
        return (("--rotary-seq-len-interpolation-factor", str(int(factor))),)
    return None


def flags(file: PlanFile, tensor: int) -> Iterator[Line]:
    """Yield the flags of a model that is not refused."""
    model = file.model
    spec: dict[str, Any] = dict(model.spec)
    kind = KINDS[model.family]
    heads, groups = spec["num_attention_heads"], spec["num_key_value_heads"]
    yield "--num-layers", str(model.num_layers)
    yield "--hidden-size", str(model.hidden)
    yield "--ffn-hidden-size", str(spec["intermediate_size"])
    yield "--num-attention-heads", str(heads)
    yield "--kv-channels", str(spec["head_dim"])
    if groups != heads:
        yield ("--group-query-attention",)
        yield "--num-query-groups", str(groups)
    yield "--max-position-embeddings", str(max(model.max_sequence, file.job.sequence))
    yield from kind.flags
    if kind.rotary:
        yield "--rotary-base", str(int(float(spec.get("rope_theta") or 10_000)))
        yield from _scaling(dict(spec.get("rope_scaling") or ())) or ()
    if spec.get("norm_eps") is not None:
        yield "--norm-epsilon", _number(spec["norm_eps"])
    window = spec.get("sliding_window")
    if window and window < model.max_sequence:
        yield "--window-size", f"{window - 1},0"
    yield from _rest(model, spec)
    yield from _vocabulary(spec, tensor)


def settings(file: PlanFile, tensor: int) -> dict[str, Any]:
    """Return the same as values by the names of the flags, with underscores, for forks that write them in YAML."""
    return {name[2:].replace("-", "_"): scalar(values[0]) if values else True for name, *values in flags(file, tensor)}


def _rest(model: Model, spec: dict[str, Any]) -> Iterator[Line]:
    if not spec["mlp_bias"]:
        yield ("--disable-bias-linear",)
    if not model.tied:
        yield ("--untie-embeddings-and-output-weights",)
    yield "--hidden-dropout", _number(spec["hidden_dropout"])
    yield "--attention-dropout", _number(spec["attention_dropout"])


def _vocabulary(spec: dict[str, Any], tensor: int) -> Iterator[Line]:
    """Yield the vocabulary, padded as the model says, else as Megatron does by itself."""
    size, padded = spec["vocab_size"], spec.get("vocab_size_padded")
    yield "--vocab-size", str(size)
    if padded and padded != -(-size // (128 * tensor)) * 128 * tensor and padded % tensor == 0:
        yield "--make-vocab-size-divisible-by", str(padded // tensor)


def vocabulary_refused(file: PlanFile, tensor: int) -> Iterator[str]:
    """Yield why the padding of the vocabulary cannot be said."""
    spec: dict[str, Any] = dict(file.model.spec)
    padded = spec.get("vocab_size_padded")
    if padded and padded % tensor:
        yield f"a vocabulary padded to {padded} rows cannot be cut into {tensor} parts; leave vocab_size_padded out"


def _number(value: Any) -> str:
    """Return a number without an exponent's plus sign and without a needless fraction."""
    return str(int(value)) if float(value) == int(value) else repr(float(value))
