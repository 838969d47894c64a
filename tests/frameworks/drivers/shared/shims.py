"""Stands in for what a framework imports on a machine without GPUs, and never uses to judge a configuration."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import typing


def stub_triton() -> None:
    """Serves an empty `triton` and everything below it, where the real one (1 GB) is not installed.

    Torch asks whether triton is there, and must see that it is not: so what asks is imported before the stand-in
    exists.
    """
    if importlib.util.find_spec("triton") is not None:
        return
    import torch._dynamo
    import torch._inductor.compile_fx
    import torch._inductor.runtime.triton_heuristics
    import torch.utils.flop_counter  # noqa: F401

    sys.meta_path.append(_EmptyModules())


class _Anything(types.ModuleType):
    """A module in which every name is found, is callable, decorates, and has every name in turn."""

    __path__: typing.ClassVar[list[str]] = []
    __version__ = "0"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(f"{self.__name__}.{name}")

    def __call__(self, *arguments: object, **_: object) -> object:
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else self

    def __getitem__(self, _: object) -> object:
        return self

    def __mro_entries__(self, _: object) -> tuple[type, ...]:
        return (object,)


class _EmptyModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, _path: object, _target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != "triton":
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Anything(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass
