"""Recompute as Megatron-LM has it, in the planner's words.

Full recompute is ``uniform`` (all layers, in groups that keep one input each) or ``block`` (the first N layers of each
stage, of each chunk where there are several). Selective recompute of attention's core alone can be planned.
Source: NVIDIA/Megatron-LM, megatron/core/transformer/transformer_block.py, ``_checkpointed_forward``, core 0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.megatron.facts import Facts

CORE = "core_attn"


def granularity(facts: Facts) -> str | None:
    """Return ``full``, ``selective`` or None; the old switch wins over the granularity."""
    value = "selective" if facts.on("recompute_activations") else facts.value("recompute_granularity")
    return str(value) if value is not None else None


def recompute(facts: Facts) -> tuple[str, int | None, tuple[str, ...]]:
    """Return (policy, layers of each stage that are recomputed in full or None for all, what was assumed)."""
    kind, number = granularity(facts), facts.count("recompute_num_layers") or 1
    if kind != "full":
        return ("selective" if kind == "selective" else "none"), None, ()
    if facts.value("recompute_method") != "block":
        note = f"of every {number} layers one input is kept, and the planner counts one for each layer"
        return "full", None, ((note,) if number > 1 else ())
    if facts.layers == 0:
        return "full", number, ()
    counts = _counts(facts, number)
    return "full", (None if all(count == held for count, held in counts) else max(count for count, _ in counts)), ()


def unplannable_recompute(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield (key, why) of what no plan can say."""
    kind = granularity(facts)
    modules = facts.value("recompute_modules") or [CORE]
    others = [str(module) for module in modules if module != CORE]
    if kind == "selective" and others:
        yield "recompute_modules", f"recompute of {', '.join(others)} cannot be planned yet; only {CORE} can"
    if kind == "full" and facts.value("recompute_method") == "block" and facts.layers:
        counts = _counts(facts, facts.count("recompute_num_layers") or 1)
        most = max(count for count, _ in counts)
        if any(count != min(most, held) for count, held in counts):
            message = "stages recompute unlike numbers of layers, which cannot be planned yet"
            yield "recompute_num_layers", message


def _counts(facts: Facts, number: int) -> list[tuple[int, int]]:
    """Return (layers that are recomputed, layers) of every stage, `number` of each chunk."""
    chunks = facts.chunks or ((facts.layers,),)
    return [(sum(min(number, size) for size in stage), sum(stage)) for stage in chunks]
