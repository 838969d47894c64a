"""Pipeline layouts of Megatron-Core: which layers each stage holds, as in ``Et*6|t*10|t*10|t*6L``.

Grammar (megatron/core/transformer/pipeline_parallel_layer_layout.py, core 0.13 on): ``E`` embedding, ``t`` decoder
layer, ``m`` multi-token prediction, ``L`` loss; ``|`` parts stages, ``x*n`` and ``(...)*n`` repeat, commas are for the
eye. Stage i is chunk i // pp of rank i % pp.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

LETTERS = "EtmL"
MOST = 100_000
"""Letters of a layout that is expanded."""
_TOKEN = re.compile(r"\s*([EtmL|()]|\*\s*[0-9]{1,4})")


def expanded(text: str) -> tuple[str, ...]:
    """Return the letters of every stage.

    Raises:
        ValueError: it is no layout; with why.
    """
    stack: list[list[str]] = [[]]
    at, text = 0, text.replace(",", "").strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"has {text[at:].strip()[:1]!r}, which is none of {', '.join(LETTERS)}, |, *n and ( )")
        at, word = token.end(), token[1]
        if word == "(":
            stack.append([])
        elif word == ")":
            if len(stack) == 1:
                raise ValueError("closes a parenthesis that is not open")
            stack[-2].append("".join(stack.pop()))
        elif word.startswith("*"):
            if not stack[-1]:
                raise ValueError(f"has {word} behind nothing that could be repeated")
            stack[-1].append(_repeated(stack[-1].pop(), int(word[1:])))
        else:
            stack[-1].append(word)
    if len(stack) > 1:
        raise ValueError("opens a parenthesis that is not closed")
    return tuple("".join(stack[0]).split("|"))


def _repeated(text: str, count: int) -> str:
    if len(text) * count > MOST:
        raise ValueError(f"repeats more than {MOST:,} letters")
    return text * count


def written(stages: Iterable[Sequence[int]]) -> str:
    """Return the layout of stages with these layers in their chunks, without signs that a shell would expand.

    Args:
        stages: (stage, chunk) layers.

    """
    rows = [list(chunks) for chunks in stages]
    counts = [row[chunk] for chunk in range(len(rows[0])) for row in rows]
    letters = ["t" * count for count in counts]
    return "E" + "|".join(letters) + "L"
