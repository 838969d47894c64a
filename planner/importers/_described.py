"""What was understood of a model, in words, for one that cannot be planned yet."""

from __future__ import annotations

from collections import Counter

from planner.domain.facts import ModelFacts
from planner.domain.parts import Attention, Experts, LatentAttention, LinearAttention, StateSpace

_SCALES = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))
"""From where on a count is shortened, and by which letter."""


def refusal(facts: ModelFacts) -> str:
    """Return the message about a model that was understood and cannot be planned."""
    shape = _image(facts) or _encoder(facts) or _decoder(facts)
    obstacles = " and ".join(filter(None, (", ".join(facts.obstacles[:-1]), facts.obstacles[-1])))
    return (
        f"{facts.model_type} was understood as {shape}; {_size(facts)}; {obstacles} cannot be planned yet: "
        "give a dense model of equal layers"
    )


def brief(number: float) -> str:
    """Return a count with three digits, ``30.5B``."""
    for scale, letter in _SCALES:
        if number >= scale * 0.9995:
            scaled = number / scale
            digits = 0 if scaled >= 99.95 else 1 if scaled >= 9.995 else 2
            return f"{scaled:.{digits}f}{letter}"
    return str(round(number))


def _size(facts: ModelFacts) -> str:
    """Return the number of parameters, and of those that work on a token, with and without the look-up."""
    total, active = facts.parameters, facts.active_parameters
    text = f"{brief(total)} parameters"
    if active != total:
        without = brief(active - facts.embedding_parameters)
        text += f" of which {brief(active)} work on a token ({without} without the embedding's table)"
    if facts.num_mtp_layers:
        text += f", {_number(facts.num_mtp_layers, 'layer')} of multi-token prediction left out"
    return text


def _image(facts: ModelFacts) -> str:
    """Return the shape of a vision transformer, or nothing."""
    image = facts.image
    if image is None:
        return ""
    return f"{_layers(facts)} on images of {image.size} pixels in patches of {image.patch}"


def _encoder(facts: ModelFacts) -> str:
    """Return the shape of an encoder and its decoder, or nothing."""
    if not facts.encoder:
        return ""
    sides = f"an encoder of {len(facts.encoder)} and a decoder of {_number(len(facts.blocks), 'layer')}"
    return f"{sides}, hidden size {facts.hidden_size}, {_number(facts.num_attention_heads, 'head')}"


def _decoder(facts: ModelFacts) -> str:
    """Return the shape of a chain of layers: each kind of mixer and of experts, and where it is found."""
    mixers = Counter(_mixer(block.mixer) for block in facts.blocks if block.mixer)
    number = len(facts.blocks)
    parts = [what + ("" if many == number else f" in {many} layers") for what, many in mixers.items()]
    if facts.experts:
        parts.append(f"{_experts(facts.experts)}, {_where(facts.expert_layers, number)}")
    return f"{_number(number, 'layer')} of hidden size {facts.hidden_size}, {', '.join(parts)}"


def _layers(facts: ModelFacts) -> str:
    heads = _number(facts.num_attention_heads, "head")
    return f"{_number(len(facts.blocks), 'layer')} of hidden size {facts.hidden_size} and {heads}"


def _mixer(mixer: object) -> str:
    """Return a kind of mixer with its sizes."""
    match mixer:
        case Attention(num_heads=heads, num_kv_heads=shared):
            return f"attention of {_number(heads, 'head')} ({shared} for keys and values)"
        case LatentAttention(num_heads=heads, q_lora_rank=queries, kv_lora_rank=rank):
            ranks = f"ranks {queries} for queries and {rank}" if queries else f"rank {rank}"
            return f"latent attention of {_number(heads, 'head')} ({ranks} for keys and values)"
        case LinearAttention(num_value_heads=heads):
            return f"linear attention of {_number(heads, 'head')}"
        case StateSpace(num_heads=heads, state_size=size):
            return f"state spaces of {_number(heads, 'head')} (state size {size})"
    raise AssertionError(f"{mixer} has no words")


def _experts(experts: Experts) -> str:
    """Return a mixture with its sizes."""
    text = f"a mixture of {experts.num_experts} experts, {experts.experts_per_token} per token"
    text += f", expert width {experts.expert_size}"
    if experts.num_shared:
        text += f", {experts.num_shared} shared of width {experts.shared_size // experts.num_shared}"
    return text


def _where(layers: tuple[int, ...], number: int) -> str:
    """Return in which of `number` layers the experts are."""
    if len(layers) == number:
        return "in every layer"
    first = layers[0]
    if layers == tuple(range(first, number)):
        return f"in every layer but the first {first}" if first > 1 else "in every layer but the first"
    step = layers[1] - first if len(layers) > 1 else 0
    if step and layers == tuple(range(step - 1, number, step)):
        return f"in every {step}{'nd' if step == 2 else 'rd' if step == 3 else 'th'} layer"
    return f"in {len(layers)} layers"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
