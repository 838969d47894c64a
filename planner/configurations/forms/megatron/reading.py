"""Megatron-LM's configurations as people write them: launch scripts, lists of arguments, JSON lists, test YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from planner.configurations import launch
from planner.configurations.forms.megatron.arguments import UNKNOWN_FLAG, Reading, read_arguments
from planner.configurations.megatron.facts import SPLITS
from planner.configurations.megatron.flags import defaults, flags
from planner.configurations.nodes import Nodes, nodes, ranks_of
from planner.configurations.shell import UNKNOWN, Command, Script, Text, follow
from planner.configurations.shell.lexer import plain_words
from planner.domain.configuration import ERROR, Configuration, Setting
from planner.errors import SpecError
from planner.loader import Document, parse

OWN = (
    "--tensor-model-parallel-size",
    "--pipeline-model-parallel-size",
    "--use-distributed-optimizer",
    "--micro-batch-size",
    "--num-layers",
    "--max-position-embeddings",
    "--num-attention-heads",
)
"""Flags by which Megatron's arguments are known."""
FORM = "megatron"
UNQUOTED, TORN = "MG005", "MG006"
REQUIRED = ("micro_batch_size", "seq_length", "max_position_embeddings", "hidden_size", "num_attention_heads")
"""Keys that Megatron wants and has no default for."""
DEGREES = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
)
ENGINE = "--deepspeed"
"""Flag of forks whose layers DeepSpeed cuts into stages, by rules of its own."""
_PROGRAM = re.compile(r"(^|/)(pretrain|train|finetune|run)[A-Za-z0-9_]*\.py$")
_SCRIPT = re.compile(r"\bpretrain_[a-z0-9_]+\.py\b")
_OWN_PROGRAM = re.compile(r"(^|/)(pretrain_[a-z0-9_]+|train_rl)\.py$")
"""Programs of Megatron-LM; others may have flags and defaults of their own."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
LARGEST = 512 * 1024
"""Characters of a script that are read."""
_FEW = 2
"""Flags of its own from which a text is taken for Megatron's."""


def recognises(text: str, name: str) -> bool:
    """Return whether a text is a launch script or arguments of Megatron-LM."""
    if name.endswith((".toml", ".py", ".ini")):
        return False
    found = sum(bool(re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text)) for flag in OWN)
    return found >= _FEW or (found > 0 and bool(_SCRIPT.search(text)))


def read(text: str, name: str) -> Configuration:
    """Return what a text says.

    Raises:
        SpecError: it is no text, or holds no arguments of Megatron-LM.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    if len(text) > LARGEST:
        raise SpecError.of(name, f"is larger than {LARGEST // 1024} KiB; a launch script is a few KiB of text")
    if control := _CONTROL.search(text):
        line = text.count("\n", 0, control.start()) + 1
        raise SpecError.of(f"{name}:{line}", f"is not text: character {ord(control[0]):#04x} cannot stand in a script")
    begin = text.lstrip()[:1]
    first = next((line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")), "")
    if begin in {"[", "{"} or name.endswith((".yaml", ".yml", ".json")):
        return _from_document(parse(text, name))
    if first.startswith("-") and not text.startswith("#!"):
        reading = Reading(name)
        read_arguments(plain_words(Text.of(text)), reading)
        return _configuration(reading)
    return _from_script(text, name)


def _from_script(text: str, name: str) -> Configuration:
    """Return what the command says that starts the training in a script, else what the script has ready for one."""
    given = launch.allocation(text)
    script = follow(text, given.variables)
    reading = Reading(name, reasons=script.variables.reasons)
    found = _launch(script)
    if found is None:
        for value in [value for value in script.variables.values.values() if _SCRIPT.search(value.chars)]:
            script.run(value)
        found = _launch(script)
    command, begin = found or (_prepared(script), 0)
    if not command.words:
        message = "starts no training with Megatron-LM's arguments; give a launch script, or the arguments alone"
        raise SpecError.of(name, message)
    read_arguments(command.words[begin:], reading)
    if command.piped:
        _unquoted(reading)
    _torn(script, reading)
    reading.notes += script.notes if begin else (*script.notes, "the script starts nothing; its arguments are read")
    environment = launch.environment(script.environment(command), name)
    world = launch.world(command.words[:begin], given, script, name)
    started = nodes(text, given, script, _launcher) if begin else ()
    whole = begin > 0 and bool(_OWN_PROGRAM.search(command.words[begin - 1].chars))
    return _configuration(reading, environment, world, started, whole=whole)


def _torn(script: Script, reading: Reading) -> None:
    """Tell of lines that begin with a flag: the shell runs them as commands, for the line before lost its backslash."""
    for command in script.commands:
        name = command.words[0].chars.partition("=")[0] if command.words else ""
        if name in flags():
            message = (
                f"{name} begins a command of its own, which the shell cannot find, and the run goes without it and what"
                " follows; end the line before it with a backslash, and nothing behind that"
            )
            reading.find(TORN, ERROR, command.words[0].spot, name, message)


def _prepared(script: Script) -> Command:
    """Return the arguments in the variables of a script that others start, as one command."""
    listed = [*script.variables.arrays.values(), *(text.words() for text in script.variables.values.values())]
    kept_lists: list[list[Text]] = []
    met: set[tuple[int, int]] = set()
    for words in sorted(listed, key=len, reverse=True):
        spots = {word.spot for word in words if word.chars.partition("=")[0] in flags()}
        if spots and not spots & met:
            kept_lists.append(words)
            met |= spots
    return Command(words=tuple(word for words in kept_lists for word in words))


def _unquoted(reading: Reading) -> None:
    """Tell that a layout lost its second half to a pipe of the shell."""
    setting = reading.settings.get("pipeline_model_parallel_layout")
    if setting is None or "|" in str(setting.value):
        return
    spot = (setting.spot.line, setting.spot.column)
    last = max((one.spot.line, one.spot.column) for one in reading.settings.values())
    if spot == last:
        message = "the | of the layout ends the command here, for it is not quoted; write the layout in single quotes"
        reading.find(UNQUOTED, ERROR, spot, setting.name, message)


def _launch(script: Script) -> tuple[Command, int] | None:
    """Return the command that starts a training, and the index of its first argument; the surest of several."""
    best: tuple[int, bool, int, Command, int] | None = None
    for order, command in enumerate(script.commands):
        program = next((i + 1 for i, word in enumerate(command.words) if _PROGRAM.search(word.chars)), None)
        begin = program if program is not None else _first_flag(command.words)
        known = sum(word.chars.partition("=")[0].lstrip("\x01") in flags() for word in command.words[begin:])
        score = (known, command.sure, -order, command, begin)
        if known and (best is None or score[:3] > best[:3]):
            best = score
    return (best[3], best[4]) if best else None


def _launcher(script: Script) -> tuple[Text, ...]:
    """Return the words of the command that starts a training, up to its first argument."""
    found = _launch(script)
    return found[0].words[: found[1]] if found else ()


def _first_flag(words: Sequence[Text]) -> int:
    """Return the index of the first of Megatron's flags; launchers have flags of their own."""
    return next((i for i, word in enumerate(words) if word.chars.partition("=")[0] in flags()), len(words))


