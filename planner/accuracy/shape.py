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
    """Return the model of `run`, whose layers, hidden and heads are known.

    Tables do not say whether the feed-forward block is gated and the embedding tied. The number of parameters tells
    the former, and where it is missing the width does (four times hidden is plain). Gated models rarely tie their
    embedding and plain ones do; a number of parameters with decimals that only fits otherwise says otherwise.
    """
    gated = run.ffn is not None and run.ffn < 4 * run.hidden
    if run.params_b:
        gated = min(
            (False, True), key=lambda way: abs(_build(run, gated=way, tied=not way).parameters - run.params_b * 1e9)
        )
    usual, other = (_build(run, gated=gated, tied=tied) for tied in (not gated, gated))
    stated = (run.params_b or 0.0) * 1e9
    exact = run.params_b is not None and run.params_b != int(run.params_b)
    if exact and abs(other.parameters / stated - 1) < EXACT < abs(usual.parameters / stated - 1):
        return other
    return usual


def _build(run: Run, *, gated: bool, tied: bool) -> Model:
    hidden, heads, layers = int(run.hidden), int(run.heads), int(run.layers)
    vocabulary = int(run.vocab or VOCABULARY)
    ffn = int(run.ffn or 4 * hidden)
    body = TransformerLayer(
        hidden=hidden,
        num_heads=heads,
        num_kv_heads=int(run.kv_heads or heads),
        head_dim=hidden // heads,
        ffn=ffn,
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
        max_sequence=int(run.seq),
        tied=tied,
        spec=(),
    )
