"""Builds what one rank holds of Megatron's GPT model, on the meta device: its parameters by Megatron's own count."""

from __future__ import annotations

import typing
from unittest import mock

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_mtp_block_spec
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.tokenizers.utils.build_tokenizer import vocab_size_with_padding
from megatron.core.transformer.dot_product_attention import DotProductAttention
from megatron.core.transformer.torch_norm import WrappedTorchNorm


def _norm(_: type, config: typing.Any, hidden_size: int, eps: float = 1e-5, **__: object) -> torch.nn.Module:
    kind = torch.nn.RMSNorm if config.normalization == "RMSNorm" else torch.nn.LayerNorm
    return kind(hidden_size, eps=eps)


def _attention(module: torch.nn.Module, config: typing.Any, *_: object, **__: object) -> None:
    torch.nn.Module.__init__(module)
    module.config = config


# Megatron's own refuse sequence and context parallelism and latent attention, which Transformer Engine's take.
WrappedTorchNorm.__new__ = _norm
DotProductAttention.__init__ = _attention


def chunks(args: typing.Any, config: typing.Any) -> list[dict[str, int]]:
    """Parameters of each chunk of the rank whose groups are there: of experts, of embedding and head, and the rest.

    Made of Megatron's own modules ("local"), not Transformer Engine's, which hold the same parameters. Experts are made
    one by one, since grouped ones want Transformer Engine.
    """
    config.perform_initialization = False
    config.moe_grouped_gemm = False
    config.gradient_accumulation_fusion = False
    config.init_model_with_meta_device = True  # else tied ends would exchange their weights on a GPU
    vocabulary = args.padded_vocab_size or vocab_size_with_padding(args.vocab_size, args, logging_enabled=False)
    numbers = range(args.virtual_pipeline_model_parallel_size or 1)
    with mock.patch.object(torch.cuda, "current_device", return_value=torch.device("meta")):
        return [_count(_chunk(args, config, vocabulary, number)) for number in numbers]


def _chunk(args: typing.Any, config: typing.Any, vocabulary: int, number: int) -> GPTModel:
    number = number if args.virtual_pipeline_model_parallel_size else None
    spec = get_gpt_decoder_block_spec(
        config,
        use_transformer_engine=False,
        normalization=args.normalization,
        qk_l2_norm=args.qk_l2_norm,
        vp_stage=number,
    )
    prediction = (
        get_gpt_mtp_block_spec(config, spec, use_transformer_engine=False, vp_stage=number)
        if args.mtp_num_layers
        else None
    )
    with torch.device("meta"):
        return GPTModel(
            config,
            spec,
            vocabulary,
            args.max_position_embeddings,
            pre_process=parallel_state.is_pipeline_first_stage(ignore_virtual=False, vp_stage=number),
            post_process=parallel_state.is_pipeline_last_stage(ignore_virtual=False, vp_stage=number),
            share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
            position_embedding_type=args.position_embedding_type,
            rotary_percent=args.rotary_percent,
            mtp_block_spec=prediction,
            vp_stage=number,
        )


def _count(model: GPTModel) -> dict[str, int]:
    counted = {"experts": 0, "vocabulary": 0, "rest": 0}
    for name, parameter in model.named_parameters():
        kind = "rest"
        if not getattr(parameter, "allreduce", True):
            kind = "experts"
        elif name.startswith(("embedding.", "output_layer.")):
            kind = "vocabulary"
        counted[kind] += parameter.numel()
    return counted
