"""Megatron-LM, the programs of NVIDIA/Megatron-LM."""

from planner.export.frameworks.megatron.exporter import MEGATRON

__all__ = ["MEGATRON"]
