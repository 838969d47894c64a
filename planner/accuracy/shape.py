"""From the dimensions that a published run gives to a chain of layers."""

from __future__ import annotations

from planner.accuracy.run import Run
from planner.domain.model import Model
from planner.layers import Embedding, Head, TransformerLayer

VOCABULARY = 51_200
"""[-] GPT-2's vocabulary as Megatron pads it, where a run does not say its own."""
EXACT = 0.01
"""[-] by which a number of parameters with decimals may differ from the count."""


def shape(run: Run) -> Model:
    """Return the model of `run`, whose layers, hidden, heads and sequence are known.

    Tables do not say whether the feed-forward block is gated and the embedding tied. The number of parameters tells
    the former, and where it is missing the width does (four times hidden is plain). Gated models rarely tie their
    embedding and plain ones do; a number of parameters with decimals that only fits otherwise says otherwise.
    """
    stated = (run.params_b or 0.0) * 1e9
    gated = run.ffn is not None and run.hidden is not None and run.ffn < 4 * run.hidden
    if stated:
        gated = min((False, True), key=lambda way: abs(_build(run, gated=way, tied=not way).parameters - stated))
    usual, other = (_build(run, gated=gated, tied=tied) for tied in (not gated, gated))
    exact = run.params_b is not None and not run.params_b.is_integer()
    if exact and abs(other.parameters / stated - 1) < EXACT < abs(usual.parameters / stated - 1):
        return other
    return usual


def _build(run: Run, *, gated: bool, tied: bool) -> Model:
    layers, hidden, heads, sequence = (value or 1 for value in (run.layers, run.hidden, run.heads, run.seq))
    vocabulary = run.vocab or VOCABULARY
    body = TransformerLayer(
        hidden=hidden,
        num_heads=heads,
        num_kv_heads=run.kv_heads or heads,
        head_dim=hidden // heads,
        ffn=run.ffn or 4 * hidden,
        gated=gated,
        norm_parameters=2 * hidden,
    )
    return Model(
        name="",
        family="",
        embedding=Embedding(hidden=hidden, vocabulary=vocabulary),
        body=body,
        head=Head(hidden=hidden, vocabulary=vocabulary, tied=tied, norm_parameters=hidden),
        num_layers=layers,
        hidden=hidden,
        max_sequence=sequence,
        tied=tied,
        spec=(),
    )
