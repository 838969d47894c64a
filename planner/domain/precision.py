"""Precisions of matrix products: which rate of a device they run at, and what their inputs take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """What a job's matrix products are computed in; everything else stays 16-bit, or fp32 in fp32."""

    name: str
    rate: str
    """Peak of the device that products run at: ``bf16``, ``fp16``, ``fp32``, ``fp8`` or ``fp4``."""
    input_bytes: float
    """[bytes] per element of a product's inputs, scale factors included."""
    source: str
    beside: str = ""
    """Another peak that every device has that can read the scale factors; empty if none are to be read."""

    @property
    def narrow(self) -> bool:
        """Whether inputs are narrower than 16 bits: such a precision has to be asked for."""
        return self.input_bytes < 2


_ROWS = (
    Precision(name="bf16", rate="bf16", input_bytes=2, source="Kalamkar et al. 2019"),
    Precision(name="fp16", rate="fp16", input_bytes=2, source="Micikevicius et al. 2018"),
    Precision(name="fp32", rate="fp32", input_bytes=4, source="TF32 where the matrix units have it"),
    Precision(name="fp8", rate="fp8", input_bytes=1, source="Micikevicius et al. 2022; one scale for a tensor"),
    Precision(
        name="mxfp8",
        rate="fp8",
        input_bytes=1 + 1 / 32,
        source=(
            "OCP Microscaling Formats 1.0 (2023): one scale of 8 bits for 32 elements; matrix units that take such "
            "blocks came with fp4 (NVIDIA Blackwell, AMD CDNA 4)"
        ),
        beside="fp4",
    ),
    Precision(
        name="nvfp4",
        rate="fp4",
        input_bytes=1 / 2 + 1 / 16,
        source="NVIDIA, Pretraining Large Language Models with NVFP4 (2025): one fp8 scale for 16 elements",
    ),
)

PRECISIONS: Mapping[str, Precision] = {row.name: row for row in _ROWS}
"""Name -> precision, the usual first."""
