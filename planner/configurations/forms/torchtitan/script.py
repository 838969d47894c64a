"""Launch scripts of torchtitan: which configuration they start from, and what they change on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from planner.configurations.forms.torchtitan.catalog import MODULE, TOML, Key, defaults, keys, recipes
from planner.configurations.forms.torchtitan.values import judged
from planner.configurations.launch import Allocation, allocation, environment, ranks
from planner.configurations.shell import MAYBE, Command, Script, Text, follow
from planner.domain.configuration import Configuration, Setting, Spot
from planner.errors import SpecError

PROGRAM = re.compile(r"(^torchtitan\.train$|torchtitan/train\.py$|(^|/)run_train\.sh$)")
STARTS = re.compile(r"\btorchtitan[./]train\b|\brun_train\.sh\b")
"""What a script of torchtitan's has in it."""
RUN_TRAIN_RANKS = 8
"""Ranks that run_train.sh starts where NGPU is not set."""
CHOICES = ("module", "config", "job.config_file")
"""Options that name the configuration to start from."""
_WORDS = {"true": True, "false": False}


def is_script(text: str, name: str) -> bool:
    """Return whether a text is a script that starts torchtitan."""
    return not name.endswith((".py", ".toml", ".yaml", ".yml", ".json")) and STARTS.search(text) is not None


def read_script(text: str, name: str) -> Configuration:
    """Return what a launch script says.

    Raises:
        SpecError: it does not start torchtitan.
    """
    given = allocation(text)
    script = follow(text, given.variables)
    found = _launch(script)
    if found is None:
        raise SpecError.of(name, "starts no training with torchtitan; give a script with `-m torchtitan.train`")
    command, begin = found
    variables = script.environment(command)
    written = dict(_options(command.words[begin:], name))
    for variable, key in (("MODULE", "module"), ("CONFIG", "config"), ("CONFIG_FILE", "job.config_file")):
        if variable in variables and key not in written and "run_train" in command.words[begin - 1].chars:
            spot = Spot(name, *variables[variable].spot)
            written[key] = Setting(name=variable, value=variables[variable].chars, spot=spot)
    version = TOML if "job.config_file" in written else MODULE
    settings = {key: _typed(one, keys(version).get(key)) for key, one in written.items() if key not in CHOICES}
    base, notes = _base({key: str(one.value) for key, one in written.items() if key in CHOICES}, settings, written)
    return Configuration(
        form="torchtitan",
        origin=name,
        version="0.2.2" if version == TOML else MODULE,
        settings=settings,
        defaults={**defaults(version), **base},
        environment=environment(variables, name),
        world=_world(command, begin, given, variables, name),
        findings=judged(settings, version),
        notes=(*script.notes, *notes),
    )


def _launch(script: Script) -> tuple[Command, int] | None:
    """Return the command that starts torchtitan, the surest first, and the index of its first option."""
    for command in sorted(script.commands, key=lambda one: not one.sure):
        for index, word in enumerate(command.words):
            if PROGRAM.search(word.chars.lstrip(MAYBE)):
                return command, index + 1
    return None


def _options(words: Sequence[Text], name: str) -> Iterator[tuple[str, Setting]]:
    """Yield (key, setting) of ``--key value``, ``--key=value`` and switches, as tyro reads them."""
    index = 0
    while index < len(words):
        word, index = words[index], index + 1
        chars = word.chars.lstrip(MAYBE)
        if not chars.startswith("--"):
            continue
        flag, equals, value = chars[2:].partition("=")
        key, spot = flag.replace("-", "_"), Spot(name, *word.spot)
        off = re.fullmatch(r"(.*\.)no_(.*)", key)
        after = words[index].chars if index < len(words) else "--"
        if equals:
            yield key, Setting(name=f"--{flag}", value=value, spot=spot)
        elif not after.startswith("--"):
            index += 1
            yield key, Setting(name=f"--{flag}", value=after, spot=spot)
        elif off and off[1] + off[2] in {*keys(TOML), *keys(MODULE)}:
            yield off[1] + off[2], Setting(name=f"--{flag}", value=False, spot=spot)
        else:
            yield key, Setting(name=f"--{flag}", value=True, spot=spot)


def _typed(setting: Setting, key: Key | None) -> Setting:
    """Return a setting with its text taken for what its key wants; left as it is where it is not that."""
    value: Any = setting.value
    if not isinstance(value, str) or key is None:
        return setting
    if key.kind == "whole" and re.fullmatch(r"-?[0-9]{1,12}", value):
        value = int(value)
    elif key.kind == "number" and re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,20})?(e-?[0-9]{1,3})?", value):
        value = float(value)
    elif key.kind == "switch":
        value = _WORDS.get(value.lower(), value)
    elif key.kind == "texts":
        value = value.split(",")
    elif value == "None" and key.may_be_empty:
        value = None
    return Setting(name=setting.name, value=value, spot=setting.spot)


def _base(
    chosen: dict[str, str], settings: dict[str, Setting], written: dict[str, Setting]
) -> tuple[dict[str, Any], list[str]]:
    """Return what the configuration to start from says, and notes; its flavor is added to `settings`."""
    recipe = recipes().get(chosen.get("config", ""))
    if recipe is not None and chosen.get("module") == recipe.model:
        flavor = Setting(name="--config", value=recipe.flavor, spot=written["config"].spot)
        settings.setdefault("model.flavor", flavor)
        return {"model.name": recipe.model, **recipe.values}, []
    if "job.config_file" in chosen:
        return {}, [f"what {chosen['job.config_file']} sets is not in this script; check that file too"]
    if chosen:
        what = f"{chosen.get('config', 'the configuration')} of {chosen.get('module', 'its module')}"
        return {}, [f"what {what} sets is not in this script; check that module too"]
    return {}, ["the script names no configuration; torchtitan's defaults are taken"]


def _world(command: Command, begin: int, given: Allocation, variables: dict[str, Text], name: str) -> Setting | None:
    """Return the number of ranks that the launcher starts."""
    program = command.words[begin - 1]
    if "run_train" in program.chars:
        number = variables.get("NGPU")
        if number is None:
            return Setting(name="NGPU", value=RUN_TRAIN_RANKS, spot=Spot(name, *program.spot))
        found = (int(number.chars), number.spot) if re.fullmatch(r"[0-9]{1,7}", number.chars) else None
    else:
        found = ranks(command.words[: begin - 1], given) if begin > 1 else None
    if found is None or found[0] < 1:
        return None
    return Setting(name="world size", value=found[0], spot=Spot(name, *found[1]))
