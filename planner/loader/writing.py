"""Plain values to YAML text."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from planner.loader.words import scalar


def dump_yaml(value: object) -> str:
    """Return `value` (dicts, lists, tuples, text, numbers) as YAML in its own order, such that `load` reads it back."""
    import yaml

    text: str = yaml.dump(
        value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    return text.removesuffix("...\n")


@cache
def _dumper() -> Any:
    """Return the safe dumper, changed so that text is quoted wherever `scalar` or YAML 1.1 would misread it.

    Text of several lines stands as it is.
    """
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    def represent_text(dumper: Any, text: str) -> Any:
        try:
            plain = scalar(text) == text
        except ValueError:
            plain = False
        style = "|" if "\n" in text else None if plain else "'"
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    def represent_number(dumper: Any, number: float) -> Any:
        if not math.isfinite(number):
            raise AssertionError(f"{number} must not be written")
        text = repr(number)
        # YAML 1.1 sees a float only where there is a point.
        text = text if "." in text else text.replace("e", ".0e")
        return dumper.represent_scalar("tag:yaml.org,2002:float", text)

    dumper: Any = type("Dumper", (base,), {"ignore_aliases": lambda *_: True})
    dumper.add_representer(str, represent_text)
    dumper.add_representer(float, represent_number)
    return dumper
