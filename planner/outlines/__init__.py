"""The model families that are read but cannot be planned yet, one file each."""

from planner.outlines.base import Fields, Outline
from planner.outlines.deepseek import DEEPSEEK_V2, DEEPSEEK_V3
from planner.outlines.glm4_moe import GLM4_MOE
from planner.outlines.gpt_oss import GPT_OSS
from planner.outlines.granitemoe import GRANITE_MOE
from planner.outlines.llama4 import LLAMA4
from planner.outlines.mamba2 import MAMBA2
from planner.outlines.mixtral import MIXTRAL
from planner.outlines.nemotron_h import NEMOTRON_H
from planner.outlines.olmoe import OLMOE
from planner.outlines.phimoe import PHI_MOE
from planner.outlines.qwen2_moe import QWEN2_MOE
from planner.outlines.qwen3_moe import QWEN3_MOE
from planner.outlines.qwen3_next import QWEN3_NEXT
from planner.outlines.t5 import T5
from planner.outlines.vit import VIT

OUTLINES: tuple[Outline, ...] = (
    DEEPSEEK_V2,
    DEEPSEEK_V3,
    GLM4_MOE,
    GPT_OSS,
    GRANITE_MOE,
    LLAMA4,
    MAMBA2,
    MIXTRAL,
    NEMOTRON_H,
    OLMOE,
    PHI_MOE,
    QWEN2_MOE,
    QWEN3_MOE,
    QWEN3_NEXT,
    T5,
    VIT,
)
OUTLINED = {model_type: outline for outline in OUTLINES for model_type in outline.model_types}
"""``model_type`` of a Hugging Face configuration -> family."""

__all__ = ["OUTLINED", "OUTLINES", "Fields", "Outline"]