def _from_document(document: Document) -> Configuration:
    """Return what a JSON list of arguments says, or the ``MODEL_ARGS`` and ``ENV_VARS`` of Megatron's own tests."""
    reading = Reading(document.origin)
    value = document.value
    if isinstance(value, list):
        words = [Text.made(_word(item), (_line(document, (index,)), 1)) for index, item in enumerate(value)]
        read_arguments(words, reading)
        return _configuration(reading)
    arguments = value.get("MODEL_ARGS", value) if isinstance(value, dict) else None
    if not isinstance(arguments, dict) or not any(str(key).startswith("--") for key in arguments):
        message = "holds no arguments of Megatron-LM; write a list of arguments, or MODEL_ARGS with flags as its keys"
        raise SpecError.of(document.origin, message)
    base = ("MODEL_ARGS",) if arguments is not value else ()
    words = [word for key, item in arguments.items() for word in _pair(document, (*base, key), item)]
    read_arguments(words, reading)
    named = value.get("ENV_VARS") or {}
    variables = {
        str(key): Text.made(_word(item), (_line(document, ("ENV_VARS", key)), 1))
        for key, item in (named.items() if isinstance(named, dict) else ())
    }
    return _configuration(reading, launch.environment(variables, document.origin))


def _pair(document: Document, path: tuple[str | int, ...], item: Any) -> Iterable[Text]:
    """Yield the words of a flag and its value as YAML has them: true stands for a switch."""
    spot = (_line(document, path), 1)
    if not str(path[-1]).startswith("--"):
        return
    values = item if isinstance(item, list) else [item]
    flag = flags().get(str(path[-1]))
    if item is False and flag and flag.type == "switch":
        return
    yield Text.made(str(path[-1]), spot)
    if item is not True and item is not None:
        many = flag and flag.nargs not in {None, 0}
        for one in values:
            words = str(one).strip("[]").replace(",", " ").split() if many else [_word(one)]
            # Who starts the tests fills in ${NAME}.
            yield from (Text.made(UNKNOWN if "${" in word else word, spot) for word in words)


def _word(item: Any) -> str:
    return str(item)


def _line(document: Document, path: tuple[str | int, ...]) -> int:
    return document.lines().get(path, 0)


def _configuration(
    reading: Reading,
    environment: dict[str, Setting] | None = None,
    world: Setting | None = None,
    started: Nodes = (),
    *,
    whole: bool = True,
) -> Configuration:
    """Return what was read; what is not `whole` is completed by whoever starts it."""
    if not reading.settings and not reading.own and not any(one.code == UNKNOWN_FLAG for one in reading.findings):
        raise SpecError.of(reading.origin, "holds no arguments of Megatron-LM; write flags such as --num-layers 32")
    foreign = reading.of_a_fork or not whole
    return Configuration(
        form=FORM,
        origin=reading.origin,
        settings=reading.settings,
        defaults=defaults(),
        environment=environment or {},
        world=world or ranks_of(started, reading.origin),
        nodes=started,
        findings=reading.judged(foreign=foreign),
        doubtful=_doubtful(reading) if foreign else (),
        notes=reading.sentences(),
    )


def _doubtful(reading: Reading) -> tuple[str, ...]:
    """Return what is not written and a fork, or whoever starts the script, may give; degrees are none of it."""
    keys = {**dict.fromkeys(REQUIRED), **defaults()}
    with_own = {key for key, value in keys.items() if value is not None or key in REQUIRED}
    kept = () if ENGINE in reading.own else SPLITS
    return tuple(
        key
        for key in keys
        if key in with_own and key not in kept and key not in DEGREES and key not in reading.settings
    )
