"""Megatron-LM by its own words: parser, validator, model configuration and process groups of megatron-core's wheel.

A request: `argv` (the flags of pretrain_gpt.py), `world` (ranks), `env` (variables of the plan), `ranks` (whose groups are wanted;
default rank 0 alone), `capability` (compute capability of the device, default [9, 0]); or `flags: true` for the table of all flags.
"""

from __future__ import annotations

import argparse
import os
import sys
import types
import typing
from unittest import mock

import shims
import torch

if not hasattr(typing, "override"):  # the wheel asks for Python 3.12 for little more than this name
    import typing_extensions

    typing.override = typing_extensions.override
shims.stub_triton()

import megatron.core  # noqa: E402
from megatron.core import num_microbatches_calculator, parallel_state  # noqa: E402
from megatron.core.transformer import transformer_block  # noqa: E402
from megatron.training import arguments  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

REFUSALS = (AssertionError, ValueError, RuntimeError, SystemExit)


def answer(request: dict[str, typing.Any]) -> dict[str, object]:
    """What Megatron makes of the flags: degrees, layers of each stage and chunk, groups of the ranks asked for."""
    if request.get("flags"):
        return {"version": megatron.core.__version__, "flags": _flags()}
    raise NotImplementedError


def _flags() -> list[dict[str, object]]:
    parser = arguments.add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
    titles = {id(action): group.title for group in parser._action_groups for action in group._group_actions}
    return [_flag(action, titles[id(action)]) for action in parser._actions if action.dest != "help"]


def _flag(action: argparse.Action, group: str) -> dict[str, object]:
    long = [option for option in action.option_strings if option.startswith("--")]
    return {
        "flag": long[0],
        "aliases": [option for option in action.option_strings if option != long[0]],
        "dest": action.dest,
        "kind": type(action).__name__.strip("_").removesuffix("Action"),  # Store, StoreTrue, StoreFalse, StoreConst, BooleanOptional
        "type": getattr(action.type, "__name__", None),
        "nargs": action.nargs,
        "const": _plain(action.const),
        "choices": None if action.choices is None else [_plain(choice) for choice in action.choices],
        "default": _plain(action.default),
        "group": group,
    }


def _plain(value: object) -> object:
    """A value that JSON has; an enum by its name and anything else as Python writes it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return getattr(value, "name", repr(value))
