"""The text of ``--pipeline-model-parallel-layout``: ``Et*3|(tt|)*4,tL``.

E is the embedding, t a decoder layer, m a layer of multi-token prediction, L the loss, ``|`` ends a stage; ``x*n`` and
``(...)*n`` repeat, and commas are only for the eye. Stage i of the text is held by pipeline rank i mod PP.
Source: NVIDIA/Megatron-LM, megatron/core/transformer/pipeline_parallel_layer_layout.py, core 0.19.2.
"""

from __future__ import annotations

import re

LETTERS = "EtmL"
MOST = 100_000
"""Characters of a layout that is written out; more would be a mistake."""
_GROUP = re.compile(r"\(([^)]+)\)\*(\d{1,6})")
_TIMES = re.compile(r"(.)\*(\d{1,6})")


def written_out(text: str) -> tuple[str, ...] | str:
    """Return the layers of every stage, as in ``("Ett", "tL")``, or what is wrong with the text."""
    text = text.replace(",", "")
    for pattern in (_GROUP, _TIMES):
        size = sum(len(match[1]) * int(match[2]) for match in pattern.finditer(text))
        if size > MOST:
            return f"repeats to more than {MOST:,} characters"
        text = pattern.sub(lambda match: match[1] * int(match[2]), text)
    wrong = next((char for char in text if char not in LETTERS + "|"), None)
    if wrong is None:
        return tuple(text.split("|"))
    if wrong in "()":
        return "has a bracket that does not repeat; write (...)*n, and no brackets inside of brackets"
    return (
        f"has the character {wrong!r}; the layers are E (embedding), t (decoder), m (multi-token prediction), L (loss)"
    )


def text_of(chunks: tuple[tuple[int, ...], ...]) -> str:
    """Return the layout of `chunks`, the layers of each chunk of each stage, with nothing that a shell would expand."""
    flat = [stage[number] for number in range(len(chunks[0])) for stage in chunks]
    parts = ["t" * size for size in flat]
    parts[0] = "E" + parts[0]
    parts[-1] += "L"
    return "|".join(parts)
