"""Which values of a configuration may be shown in a message."""

from __future__ import annotations

import re
from typing import Any

_SECRET = re.compile("key|token(?!izer|s\b|s[-_]|[-_]d)|secret|passw|passphrase|credential|auth|api|url", re.IGNORECASE)
"""Names of settings whose values are not shown."""
_ADDRESS = re.compile("://|@")
"""In values that may hold a user's name and password."""
LONGEST = 40
"""Characters of a value that are shown."""


def public(name: str, value: Any) -> str:
    """Return the value of the setting `name` for a message; ``another`` where it may be secret."""
    if isinstance(value, bool):
        return "on" if value else "off"
    text = str(value)
    if isinstance(value, int | float):
        return text
    return "another" if _SECRET.search(name) or _ADDRESS.search(text) else text[:LONGEST]
