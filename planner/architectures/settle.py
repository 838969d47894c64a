"""From hyper-parameters as somebody wrote them to settled ones: names, types, defaults, and what must divide what."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import cast

from planner.architectures.base import Architecture, Hyper
from planner.errors import Problem, SpecError

REQUIRED = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
"""What every configuration must say, in the order in which it is asked for."""
COUNTS = (
    *REQUIRED,
    "num_key_value_heads",
    "head_dim",
    "vocab_size_padded",
    "word_embed_proj_dim",
    "norms_per_layer",
    "type_vocab_size",
    "sliding_window",
)
FLAGS = ("tie_word_embeddings", "attention_bias", "mlp_bias", "use_qk_norm", "final_norm")
RATES = ("hidden_dropout", "attention_dropout")
NUMBERS = ("norm_eps", "rope_theta")
CHOICES = ("word_embed_proj_dim", "use_qk_norm", "norms_per_layer", "final_norm")
"""What few families leave open, and the others have no words for."""
KEYS = tuple(field.name for field in fields(Hyper) if field.name != "name")
"""The common names of all hyper-parameters."""

LAYERS_MAX, NUMBER_MAX = 2_000, 10**9
"""Larger numbers are mistakes, and would only exhaust the memory."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Values under their common names, the names under which they were written, and the problems met so far."""

    where: Callable[[str], str]
    values: dict[str, object] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, key: str, message: str) -> None:
        """Note a problem with the hyper-parameter `key`, which then counts as absent."""
        self.values.pop(key, None)
        self.problems.append(Problem(self.where(self.name(key)), message))

    def name(self, key: str) -> str:
        """Return the name under which `key` was written."""
        return self.written.get(key, key)

    def count(self, key: str) -> int | None:
        """Return a checked whole number, or None where it is absent or refused."""
        return cast("int | None", self.values.get(key))


def settle(architecture: Architecture, values: Mapping[str, object], name: str, where: Callable[[str], str]) -> Hyper:
    """Return the settled hyper-parameters; keys that are none are left alone, null counts as absent.

    Args:
        architecture: the family, whose names and defaults hold.
        values: hyper-parameters under the common or the family's own names.
        name: of the model.
        where: key as written -> place for problems.

    Raises:
        SpecError: with every problem found.
    """
    reading = _Reading(where)
    _collect(reading, architecture, values)
    for key in tuple(reading.values):
        trouble = _trouble(key, reading.values[key]) or _no_choice(architecture, key, reading.values[key])
        if trouble:
            reading.refuse(key, trouble)
    for key in CHOICES:
        if key not in architecture.choices:
            reading.values.pop(key, None)
    _adapt(reading, architecture, values)
    _fill(reading, architecture)
    _check_heads(reading)
    _check_vocabulary(reading)
    if reading.problems:
        raise SpecError(reading.problems)
    return Hyper(name=name, **{key: _frozen(key, value) for key, value in reading.values.items()})  # type: ignore[arg-type]


def thawed(value: object) -> object:
    """Return a settled value as YAML and JSON write it (the mapping of ``rope_scaling``, lists in it)."""
    if not isinstance(value, tuple):
        return value
    return {key: list(item) if isinstance(item, tuple) else item for key, item in value}


def _collect(reading: _Reading, architecture: Architecture, values: Mapping[str, object]) -> None:
    """Bring `values` under the common names."""
    for written, value in values.items():
        key = architecture.aliases.get(written, written)
        if key not in KEYS or value is None:
            continue
        if key in reading.values and key == "hidden_act":
            # Gemma's first files say "gelu" there and mean what stands under the family's own name.
            reading.values[key] = value if written != key else reading.values[key]
            continue
        if key in reading.values and reading.values[key] != value:
            other = reading.written[key]
            message = f"is {value!r} but {other}, the same thing, is {reading.values[key]!r}; keep one"
            reading.problems.append(Problem(reading.where(written), message))
            continue
        reading.values[key], reading.written[key] = value, written


def _no_choice(architecture: Architecture, key: str, value: object) -> str:
    """Return what is wrong with a choice that the family does not leave, or nothing; false changes nothing."""
    if key not in CHOICES or key in architecture.choices or value is False:
        return ""
    return f"is no choice that family {architecture.name} leaves; remove it"


