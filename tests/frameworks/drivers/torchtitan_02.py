"""torchtitan up to 0.2: a configuration is a TOML file and flags.

A request: `text` (the TOML), `files` (name: text; laid beside it), `argv` (flags beside --job.config_file), `world`,
`ranks` (as which the trainer is started; default rank 0 alone), or `keys: true`. The parameters of a rank are those
that it keeps, FSDP's shards alone.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import tempfile
import typing
from pathlib import Path
from unittest import mock

import tables
import titan
import tomllib
import torchtitan.protocols.train_spec as specs
from torchtitan.config import ConfigManager, JobConfig
from torchtitan.train import Trainer

REFUSALS = (*titan.REFUSALS, tomllib.TOMLDecodeError)


def answer(request: dict[str, typing.Any]) -> titan.Facts:
    """What torchtitan makes of the configuration, as each of the ranks asked for."""
    if request.get("keys"):
        return {"version": importlib.metadata.version("torchtitan"), "tables": tables.of_dataclass(JobConfig)}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"plan.toml": request["text"], **request.get("files", {})}.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        config = ["--job.config_file", f"{folder}/plan.toml", *request.get("argv", [])]
        ranks = request.get("ranks", [0])
        return {
            str(rank): titan.start(Trainer, ConfigManager().parse_args(config), request["world"], rank, _no_data())
            for rank in ranks
        }


def _no_data() -> typing.ContextManager[object]:
    """Leaves out tokenizer and data, which come from files that a plan does not have."""
    found = specs.get_train_spec

    def without_data(name: str) -> object:
        return dataclasses.replace(found(name), build_tokenizer_fn=None, build_dataloader_fn=None)

    return mock.patch.object(specs, "get_train_spec", without_data)
