"""Models from and to files: the planner's own records, and Hugging Face configurations as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from planner.architectures import FAMILIES, Architecture, settle, thawed
from planner.domain.model import Model
from planner.errors import Problem, SpecError
from planner.importers import huggingface
from planner.importers.huggingface import NESTED
from planner.loader import Document, Path, parse
from planner.specs.files import read_text
from planner.specs.foreign import refuse_file_beside
from planner.specs.kinds import refuse_other_kind
from planner.specs.problems import Found, nearest, shown, validate

CONFIG = "config.json"
"""The file that describes a model in a Hugging Face folder."""
CONFIG_MARKS = ("model_type", *NESTED, "architectures", "transformers_version", "torch_dtype")
"""Keys that only Hugging Face configurations have."""


class ModelRecord(BaseModel):
    """A model as written: a family and its hyper-parameters, named as in Hugging Face configurations."""

    model_config = ConfigDict(extra="forbid", strict=True, title="model")

    name: str | None = Field(None, min_length=1, description="Name of the model; by default the file's.")
    family: str = Field(
        description="Model family; its own names of hyper-parameters (n_embd, ...) are understood too.",
        json_schema_extra={"enum": list(FAMILIES)},
    )
    hidden_size: int | None = Field(None, ge=1)
    num_hidden_layers: int | None = Field(None, ge=1)
    num_attention_heads: int | None = Field(None, ge=1)
    num_key_value_heads: int | None = Field(None, ge=1, description="By default one for each head.")
    head_dim: int | None = Field(
        None, ge=1, description="By default hidden_size / num_attention_heads, or the family's."
    )
    intermediate_size: int | None = Field(None, ge=1, description="Width of the feed-forward block.")
    vocab_size: int | None = Field(None, ge=1)
    vocab_size_padded: int | None = Field(
        None, ge=1, description="Rows that the framework holds; by default not padded."
    )
    word_embed_proj_dim: int | None = Field(
        None, ge=1, description="Channels of the embedding's rows; by default hidden_size."
    )
    max_position_embeddings: int | None = Field(None, ge=1, description="[tokens] of the longest sample.")
    type_vocab_size: int | None = Field(None, ge=0, description="Token types.")
    tie_word_embeddings: bool | None = Field(None, description="Whether the head uses the embedding's weights.")
    attention_bias: bool | None = None
    mlp_bias: bool | None = None
    use_qk_norm: bool | None = Field(None, description="Norms on queries and keys, where the family leaves the choice.")
    norms_per_layer: int | None = Field(
        None, ge=1, description="Norms of the hidden size in each layer, where the family leaves the choice."
    )
    final_norm: bool | None = Field(
        None, description="A norm behind the last layer, where the family leaves the choice."
    )
    hidden_dropout: float | None = Field(None, ge=0, lt=1)
    attention_dropout: float | None = Field(None, ge=0, lt=1)
    sliding_window: int | None = Field(None, ge=1, description="[tokens]; attention is priced in full all the same.")
    hidden_act: str | None = None
    norm_eps: float | None = Field(None, gt=0)
    rope_theta: float | None = Field(None, gt=0)
    rope_scaling: dict[str, Any] | None = None


def _silent(_note: str) -> None:
    """Drop a note."""


def read_model(source: str, note: Callable[[str], None] = _silent) -> Model:
    """Return the model of a model file, a ``config.json``, a folder that holds one, or ``-`` for standard input.

    Args:
        source: a path, or ``-``.
        note: takes sentences that the user should read.

    Raises:
        SpecError: with every problem found.
    """
    folder = source != "-" and FilePath(source).is_dir()
    text, origin = read_text(_config_in(source) if folder else source)
    document = parse(text, origin)
    refuse_other_kind(document, "model")
    refuse_file_beside(document)
    return model_from_document(document, note=note)


def _config_in(folder: str) -> str:
    """Return the configuration in a folder.

    Raises:
        SpecError: there is none; says what is there instead.
    """
    path = FilePath(folder) / CONFIG
    if path.is_file():
        return str(path)
    others = sorted(entry.name for entry in FilePath(folder).iterdir() if entry.suffix in {".json", ".yaml", ".yml"})
    held = f"it holds {', '.join(others[:6])}{', ...' if len(others) > 6 else ''}" if others else "it holds no spec"
    raise SpecError.of(folder, f"is a folder without {CONFIG}, which was looked for; {held}; name a file")


def _is_config(value: object) -> bool:
    """Return whether a document is a Hugging Face configuration."""
    return isinstance(value, dict) and "family" not in value and any(key in value for key in CONFIG_MARKS)


def _is_outlined(family: object) -> bool:
    """Return whether a family is read but cannot be planned yet."""
    if not isinstance(family, str) or family in FAMILIES:
        return False
    from planner.outlines import OUTLINED

    return family in OUTLINED


def model_from_record(record: Mapping[str, object], origin: str) -> Model:
    """Return the model of a plain record, such as `model_record` makes.

    Raises:
        SpecError: with every problem found.
    """
    return model_from_document(Document(value=dict(record), origin=origin))


def model_record(model: Model) -> dict[str, object]:
    """Return the record that rebuilds `model`, ready to be written as YAML or JSON."""
    return {"name": model.name, "family": model.family, **{key: thawed(value) for key, value in model.spec}}


def model_from_document(document: Document, base: Path = (), note: Callable[[str], None] = _silent) -> Model:
    """Return the model that stands at `base` in a document.

    Raises:
        SpecError: with every problem found.
    """
    value = document.value
    for part in base:
        value = value[part]
    if _is_config(value):
        return _from_config(document, value, base, note)
    if isinstance(value, dict) and _is_outlined(value.get("family")):
        return _from_config(document, {**value, "model_type": value["family"]}, base, note, named="family")
    if isinstance(value, dict) and "layers" in value:
        message = "explicit lists of layers come in a later version; name a family and its hyper-parameters"
        raise SpecError([*document.problems, document.problem((*base, "layers"), message)])
    return _from_record(document, value, base)


def _from_record(document: Document, value: object, base: Path) -> Model:
    """Read the planner's own record, the family's own names of hyper-parameters in it included."""
    written = value if isinstance(value, dict) else {}
    family = written.get("family")
    architecture = FAMILIES.get(family) if isinstance(family, str) else None
    name = huggingface.model_name(written, document.origin, str(family))
    own = {*architecture.aliases, *architecture.own} if architecture else set()
    # A missing family gets a better message from _semantics than a missing field would.
    common: object = {"family": "", **{key: item for key, item in written.items() if key not in own}}
    if not isinstance(value, dict):
        common = value
    for part in reversed(base):
        common = {part: common}
    validate(
        ModelRecord,
        replace(document, value=common),
        base=base,
        semantics=lambda _: _semantics(written, architecture, name) if isinstance(value, dict) else (),
    )
    if architecture is None:
        raise AssertionError("an unknown family is a problem")
    return architecture.build(settle(architecture, written, name, str))


def _semantics(written: Mapping[str, object], architecture: Architecture | None, name: str) -> Iterable[Found]:
    """Find what the record's fields cannot tell one by one."""
    if architecture is None:
        if "family" not in written:
            known = ", ".join(FAMILIES)
            yield (
                ("family",),
                f"is missing; name one of {known}, or give a Hugging Face config.json with its model_type",
            )
        else:
            yield ("family",), f"unknown family {shown(written['family'])}{nearest(str(written['family']), FAMILIES)}"
        return
    try:
        settle(architecture, written, name, str)
    except SpecError as error:
        for problem in error.problems:
            yield (problem.place,), problem.message


def _from_config(
    document: Document, value: dict[str, object], base: Path, note: Callable[[str], None], named: str = "model_type"
) -> Model:
    """Read a Hugging Face configuration, its places those of the document; `named` is the key of its family."""
    problems: tuple[Problem, ...] = document.problems

    def where(path: tuple[str, ...]) -> str:
        return document.place((*base, *(named if key == "model_type" else key for key in path)))

    try:
        model = huggingface.from_config(value, document.origin, where=where, note=note)
    except SpecError as error:
        raise SpecError([*problems, *error.problems]) from None
    if problems:
        raise SpecError(problems)
    return model
