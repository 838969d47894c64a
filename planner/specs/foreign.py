"""Files that lie beside a model's configuration and are none, so that they are told as such and not key by key."""

from __future__ import annotations

from planner.errors import SpecError
from planner.loader import Document

_BESIDE = "name the folder or the config.json beside it"
_FILES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("an index of weights", _BESIDE, ("weight_map",)),
    ("a tokenizer's file", _BESIDE, ("tokenizer_class", "added_tokens_decoder", "added_tokens", "chat_template")),
    (
        "a processor's configuration",
        _BESIDE,
        ("processor_class", "image_processor_type", "feature_extractor_type"),
    ),
    ("an adapter's configuration", "name the config.json of the model that it adapts", ("peft_type",)),
    ("a pipeline of several models", "name the config.json of one of them", ("_diffusers_version",)),
    (
        "Meta's params.json",
        "write a model file that says `family: llama`, with dim as hidden_size and so on",
        ("dim", "n_layers", "n_heads"),
    ),
    (
        "a generation configuration",
        _BESIDE,
        ("max_new_tokens", "do_sample", "temperature", "top_p", "_from_model_config", "eos_token_id", "bos_token_id"),
    ),
)
"""What a file is, what to name instead, and keys one of which tells it."""
_OURS = (
    "model_type",
    "family",
    "text_config",
    "hidden_size",
    "num_hidden_layers",
    "n_embd",
    "n_layer",
    "d_model",
    "layers",
    "name",
)
"""Keys of models, with any of which a file is taken for one."""


def refuse_file_beside(document: Document) -> None:
    """Stop if the document is plainly another file of a model's folder.

    Raises:
        SpecError: it is; says which, and what to name instead.

    """
    value = document.value
    if not isinstance(value, dict) or any(key in value for key in _OURS):
        return
    for what, remedy, marks in _FILES:
        found = next((mark for mark in marks if mark in value), None)
        if found is not None:
            raise SpecError([document.problem((found,), f"is a key of {what}, not of a model; {remedy}")])
