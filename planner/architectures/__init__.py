"""The model families, one file each: which configurations they read and how hyper-parameters become layers."""

from planner.architectures.base import Architecture, Hyper
from planner.architectures.bert import BERT
from planner.architectures.gemma import GEMMA, GEMMA2
from planner.architectures.gpt2 import GPT2
from planner.architectures.gpt_neox import GPT_NEOX
from planner.architectures.llama import LLAMA
from planner.architectures.mistral import MISTRAL
from planner.architectures.qwen2 import QWEN2
from planner.architectures.qwen3 import QWEN3
from planner.architectures.settle import KEYS, settle, thawed

ARCHITECTURES: tuple[Architecture, ...] = (BERT, GEMMA, GEMMA2, GPT2, GPT_NEOX, LLAMA, MISTRAL, QWEN2, QWEN3)
FAMILIES = {architecture.name: architecture for architecture in ARCHITECTURES}
"""Name of the family -> family."""
MODEL_TYPES = {model_type: architecture for architecture in ARCHITECTURES for model_type in architecture.model_types}
"""``model_type`` of a Hugging Face configuration -> family."""

__all__ = ["ARCHITECTURES", "FAMILIES", "KEYS", "MODEL_TYPES", "Architecture", "Hyper", "settle", "thawed"]
