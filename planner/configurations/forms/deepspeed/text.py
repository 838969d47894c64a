"""DeepSpeed's text: JSON that may have comments and commas too many, since DeepSpeed reads it with ``hjson``."""

from __future__ import annotations

import re

_PARTS = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|#[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'"(?:\\.|[^"\\\n])*"|,(?=\s*[}\]])')
_KEYS = re.compile(r'"(zero_optimization|train_micro_batch_size_per_gpu)"\s*:')
_OTHERS = ("train_batch_size", "gradient_accumulation_steps", "bf16", "fp16", "steps_per_print", "optimizer")


def plain(text: str) -> str:
    """Return `text` with blanks for its comments and for commas before a closing bracket; lines stay where they are."""
    without = _PARTS.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), text)
    return _COMMA.sub(lambda found: found[0] if found[0][0] == '"' else " ", without)


def recognises(text: str, _name: str) -> bool:
    """Return whether a text is JSON with keys that only DeepSpeed has."""
    body = plain(text).lstrip("\ufeff \t\r\n")
    if not body.startswith("{"):
        return False
    written = sum(f'"{key}"' in body for key in _OTHERS)
    return bool(_KEYS.search(body)) or ('"train_batch_size"' in body and written > 1)
