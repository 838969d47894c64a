"""What follows from a configuration of Megatron-LM: degrees, layers of each stage, batch; None where it is not told."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

from planner.configurations.layout_text import written_out
from planner.domain.configuration import Configuration

Chunks = tuple[tuple[int, ...], ...]
"""Layers of every chunk of every stage."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A configuration, asked for what it comes to. A setting that is written but left open is None."""

    of: Configuration

    def open(self, *keys: str) -> bool:
        """Return whether one of `keys` is not known: written but left open, or without a known default."""
        return any(
            self.of.settings[key].value is None if key in self.of.settings else key not in self.of.defaults
            for key in keys
        )

    def value(self, key: str) -> Any:
        """Return a value, Megatron's default where it is not written."""
        return self.of.get(key)

    def count(self, key: str) -> int | None:
        """Return a whole number; None if it is open or not given."""
        value = self.of.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def size(self, key: str) -> int:
        """Return a degree, at least 1; 0 if it is open or no degree at all."""
        value = self.count(key)
        return value if value is not None and value > 0 else 0

    def on(self, key: str) -> bool:
        """Return whether a switch is on, so far as that is known."""
        return bool(self.of.get(key))

    @property
    def tp(self) -> int:
        """Tensor degree, 0 if it is not known; so the other degrees."""
        return self.size("tensor_model_parallel_size")

    @property
    def pp(self) -> int:
        """Pipeline stages."""
        return self.size("pipeline_model_parallel_size")

    @property
    def cp(self) -> int:
        """Context degree."""
        return self.size("context_parallel_size")

    @property
    def ep(self) -> int:
        """Expert degree."""
        return self.size("expert_model_parallel_size")

    @property
    def etp(self) -> int:
        """Tensor degree of experts, by default that of everything else."""
        return (
            self.tp
            if self.of.get("expert_tensor_parallel_size") is None and not self.open("expert_tensor_parallel_size")
            else self.size("expert_tensor_parallel_size")
        )

    @property
    def world(self) -> int:
        """Ranks, 0 if they are not told."""
        value = self.of.world.value if self.of.world else 0
        return value if isinstance(value, int) else 0

    @property
    def width(self) -> int:
        """Ranks of one replica, 0 if that is not told; parts of weights beyond the tensor degree are ranks, too."""
        parts = self.count("tensor_parallel_num_weight_shards") or 0
        tensor = parts if self.tp and parts % self.tp == 0 and parts > self.tp else self.tp
        return tensor * self.pp * self.cp

    @property
    def dp(self) -> int:
        """Replicas, 0 if the ranks are not told or do not divide."""
        width = self.width
        return self.world // width if width and self.world and self.world % width == 0 else 0

    @property
    def layers(self) -> int:
        """Decoder layers, 0 if they are not told."""
        return self.size("num_layers") or self.size("encoder_num_layers")

    @property
    def stages_text(self) -> tuple[str, ...] | None:
        """The stages of the layout, written out; None if there is none or it is wrong."""
        text = self.of.get("pipeline_model_parallel_layout")
        found = written_out(text) if isinstance(text, str) else ""
        return found if isinstance(found, tuple) else None

    @property
    def padded_layers(self) -> int:
        """Layers that are divided over the stages: embedding and loss count where they are asked to."""
        extra = self.on("account_for_embedding_in_pipeline_split") + self.on("account_for_loss_in_pipeline_split")
        return self.layers + extra if self.layers else 0

    @property
    def vpp(self) -> int:
        """Chunks of each stage, 0 if that is not told."""
        if self.open(*SPLITS) or not self.pp:
            return 0
        if isinstance(self.value("pipeline_model_parallel_layout"), str):
            found = self.stages_text
            return len(found) // self.pp if found and len(found) % self.pp == 0 else 0
        if self.value("num_virtual_stages_per_pipeline_rank") is not None:
            return self.size("num_virtual_stages_per_pipeline_rank")
        each = self.count("num_layers_per_virtual_pipeline_stage")
        if each is None:
            return 1
        per_stage, left = divmod(self.padded_layers, self.pp)
        return per_stage // each if each > 0 and not left and per_stage and per_stage % each == 0 else 0

    @property
    def stage_sizes(self) -> tuple[int, ...] | None:
        """Layers that each stage is given, embedding and loss counted where asked; None if it does not come out."""
        first, last = self.count("decoder_first_pipeline_num_layers"), self.count("decoder_last_pipeline_num_layers")
        if not self.pp or not self.layers or self.open(*SPLITS) or self.pp > MOST_STAGES:
            return None
        if self.pp == 1:
            return (self.layers,)
        middle = self.pp - (first is not None) - (last is not None)
        rest = (self.padded_layers if first is None and last is None else self.layers) - (first or 0) - (last or 0)
        if rest < 0 or (middle and rest % middle) or (not middle and rest):
            return None
        each = [rest // middle] * middle if middle else []
        return (*([first] if first is not None else []), *each, *([last] if last is not None else []))

    @property
    def chunks(self) -> Chunks | None:
        """Decoder layers of every chunk of every stage; None if it does not come out."""
        if isinstance(self.value("pipeline_model_parallel_layout"), str):
            found = self.stages_text
            if not found or not self.vpp:
                return None
            return tuple(tuple(stage.count("t") for stage in found[rank :: self.pp]) for rank in range(self.pp))
        sizes = self.stage_sizes
        if sizes is None or not self.vpp or any(size % self.vpp for size in sizes) or self.vpp > MOST_STAGES:
            return None
        cut = [[size // self.vpp] * self.vpp for size in sizes]
        cut[0][0] -= self.on("account_for_embedding_in_pipeline_split") and self.pp > 1
        cut[-1][-1] -= self.on("account_for_loss_in_pipeline_split") and self.pp > 1
        return tuple(tuple(stage) for stage in cut)

    @property
    def gbs(self) -> int:
        """Samples of one step, 0 if they are not told."""
        if self.of.get("global_batch_size") is None and not self.open("global_batch_size"):
            return self.mbs * self.dp
        return self.size("global_batch_size")

    @property
    def mbs(self) -> int:
        """Samples of one micro-batch, 0 if they are not told."""
        return self.size("micro_batch_size")

    @property
    def microbatches(self) -> int:
        """Micro-batches of one replica in one step, 0 if that is not told or does not come out."""
        width = self.mbs * self.dp
        return self.gbs // width if width and self.gbs and self.gbs % width == 0 else 0

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.size("num_attention_heads")

    @property
    def groups(self) -> int:
        """Key-value heads; as many as query heads unless grouped queries are on."""
        return self.size("num_query_groups") if self.on("group_query_attention") else self.heads

    @property
    def seq(self) -> int:
        """Tokens of a sample."""
        return self.size("seq_length") or self.size("encoder_seq_length")

    @property
    def vocabulary(self) -> tuple[int, int]:
        """(vocabulary, rows with padding), 0 where they are not told."""
        size, given = self.size("vocab_size") or self.tokens, self.size("padded_vocab_size")
        step = self.size("make_vocab_size_divisible_by") * self.tp
        padded = given or (ceil(size / step) * step if size and step and self.on("pad_vocab_size") else size)
        return size or given, padded

    @property
    def tokens(self) -> int:
        """Vocabulary of a tokenizer that has always the same, 0 for others or where the vocabulary is given."""
        known = self.value("tokenizer_type") == "GPT2BPETokenizer" and not self.open("tokenizer_type", "vocab_size")
        return GPT2_TOKENS if known and self.value("vocab_size") is None else 0

    @property
    def fsdp(self) -> str:
        """``megatron``, ``torch`` or nothing: whose fully sharded data parallelism is on."""
        if self.on("use_megatron_fsdp"):
            return "megatron"
        return "torch" if self.on("use_torch_fsdp2") else ""

    @property
    def unfused(self) -> str:
        """The key that asks for attention that keeps its scores; empty if none does."""
        if self.value("transformer_impl") == "local":
            return "transformer_impl"
        return "attention_backend" if self.value("attention_backend") in {"unfused", "local"} else ""

    @property
    def experts(self) -> int:
        """Experts of a layer, 0 if it is dense."""
        return self.size("num_experts")

    @property
    def connections(self) -> str | None:
        """CUDA_DEVICE_MAX_CONNECTIONS, None where the configuration does not say."""
        setting = self.of.environment.get("CUDA_DEVICE_MAX_CONNECTIONS")
        return str(setting.value) if setting else None


MOST_STAGES = 2_000
"""Stages, and chunks of a stage, of which layers are counted; more would be a mistake."""
GPT2_TOKENS = 50_257
"""Tokens of GPT-2's byte-pair encoding (Radford et al. 2019)."""
SPLITS = (
    "pipeline_model_parallel_size",
    "pipeline_model_parallel_layout",
    "num_virtual_stages_per_pipeline_rank",
    "num_layers_per_virtual_pipeline_stage",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
    "num_layers",
    "encoder_num_layers",
)
"""Keys that decide which layers a stage holds."""