def _adapt(reading: _Reading, architecture: Architecture, values: Mapping[str, object]) -> None:
    """Add what the family's own hyper-parameters mean under the common names."""
    if architecture.adapt is None:
        return
    own = dict(architecture.own)
    for key, default in architecture.own.items():
        value = values.get(key)
        if value is None:
            continue
        good = isinstance(value, bool) if isinstance(default, bool) else _is_count(value)
        if good:
            own[key] = cast("bool | int", value)
        else:
            right = "true or false" if isinstance(default, bool) else f"a whole number from 1 to {NUMBER_MAX:,}"
            reading.problems.append(Problem(reading.where(key), f"should be {right}, not {value!r}"))
    for key, value in architecture.adapt(own).items():
        if value is not None:
            reading.values.setdefault(key, value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= NUMBER_MAX


def _trouble(key: str, value: object) -> str:
    """Return what is wrong with the type or range of one value and what would be right, or nothing."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else math.nan
    least = 0 if key == "type_vocab_size" else 1
    if key in COUNTS:
        most = LAYERS_MAX if key == "num_hidden_layers" else NUMBER_MAX
        good = isinstance(number, int) and least <= number <= most
        right = (
            f"a whole number from {least} to {most:,}"
            if isinstance(number, int) and number > most
            else (f"a whole number of at least {least}")
        )
    elif key in FLAGS:
        good, right = isinstance(value, bool), "true or false"
    elif key in RATES:
        good, right = 0 <= number < 1, "a number from 0 to less than 1"
    elif key in NUMBERS:
        good, right = 0 < number < math.inf, "a number above 0"
    elif key == "rope_scaling":
        good, right = _is_flat(value), "a mapping to plain values or lists of them"
    else:
        good, right = isinstance(value, str), "text"
    return "" if good else f"should be {right}, not {value!r}"


def _is_flat(value: object) -> bool:
    """Return whether `value` is a mapping without further mappings, which a frozen model can hold."""
    if not isinstance(value, Mapping):
        return False
    items = [part for item in value.values() for part in (item if isinstance(item, list) else [item])]
    return not any(isinstance(item, (Mapping, list)) for item in items)


def _fill(reading: _Reading, architecture: Architecture) -> None:
    """Add what the family takes for granted, and ask for what is missing."""
    refused = {problem.place for problem in reading.problems}
    values = reading.values
    for key, value in architecture.defaults.items():
        values.setdefault(key, value)
    hidden = reading.count("hidden_size")
    if architecture.default_ffn_factor and hidden:
        values.setdefault("intermediate_size", architecture.default_ffn_factor * hidden)
    for key in REQUIRED:
        if key in values or reading.where(reading.name(key)) in refused:
            continue
        if key == "intermediate_size" and architecture.default_ffn_factor:
            continue
        own = [alias for alias, common in architecture.aliases.items() if common == key]
        also = f", as {own[0]} too" if own else ""
        reading.refuse(key, f"is missing{also}; family {architecture.name} needs it")


def _check_heads(reading: _Reading) -> None:
    """Settle the sizes of the heads: h = heads x head_dim where none is given, kv_heads divides heads."""
    values = reading.values
    hidden, heads = reading.count("hidden_size"), reading.count("num_attention_heads")
    if hidden and heads and "head_dim" not in values:
        if hidden % heads:
            message = (
                f"{heads} does not divide {reading.name('hidden_size')} {hidden}; "
                "give head_dim, or a number of heads that divides it"
            )
            reading.problems.append(Problem(reading.where(reading.name("num_attention_heads")), message))
        values["head_dim"] = hidden // heads
    if heads:
        kv_heads = values.setdefault("num_key_value_heads", heads)
        if isinstance(kv_heads, int) and heads % kv_heads:
            message = (
                f"{kv_heads} does not divide {reading.name('num_attention_heads')} {heads}; "
                "each key-value head serves the same number of query heads"
            )
            reading.refuse("num_key_value_heads", message)


def _check_vocabulary(reading: _Reading) -> None:
    """Padding only adds rows."""
    vocabulary, padded = reading.count("vocab_size"), reading.count("vocab_size_padded")
    if vocabulary and padded and padded < vocabulary:
        message = f"{padded} is below vocab_size {vocabulary}; padding only adds rows"
        reading.refuse("vocab_size_padded", message)


def _frozen(key: str, value: object) -> object:
    """Return `value` as an immutable one of the field's type."""
    if isinstance(value, Mapping):
        return tuple((str(name), tuple(item) if isinstance(item, list) else item) for name, item in value.items())
    if key in RATES or key in NUMBERS:
        return float(cast("float", value))
    return value
