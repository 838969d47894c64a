"""Megatron-LM by its own words: parser, validator, model configuration and process groups of megatron-core's wheel.

A request: `argv` (the flags of pretrain_gpt.py), `world` (ranks), `env` (variables of the plan), `ranks` (whose groups
are wanted; default rank 0 alone), `capability` (compute capability of the device, default [9, 0]); or `flags: true` for
the table of all flags.

Asked in the order of a real start: parse_args, validate_args, core_transformer_config_from_args, the calculator of
micro-batches, initialize_model_parallel on a fake process group, layers of every stage, and what the interleaved
schedule demands of its first step.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
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

import mcore_model
import megatron.core.utils
import packaging.version
from megatron.core import num_microbatches_calculator, parallel_state
from megatron.core.models.common.embeddings import rope_utils
from megatron.core.pipeline_parallel import schedules
from megatron.core.transformer import transformer_block
from megatron.core.transformer.enums import LayerType
from megatron.core.transformer.moe import moe_utils
from megatron.training import arguments
from torch.testing._internal.distributed.fake_pg import FakeStore

# A machine that trains has Transformer Engine, without which Megatron refuses its own defaults.
megatron.core.utils._te_version = packaging.version.Version("2.20")
sorting = "fused_sort_chunks_by_index fused_sort_chunks_by_index_with_probs"
for module, names in {
    rope_utils: "fused_apply_rotary_pos_emb",
    moe_utils: f"fused_permute fused_permute_with_probs fused_unpermute {sorting}",
}.items():
    for name in names.split():
        setattr(module, name, getattr(module, name) or object())

OF_A_PLAN = ("CUDA_", "NCCL_", "NVTE_", "PYTORCH_", "TORCH_")
"""Beginnings of the variables that a plan sets and Megatron judges: those of this machine are kept away."""

REFUSALS = (AssertionError, ValueError, RuntimeError, SystemExit)


def answer(request: dict[str, typing.Any]) -> dict[str, object]:
    """What Megatron makes of the flags: degrees, layers of each stage and chunk, groups of the ranks asked for."""
    if request.get("flags"):
        return {"version": megatron.core.__version__, "flags": _flags()}
    with _machine(request):
        args = arguments.parse_args()
        arguments.validate_args(args)
        config = arguments.core_transformer_config_from_args(args)
        ranks = request.get("ranks", [0])
        held = functools.partial(mcore_model.chunks, args, config)
        return _degrees(args, config) | {
            "groups": {str(rank): _groups(args, rank) for rank in ranks},
            "parameters": {str(rank): _in_groups(args, rank, held) for rank in ranks if args.vocab_size},
            **_in_groups(args, 0, lambda: {"stages": _stages(args, config), "first_step": _first_step(args, config)}),
        }


@contextlib.contextmanager
def _machine(request: dict[str, typing.Any]) -> typing.Iterator[None]:
    """Shows Megatron the command line, the environment and the device of the request, and forgets them afterwards."""
    major, minor = request.get("capability", [9, 0])
    device = types.SimpleNamespace(
        major=major, minor=minor, total_memory=80 << 30, multi_processor_count=132, name="as asked"
    )
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(OF_A_PLAN)}
    rank = {"WORLD_SIZE": str(request["world"]), "RANK": "0", "LOCAL_RANK": "0"}
    with (
        mock.patch.dict(os.environ, inherited | rank | request.get("env", {}), clear=True),
        mock.patch.object(sys, "argv", ["pretrain_gpt.py", *request["argv"]]),
        mock.patch.object(argparse.ArgumentParser, "error", _refuse),
        mock.patch.object(torch.cuda, "get_device_properties", return_value=device),
        mock.patch.object(torch.cuda, "get_device_capability", return_value=(major, minor)),
    ):
        yield


def _refuse(_: argparse.ArgumentParser, message: str) -> typing.NoReturn:
    """In place of argparse's own, which prints the message and ends the process."""
    raise ValueError(message)


def _degrees(args: argparse.Namespace, config: typing.Any) -> dict[str, object]:
    num_microbatches_calculator.unset_num_microbatches_calculator()
    num_microbatches_calculator.init_num_microbatches_calculator(
        rank=1,  # rank 0 alone logs
        global_batch_size=args.global_batch_size,
        micro_batch_size=args.micro_batch_size,
        data_parallel_size=args.data_parallel_size,
        decrease_batch_size_if_needed=args.decrease_batch_size_if_needed,
        step_batch_size_schedule=args.step_batch_size_schedule,
        seq_length=args.seq_length,
    )
    return {
        "tp": args.tensor_model_parallel_size,
        "pp": args.pipeline_model_parallel_size,
        "vpp": args.virtual_pipeline_model_parallel_size,
        "cp": args.context_parallel_size,
        "dp": args.data_parallel_size,
        "ep": args.expert_model_parallel_size,
        "etp": args.expert_tensor_parallel_size,
        "sequence_parallel": args.sequence_parallel,
        "microbatches": num_microbatches_calculator.get_num_microbatches(),
        "global_batch_size": args.global_batch_size,
        "ffn_hidden_size": config.ffn_hidden_size,
        "kv_channels": config.kv_channels,
        "query_groups": config.num_query_groups,
        "recompute": [
            config.recompute_granularity,
            config.recompute_method,
            config.recompute_num_layers,
            config.recompute_modules,
        ],
    }


