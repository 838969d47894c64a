"""Overrides of a recipe of Megatron-Bridge as people write them: a list, or the script that runs the recipe."""

from __future__ import annotations

import re
from collections.abc import Sequence

from planner.configurations import launch
from planner.configurations.forms.bridge.keys import ALIEN, inner
from planner.configurations.forms.bridge.overrides import Reading, read_words
from planner.configurations.forms.bridge.recipes import known
from planner.configurations.nodes import Nodes, nodes, ranks_of
from planner.configurations.shell import Command, Script, Text, follow
from planner.configurations.shell.lexer import plain_words
from planner.domain.configuration import ERROR, Configuration, Setting, Spot
from planner.errors import SpecError

FORM = "megatron-bridge"
UNQUOTED = "MB004"
PROGRAM = "run_recipe.py"
LAYOUT = "model.pipeline_model_parallel_layout"
_NEMO = re.compile(r"\b(trainer|exp_manager)\.\w+=")
"""Overrides of NeMo, the predecessor, whose sections are others."""
_OWN = re.compile(r"(?<![\w.])(model|train|ddp|dataset|dist|comm_overlap)\.[a-z_0-9]+=")


def recognises(text: str, name: str) -> bool:
    """Return whether a text runs a recipe, or is a list of overrides."""
    if name.endswith((".py", ".yaml", ".yml", ".json", ".toml")):
        return False
    return bool(re.search(r"\brun_recipe\.py\b", text)) or (len(_OWN.findall(text)) > 1 and not _NEMO.search(text))


def read(text: str, name: str) -> Configuration:
    """Return what a text says, under Megatron-LM's inner names where a key has one.

    Raises:
        SpecError: it has no override.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    given = launch.allocation(text)
    script = follow(text, given.variables)
    command, begin = _launch(script)
    if command is None:
        reading = Reading(name)
        read_words(plain_words(Text.of(text)), reading)
        return _configuration(reading)
    reading = Reading(name, reasons=script.variables.reasons, notes=list(script.notes))
    read_words(command.words[begin:], reading)
    if command.piped:
        _unquoted(reading, command.words[-1])
    environment = launch.environment(script.environment(command), name)
    started = nodes(text, given, script, _launcher)
    world = launch.world(command.words[:begin], given, script, name)
    return _configuration(reading, environment, world, started)


def _launch(script: Script) -> tuple[Command | None, int]:
    """Return the command that runs a recipe, the surest of several, and the index of its first argument."""
    found = _running(script.commands)
    if not found:
        for value in [value for value in script.variables.values.values() if PROGRAM in value.chars]:
            script.run(value)
        found = _running(script.commands)
    return max(found, key=lambda one: one[0].sure, default=(None, 0))


def _launcher(script: Script) -> tuple[Text, ...]:
    """Return the words of the command that runs a recipe, up to its first argument."""
    command, begin = _launch(script)
    return command.words[:begin] if command else ()


def _running(commands: Sequence[Command]) -> list[tuple[Command, int]]:
    return [
        (command, index + 1)
        for command in commands
        for index, word in enumerate(command.words)
        if word.chars.endswith(PROGRAM)
    ]


def _unquoted(reading: Reading, last: Text) -> None:
    """Tell that a layout lost its second half to a pipe of the shell."""
    if last.chars.startswith(f"{LAYOUT}=") and "|" not in last.chars:
        message = "the | of the layout ends the command here, for it is not quoted; write the layout in single quotes"
        reading.find(UNQUOTED, ERROR, last.spot, LAYOUT, message)


def _configuration(
    reading: Reading,
    environment: dict[str, Setting] | None = None,
    world: Setting | None = None,
    started: Nodes = (),
) -> Configuration:
    """Return what was read; a null is no setting, but takes away what the recipe says."""
    recipe = reading.recipe
    if not reading.written and recipe is None and not reading.findings:
        message = "has no override; write lines such as model.tensor_model_parallel_size=2"
        raise SpecError.of(reading.origin, message)
    usual, whole = known(recipe[0]) if recipe else ({}, True)
    if recipe and not whole:
        reading.notes.append(f"{recipe[0]} has settings of its own that are not known: rules about them are left out")
    usual = {**ALIEN, **usual}
    settings: dict[str, Setting] = {}
    for key, setting in reading.written.items():
        at, value = inner(key, setting.value)
        if value is None and key not in reading.opened:
            settings.pop(at, None)
            usual[at] = None
        else:
            settings[at] = Setting(name=setting.name, value=value, spot=setting.spot)
    groups = settings["num_query_groups"].value if "num_query_groups" in settings else usual.get("num_query_groups", 0)
    if groups != 0:
        usual["group_query_attention"] = groups is not None
    if recipe:
        settings["recipe"] = Setting(name="--recipe", value=recipe[0], spot=Spot(reading.origin, *recipe[1]))
    return Configuration(
        form=FORM,
        origin=reading.origin,
        settings=settings,
        defaults=usual,
        environment=environment or {},
        world=world or ranks_of(started, reading.origin),
        nodes=started,
        findings=tuple(reading.findings),
        notes=tuple(dict.fromkeys(reading.notes)),
    )
