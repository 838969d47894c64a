"""Recompute as Megatron-LM has it, in the planner's words."""

from __future__ import annotations

from typing import Literal, overload

from planner.configurations.forms.megatron.facts import Facts

Policy = tuple[str, int | None, tuple[str, ...]]
"""(policy, layers of each stage that are recomputed in full or None for all, what was assumed)."""
Found = tuple[tuple[str, str], ...]
"""(key, why no plan can say it)."""


@overload
def recompute(facts: Facts) -> Policy: ...
@overload
def recompute(facts: Facts, *, problems: Literal[True]) -> Found: ...
def recompute(facts: Facts, *, problems: bool = False) -> Policy | Found:
    """Return what is recomputed, or what of it no plan can say.

    Full recompute is ``uniform`` (all layers, in groups that keep one input each) or ``block`` (the first N layers of
    each stage, of each chunk where there are several). Selective recompute of attention's core alone can be planned.
    Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_block.py, ``_checkpointed_forward``.
    """
    granularity = facts.value("recompute_granularity")
    if granularity is None and facts.on("recompute_activations"):
        granularity = "selective"
    if granularity == "full":
        return _full(facts, problems=problems)
    if granularity == "selective":
        modules = facts.value("recompute_modules") or ["core_attn"]
        others = [module for module in modules if module != "core_attn"]
        if problems:
            message = f"recompute of {', '.join(map(str, others))} cannot be planned yet; only core_attn can"
            return (("recompute_modules", message),) if others else ()
        return "selective", None, ()
    return () if problems else ("none", None, ())


def _full(facts: Facts, *, problems: bool) -> Policy | Found:
    number = facts.count("recompute_num_layers") or 1
    if facts.value("recompute_method") != "block":
        note = f"of every {number} layers one input is kept, and the planner counts one for each layer"
        return () if problems else ("full", None, (note,) if number > 1 else ())
    chunks = facts.chunks or ((facts.layers,),)
    if facts.layers == 0 or all(size <= number for stage in chunks for size in stage):
        return () if problems else ("full", number if facts.layers == 0 else None, ())
    counts = [sum(min(number, size) for size in stage) for stage in chunks]
    held = [sum(stage) for stage in chunks]
    most = max(counts)
    if problems:
        even = all(count == min(most, layers) for count, layers in zip(counts, held, strict=True))
        message = "stages recompute unlike numbers of layers, which cannot be planned yet"
        return () if even else (("recompute_num_layers", message),)
    return "full", most, ()
