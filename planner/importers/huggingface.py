"""A Hugging Face ``config.json``, as published and old or new, to a model, or to its numbers where it has no plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from planner.architectures import FAMILIES, KEYS, MODEL_TYPES, Architecture, Hyper, settle
from planner.architectures.settle import REQUIRED
from planner.domain.model import Model
from planner.errors import Problem, SpecError
from planner.importers._text import NESTED, Text, language_model
from planner.layers import Embedding, TransformerLayer

if TYPE_CHECKING:
    from planner.domain.facts import ModelFacts

Where = Callable[[tuple[str, ...]], str]
"""Keys from the root of a configuration to a value -> place for problems."""

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


__all__ = ["NESTED", "facts", "from_config", "model_name"]


def _silent(_note: str) -> None:
    """Drop a note."""


def from_config(
    config: Mapping[str, object], origin: str, *, where: Where | None = None, note: Callable[[str], None] = _silent
) -> Model:
    """Return the model of a ``config.json``.

    Args:
        config: the parsed file.
        origin: the file's name, for problems and where the configuration names no model.
        where: keys from the root to a value -> place for problems; by default `origin` and the keys.
        note: takes sentences that the user should read (what of the configuration was left out).

    Raises:
        SpecError: with every problem found, or with what was understood of a model that cannot be planned yet.
    """
    text, place = _text(config, origin, where, note)
    if text.model_type not in MODEL_TYPES and (found := _outlined(config, text, origin, place)):
        from planner.importers._described import refusal

        raise SpecError.of(place("model_type"), refusal(found))
    hyper, architecture = _settled(config, text, origin, place, note)
    if hyper.sliding_window and hyper.sliding_window < hyper.max_position_embeddings:
        note(f"{origin}: attention is priced in full, not within its sliding window of {hyper.sliding_window} tokens")
    return architecture.build(hyper)


def facts(config: Mapping[str, object], origin: str = "config.json", *, where: Where | None = None) -> ModelFacts:
    """Return the settled numbers of the model of a ``config.json``, whether it can be planned or not.

    Args:
        config: the parsed file.
        origin: the file's name, for problems and where the configuration names no model.
        where: keys from the root to a value -> place for problems; by default `origin` and the keys.

    Raises:
        SpecError: the family is not known, or a field is missing or wrong; with every problem found.
    """
    text, place = _text(config, origin, where, _silent)
    if text.model_type not in MODEL_TYPES and (found := _outlined(config, text, origin, place)):
        return found
    hyper, architecture = _settled(config, text, origin, place, _silent)
    return _facts_of(hyper, architecture.build(hyper), text.model_type or architecture.name)


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


def _text(
    config: Mapping[str, object], origin: str, where: Where | None, note: Callable[[str], None]
) -> tuple[Text, Callable[[str], str]]:
    """Return the language model of a configuration, and key -> place in it."""
    at = where or (lambda path: f"{origin} {'.'.join(path)}")
    text = language_model(config, origin, at, note)
    return text, lambda key: at((*text.path, key))


def _outlined(config: Mapping[str, object], text: Text, origin: str, place: Callable[[str], str]) -> ModelFacts | None:
    """Return the facts of a family that cannot be planned yet, None where the family is not even read."""
    from planner.outlines import OUTLINED, Fields

    outline = OUTLINED.get(text.model_type) if text.model_type else None
    if outline is None:
        return None
    fields = Fields(model_name(config, origin, outline.name), text.values, place)
    found = outline.read(fields)
    if fields.problems:
        raise SpecError(tuple(dict.fromkeys(fields.problems)))
    return found


def _facts_of(hyper: Hyper, model: Model, model_type: str) -> ModelFacts:
    """Return the facts of a model that can be planned."""
    from planner.domain.facts import Block, ModelFacts
    from planner.domain.parts import Attention, FeedForward

    embedding, layer = model.embedding, model.body
    assert isinstance(embedding, Embedding)
    assert isinstance(layer, TransformerLayer)
    attention = Attention(
        hidden=layer.hidden,
        num_heads=layer.num_heads,
        num_kv_heads=layer.num_kv_heads,
        head_dim=layer.head_dim,
        qkv_bias=layer.qkv_bias,
        output_bias=layer.output_bias,
    )
    feed_forward = FeedForward(hidden=layer.hidden, size=layer.ffn, gated=layer.gated, bias=layer.mlp_bias)
    block = Block(mixer=attention, feed_forward=feed_forward, norm_parameters=layer.norm_parameters)
    rows = embedding.vocabulary * embedding.token_size
    return ModelFacts(
        name=model.name,
        model_type=model_type,
        hidden_size=model.hidden,
        blocks=(block,) * model.num_layers,
        vocab_size=hyper.vocab_size,
        max_position_embeddings=model.max_sequence,
        tie_word_embeddings=model.tied,
        planned=True,
        embedding_parameters=rows,
        end_parameters=embedding.parameters - rows + model.head.parameters,
    )


def _settled(
    config: Mapping[str, object],
    text: Text,
    origin: str,
    place: Callable[[str], str],
    note: Callable[[str], None],
) -> tuple[Hyper, Architecture]:
    """Return the hyper-parameters and the family of a model that can be planned."""
    problems = [*_unsupported(text.values, place)]
    architecture = MODEL_TYPES.get(text.model_type) if text.model_type else None
    if architecture is None:
        problems.append(Problem(place("model_type"), _unknown_family(text)))
        raise SpecError(problems)
    values = _with_sizes(text, architecture, origin, note)
    try:
        hyper = settle(architecture, values, model_name(config, origin, architecture.name), place)
    except SpecError as error:
        raise SpecError([*problems, *error.problems]) from None
    if problems:
        raise SpecError(problems)
    return hyper, architecture


def _with_sizes(
    text: Text, architecture: Architecture, origin: str, note: Callable[[str], None]
) -> Mapping[str, object]:
    """Return the fields of a nested configuration with the sizes that it leaves to its Hugging Face class."""
    given = {architecture.aliases.get(key, key) for key, value in text.values.items() if value is not None}
    added = {key: size for key, size in architecture.sizes.items() if key not in given} if text.path else {}
    if "num_attention_heads" in given:
        added.pop("num_key_value_heads", None)
    if added:
        sizes = ", ".join(f"{key} {size}" for key, size in added.items())
        note(f"{origin}: {'.'.join(text.path)} leaves out what is usual for {architecture.name}: {sizes}")
    return {**added, **text.values}


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


def _unknown_family(text: Text) -> str:
    """Return what was understood of a family that is not known, what is missing, and how to go on."""
    fields = {COMMON_ALIASES.get(key, key): value for key, value in text.values.items()}
    understood = {key: fields[key] for key in KEYS if isinstance(fields.get(key), (bool, int))}
    missing = [key for key in REQUIRED if key not in understood]
    trouble = f"model_type {text.model_type!r} is no known family" if text.model_type else "model_type is missing"
    told = ", ".join(f"{key} {value}" for key, value in understood.items()) or "no common fields"
    lacking = f"; missing are {', '.join(missing)}" if missing else ""
    return (
        f"{trouble}; understood were {told}{lacking}; if its "
        "layers are those of a known family, write a model file that says `family: llama`, or another of "
        f"{', '.join(FAMILIES)}, with these fields; explicit lists of layers come in a later version"
    )
