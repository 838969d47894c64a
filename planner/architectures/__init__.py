"""The model families, one file each: which configurations they read and how hyper-parameters become layers."""

from planner.architectures.base import Architecture, Hyper
from planner.architectures.bert import BERT
from planner.architectures.bloom import BLOOM
from planner.architectures.cohere import COHERE, COHERE2
from planner.architectures.ernie4_5 import ERNIE4_5
from planner.architectures.exaone4 import EXAONE4
from planner.architectures.falcon import FALCON
from planner.architectures.gemma import GEMMA, GEMMA2, GEMMA3
from planner.architectures.glm import GLM, GLM4
from planner.architectures.gpt2 import GPT2
from planner.architectures.gpt_bigcode import GPT_BIGCODE
from planner.architectures.gpt_neox import GPT_NEOX
from planner.architectures.gptj import GPTJ
from planner.architectures.granite import GRANITE
from planner.architectures.llama import LLAMA
from planner.architectures.mistral import MISTRAL
from planner.architectures.nemotron import NEMOTRON
from planner.architectures.olmo import OLMO
from planner.architectures.olmo2 import OLMO2
from planner.architectures.opt import OPT
from planner.architectures.phi import PHI
from planner.architectures.phi3 import PHI3
from planner.architectures.qwen2 import QWEN2
from planner.architectures.qwen3 import QWEN3
from planner.architectures.seed_oss import SEED_OSS
from planner.architectures.settle import KEYS, settle, thawed
from planner.architectures.smollm3 import SMOLLM3
from planner.architectures.stablelm import STABLELM
from planner.architectures.starcoder2 import STARCODER2

ARCHITECTURES: tuple[Architecture, ...] = (
    BERT,
    BLOOM,
    COHERE,
    COHERE2,
    ERNIE4_5,
    EXAONE4,
    FALCON,
    GEMMA,
    GEMMA2,
    GEMMA3,
    GLM,
    GLM4,
    GPT2,
    GPT_BIGCODE,
    GPT_NEOX,
    GPTJ,
    GRANITE,
    LLAMA,
    MISTRAL,
    NEMOTRON,
    OLMO,
    OLMO2,
    OPT,
    PHI,
    PHI3,
    QWEN2,
    QWEN3,
    SEED_OSS,
    SMOLLM3,
    STABLELM,
    STARCODER2,
)
FAMILIES = {architecture.name: architecture for architecture in ARCHITECTURES}
"""Name of the family -> family."""
MODEL_TYPES = {model_type: architecture for architecture in ARCHITECTURES for model_type in architecture.model_types}
"""``model_type`` of a Hugging Face configuration -> family."""

__all__ = ["ARCHITECTURES", "FAMILIES", "KEYS", "MODEL_TYPES", "Architecture", "Hyper", "settle", "thawed"]
