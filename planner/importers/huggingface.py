"""A Hugging Face ``config.json``, as published and old or new, to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from planner.architectures import FAMILIES, KEYS, MODEL_TYPES, Architecture, settle
from planner.domain.model import Model
from planner.errors import Problem, SpecError

EXPERT_KEYS = (
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "num_routed_experts",
    "n_shared_experts",
)
"""Numbers of experts under the names of the families that have them."""
LATENT_KEYS = ("kv_lora_rank", "q_lora_rank")
"""Ranks of multi-head latent attention (DeepSeek-V2, section 2.1)."""
COMMON_ALIASES = {alias: key for family in FAMILIES.values() for alias, key in family.aliases.items()}
"""Every family's names -> the common ones, to tell what was understood of an unknown family."""


def _silent(_note: str) -> None:
    """Drop a note."""


def from_config(
    config: Mapping[str, object],
    origin: str,
    *,
    where: Callable[[tuple[str, ...]], str] | None = None,
    note: Callable[[str], None] = _silent,
) -> Model:
    """Return the model of a ``config.json``.

    Args:
        config: the parsed file.
        origin: the file's name, for problems and where the configuration names no model.
        where: keys from the root to a value -> place for problems; by default `origin` and the keys.
        note: takes sentences that the user should read (what of the configuration was left out).

    Raises:
        SpecError: with every problem found.
    """
    at = where or (lambda path: f"{origin} {'.'.join(path)}")
    text = _text_config(config, origin, note)

    def place(key: str) -> str:
        return at((key,) if text is config else ("text_config", key))

    problems = [*_unsupported(text, place)]
    architecture = _architecture(text, config, place, problems)
    if architecture is None:
        raise SpecError(problems)
    try:
        hyper = settle(architecture, _modernised(text), model_name(config, origin, architecture.name), place)
    except SpecError as error:
        raise SpecError([*problems, *error.problems]) from None
    if problems:
        raise SpecError(problems)
    if hyper.sliding_window and hyper.sliding_window < hyper.max_position_embeddings:
        note(f"{origin}: attention is priced in full, not within its sliding window of {hyper.sliding_window} tokens")
    return architecture.build(hyper)


def model_name(config: Mapping[str, object], origin: str, default: str) -> str:
    """Return the name that the configuration gives itself, else the file's or its folder's, else `default`."""
    name, published = config.get("name"), config.get("_name_or_path")
    if isinstance(name, str) and name:
        return name
    if isinstance(published, str) and PurePath(published).name:
        return PurePath(published).name
    path = PurePath(origin)
    stem = path.parent.name if path.stem == "config" else path.stem
    return stem if stem not in {"", "-"} and not stem.startswith("<") else default


def _text_config(config: Mapping[str, object], origin: str, note: Callable[[str], None]) -> Mapping[str, object]:
    """Return the language model of a configuration that nests it among others."""
    nested = config.get("text_config")
    if not isinstance(nested, Mapping):
        return config
    others = sorted(key.removesuffix("_config") for key in config if key.endswith("_config") and key != "text_config")
    others = [other for other in others if isinstance(config[f"{other}_config"], Mapping)]
    left_out = f"; left out: {', '.join(others)}" if others else ""
    note(f"{origin}: only text_config, the language model, is planned{left_out}")
    outer = {key: config[key] for key in ("tie_word_embeddings",) if key in config}
    return {**outer, **nested}


def _modernised(config: Mapping[str, object]) -> dict[str, object]:
    """Return the configuration with rotary positions and sliding window under one set of names.

    Transformers 5 writes ``rope_parameters`` where 4 wrote ``rope_theta`` and ``rope_scaling``.
    """
    modern = dict(config)
    rope = modern.pop("rope_parameters", None)
    if isinstance(rope, Mapping):
        scaling = {key: value for key, value in rope.items() if key != "rope_theta"}
        modern.setdefault("rope_theta", rope.get("rope_theta"))
        if scaling.get("rope_type", "default") != "default":
            modern.setdefault("rope_scaling", scaling)
    if modern.get("use_sliding_window") is False:
        modern.pop("sliding_window", None)
    return modern


def _unsupported(config: Mapping[str, object], place: Callable[[str], str]) -> tuple[Problem, ...]:
    """Return the problems of what no family can plan yet."""
    problems = []
    experts = [key for key in EXPERT_KEYS if _positive(config.get(key))]
    latent = [key for key in LATENT_KEYS if _positive(config.get(key))]
    if experts:
        found = ", ".join(f"{key} {config[key]}" for key in experts)
        problems.append(
            Problem(place(experts[0]), f"a mixture of experts ({found}) cannot be planned yet; give a dense model")
        )
    if latent:
        found = ", ".join(f"{key} {config[key]}" for key in latent)
        message = f"multi-head latent attention ({found}) cannot be planned yet; give a model with ordinary heads"
        problems.append(Problem(place(latent[0]), message))
    return tuple(problems)


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


def _architecture(
    text: Mapping[str, object], config: Mapping[str, object], place: Callable[[str], str], problems: list[Problem]
) -> Architecture | None:
    """Return the family of ``model_type``; where there is none, say what is known and what was understood."""
    written = text.get("model_type", config.get("model_type"))
    architecture = MODEL_TYPES.get(written) if isinstance(written, str) else None
    if architecture is None:
        fields = {COMMON_ALIASES.get(key, key): value for key, value in text.items()}
        understood = [f"{key} {fields[key]}" for key in KEYS if isinstance(fields.get(key), (bool, int))]
        trouble = f"model_type {written!r} is no known family" if written else "model_type is missing"
        message = (
            f"{trouble}; known are {', '.join(MODEL_TYPES)}; understood were "
            f"{', '.join(understood) or 'no common fields'}; if the layers are those of a known family, write a model "
            "file with `family:` and these; explicit lists of layers come in a later version"
        )
        problems.append(Problem(place("model_type"), message))
    return architecture
