"""The language model in a Hugging Face configuration, old or new, alone or nested among other models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.errors import SpecError

NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where configurations of several models keep that of the language model; the last holds a further one."""
NO_MODELS = ("generation_config", "quantization_config", "rope_config", "compression_config")
"""Mappings that end like a nested model and are none."""


@dataclass(frozen=True, slots=True)
class Text:
    """A language model's own configuration."""

    values: Mapping[str, object]
    """Its fields, with rotary positions and sliding window under one set of names."""
    model_type: str | None
    """Of the language model, else of what it is nested in; None: there is none."""
    path: tuple[str, ...]
    """Keys from the root of the file to it."""


def language_model(
    config: Mapping[str, object], origin: str, place: Callable[[tuple[str, ...]], str], note: Callable[[str], None]
) -> Text:
    """Return the language model of a configuration, and say in a note what is left out.

    Raises:
        SpecError: what should be the configuration of a model is no mapping.
    """
    path: tuple[str, ...] = ()
    found, outer = config, dict[str, object]()
    left_out: list[str] = []
    while True:
        left_out += [key.removesuffix("_config") for key in sorted(found) if _is_model(found, key)]
        key = next((key for key in NESTED if found.get(key) is not None), None)
        if key is None:
            break
        if not isinstance(found[key], Mapping):
            raise SpecError.of(place((*path, key)), f"should be a mapping of keys to values, not {found[key]!r}")
        outer = {**outer, **{name: found[name] for name in ("tie_word_embeddings", "model_type") if name in found}}
        inner = found[key]
        found = {str(name): value for name, value in inner.items()} if isinstance(inner, Mapping) else {}
        path = (*path, key)
    if path or "vision" in left_out or "audio" in left_out:
        named = f"only {'.'.join(path)}, the language model," if path else "only the language model"
        rest = f"; left out: {', '.join(left_out)}" if left_out else ""
        note(f"{origin}: {named} is read{rest}")
    tied = {name: value for name, value in outer.items() if name == "tie_word_embeddings"}
    written = found.get("model_type", outer.get("model_type"))
    return Text(_modernised({**tied, **found}), None if written is None else str(written), path)


def _is_model(config: Mapping[str, object], key: str) -> bool:
    """Return whether `key` holds the configuration of a model beside the language model."""
    others = key.endswith("_config") and key not in NESTED and key not in NO_MODELS
    return others and isinstance(config[key], Mapping)


def _modernised(config: Mapping[str, object]) -> dict[str, object]:
    """Return the configuration with rotary positions and sliding window under one set of names.

    Transformers 5 writes ``rope_parameters`` where 4 wrote ``rope_theta`` and ``rope_scaling``; where kinds of layers
    differ in them, those of full attention are taken.
    """
    modern = dict(config)
    rope = modern.pop("rope_parameters", None)
    if isinstance(rope, Mapping) and rope and all(isinstance(value, Mapping) for value in rope.values()):
        rope = rope.get("full_attention", next(iter(rope.values())))
    if isinstance(rope, Mapping):
        scaling = {key: value for key, value in rope.items() if key != "rope_theta"}
        modern.setdefault("rope_theta", rope.get("rope_theta"))
        if scaling.get("rope_type", "default") != "default":
            modern.setdefault("rope_scaling", scaling)
    if modern.get("use_sliding_window") is False:
        modern.pop("sliding_window", None)
    return modern
