"""The keys that DeepSpeed knows: of its pydantic models, and for the rest those that a dict sees asked for."""

from __future__ import annotations

import contextlib
import typing
from unittest import mock

import tables
from deepspeed.comm.config import CommsLoggerConfig
from deepspeed.compile.config import CompileConfig
from deepspeed.inference.config import WeightQuantConfig
from deepspeed.module_inject.auto_ep_config import AutoEPConfig
from deepspeed.monitor.config import CometConfig, CSVConfig, TensorBoardConfig, WandbConfig
from deepspeed.runtime import config
from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config
from deepspeed.runtime.tensor_parallel.config import TPTrainingConfig
from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
from deepspeed.utils.config import DeepSpeedThroughputTimerConfig

MODELS = {
    "zero_optimization": DeepSpeedZeroConfig,
    "bf16": DeepSpeedBF16Config,
    "fp16": DeepSpeedFP16Config,
    "tensor_parallel": TPTrainingConfig,
    "compile": CompileConfig,
    "comms_logger": CommsLoggerConfig,
    "tensorboard": TensorBoardConfig,
    "wandb": WandbConfig,
    "csv_monitor": CSVConfig,
    "comet": CometConfig,
    "timers.throughput": DeepSpeedThroughputTimerConfig,
    "hybrid_engine": config.HybridEngineConfig,
    "weight_quantization": WeightQuantConfig,
}
"""Tables that refuse an unknown key."""


class _Asked(dict[str, typing.Any]):
    """A table that notes, by its path, every key it is asked for."""

    def __init__(self, content: dict[str, typing.Any], path: str, notes: dict[str, set[str]]) -> None:
        super().__init__(content)
        self.path = path
        self.notes = notes

    def note(self, key: str) -> None:
        self.notes.setdefault(self.path, set()).add(key)

    def get(self, key: str, default: object = None) -> typing.Any:
        self.note(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.note(str(key))
        return super().__contains__(key)

    def __getitem__(self, key: str) -> typing.Any:
        self.note(key)
        return super().__getitem__(key)

    def keys(self) -> typing.Any:
        return self

    def __copy__(self) -> _Asked:
        return self


def keys() -> dict[str, object]:
    """Every key that DeepSpeedConfig asks for, by table; another one of the top level is ignored without a word."""
    notes: dict[str, set[str]] = {}
    _ask(notes)
    for _ in range(3):  # tables in tables are asked for only where they are
        for path, found in [(path, sorted(found)) for path, found in notes.items()]:
            for key in found:
                _ask(notes, *filter(None, path.split(".")), key)
    models: dict[str, object] = {"expert_parallel": tables.of_dataclass(AutoEPConfig)[""]}
    for name, model in MODELS.items():
        models |= tables.of_pydantic(model, name)
    return {
        "top_level": sorted(notes.pop("")),
        "removed_top_level": sorted(config._REMOVED_TOP_LEVEL_CONFIG_KEYS),
        "removed_zero_optimization": sorted(config._REMOVED_ZERO_CONFIG_KEYS),
        "pipeline": config.get_pipeline_config({}),
        "read_keys": {path: sorted(found) for path, found in sorted(notes.items())},
        "models": models,
    }


def _ask(notes: dict[str, set[str]], *path: str) -> None:
    """Reads a configuration with an empty table at that path; what breaks where none belongs is of no interest."""
    content: dict[str, typing.Any] = {}
    for depth in reversed(range(len(path))):
        content = {
            path[depth]: _Asked(
                {**content, **({"enabled": True} if content else {})}, ".".join(path[: depth + 1]), notes
            )
        }
    whole = _Asked({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1, **content}, "", notes)
    eight = mock.patch.multiple(config.dist, get_rank=lambda *_: 0, get_world_size=lambda *_: 8)
    with eight, contextlib.suppress(Exception):
        config.DeepSpeedConfig(whole)