def _in_groups(args: argparse.Namespace, rank: int, ask: typing.Callable[[], typing.Any]) -> typing.Any:
    """Asks as that rank of a world whose process groups send nothing."""
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=args.world_size)
    try:
        parallel_state.initialize_model_parallel(
            args.tensor_model_parallel_size,
            args.pipeline_model_parallel_size,
            args.virtual_pipeline_model_parallel_size,
            context_parallel_size=args.context_parallel_size,
            hierarchical_context_parallel_sizes=args.hierarchical_context_parallel_sizes,
            expert_model_parallel_size=args.expert_model_parallel_size,
            num_distributed_optimizer_instances=args.num_distributed_optimizer_instances,
            expert_tensor_parallel_size=args.expert_tensor_parallel_size,
            order="tp-cp-ep-pp-dp" if args.use_tp_pp_dp_mapping else "tp-cp-ep-dp-pp",
            create_gloo_process_groups=False,
        )
        return ask()
    finally:
        parallel_state.destroy_model_parallel()
        torch.distributed.destroy_process_group()


def _groups(args: argparse.Namespace, rank: int) -> dict[str, list[int]]:
    """The global ranks that work with this one, by kind of parallelism."""
    return _in_groups(
        args,
        rank,
        lambda: {
            kind: torch.distributed.get_process_group_ranks(group)
            for kind, group in {
                "tp": parallel_state.get_tensor_model_parallel_group(),
                "cp": parallel_state.get_context_parallel_group(),
                "dp": parallel_state.get_data_parallel_group(),
                "dp_cp": parallel_state.get_data_parallel_group(with_context_parallel=True),
                "pp": parallel_state.get_pipeline_model_parallel_group(),
                "ep": parallel_state.get_expert_model_parallel_group(),
                "etp": parallel_state.get_expert_tensor_parallel_group(),
                "expert_dp": parallel_state.get_expert_data_parallel_group(),
            }.items()
        },
    )


def _stages(args: argparse.Namespace, config: typing.Any) -> list[list[dict[str, object]]]:
    """What every pipeline rank holds, chunk by chunk: decoder layers, and the rest where a layout says it."""
    chunks = range(args.virtual_pipeline_model_parallel_size or 1)
    layout = config.pipeline_model_parallel_layout
    if layout is not None:
        return [
            [{"layers": chunk.count(LayerType.decoder), "holds": [layer.name for layer in chunk]} for chunk in stage]
            for stage in layout.layout
        ]
    return [
        [
            {"layers": transformer_block.get_num_layers_to_build(config, vp_stage=chunk, pp_rank=stage)}
            for chunk in chunks
        ]
        for stage in range(args.pipeline_model_parallel_size)
    ]


class _AskedEnough(BaseException):
    """The schedule has checked what it checks and turns to the model."""


class _Chunk(torch.nn.Module):
    """As much of a model as the schedule looks at before it runs anything."""

    def __init__(self, config: typing.Any) -> None:
        super().__init__()
        self.config = config

    @property
    def model_type(self) -> typing.NoReturn:
        raise _AskedEnough


def _first_step(args: argparse.Namespace, config: typing.Any) -> str:
    """Puts the micro-batches to the interleaved schedule, which refuses only when the first step begins."""
    chunks = args.virtual_pipeline_model_parallel_size
    if args.pipeline_model_parallel_size == 1 or chunks is None:
        return "not interleaved"
    counter = torch.zeros([], dtype=torch.int)
    with mock.patch.object(torch, "zeros", return_value=counter):  # it would be on a GPU
        try:
            schedules.forward_backward_pipelining_with_interleaving(
                forward_step_func=None,
                data_iterator=[None] * chunks,
                model=[_Chunk(config)] * chunks,
                num_microbatches=num_microbatches_calculator.get_num_microbatches(),
                seq_length=args.seq_length,
                micro_batch_size=args.micro_batch_size,
            )
        except _AskedEnough:
            return "taken by the interleaved schedule"


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
        "kind": type(action)
        .__name__.strip("_")
        .removesuffix("Action"),  # Store, StoreTrue, StoreFalse, StoreConst, BooleanOptional
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
