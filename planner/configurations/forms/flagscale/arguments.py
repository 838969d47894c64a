"""FlagScale's keys as its runner hands them to Megatron's parser: by Megatron's inner names, with its defaults."""

from __future__ import annotations

from dataclasses import replace

from planner.configurations.megatron.flags import FALSE, VALUE, defaults, flags
from planner.domain.configuration import Configuration, Setting


def parsed(configuration: Configuration) -> Configuration:
    """Return a configuration as the parser has it: true ones are switches, and false ones are not written at all.

    Rows of the vocabulary are not padded: meshes have unlike tensor degrees, and for which of them is not known.
    """
    settings: dict[str, Setting] = {}
    for key, setting in configuration.settings.items():
        flag = flags().get(flag_of(key))
        if flag is None:
            settings[key] = setting
        elif flag.kind == VALUE:
            settings[flag.dest] = setting
        elif setting.value is True:
            settings[flag.dest] = replace(setting, value=flag.kind != FALSE)
    usual = {**defaults(), "pad_vocab_size": False, **configuration.defaults}
    found = replace(configuration, settings=settings, defaults=usual)
    width = _width(found)
    if width and "ffn_hidden_size" not in settings:
        settings["ffn_hidden_size"] = replace(settings["multiple_of"], value=width)
    return found


def flag_of(key: str) -> str:
    """Return the flag that the runner makes of a key."""
    return "--" + key.replace("_", "-")


def _width(configuration: Configuration) -> int:
    """Return the feed-forward width that FlagScale rounds up to a multiple of ``multiple_of``; 0 where it does not."""
    hidden, multiple = configuration.number("hidden_size"), configuration.number("multiple_of")
    if not (hidden and multiple and configuration.on("swiglu")):
        return 0
    factor = configuration.get("hidden_dim_multiplier")
    wanted = int(int(4 * hidden * 2 / 3) * (factor if isinstance(factor, int | float) else 1))
    return -(-wanted // multiple) * multiple
