"""The stories of what the reader of Megatron-LM's arguments finds."""

from __future__ import annotations

from planner.configurations.by_reader import by_the_reader
from planner.domain.configuration import WARNING

SOURCE = "NVIDIA/Megatron-LM, megatron/training/arguments.py, parse_args (allow_abbrev=False), core 0.19.2"

READING = (
    by_the_reader(
        "MG001",
        "Flags are known",
        "every --flag is one that Megatron-LM's parser knows, in core 0.19.2",
        "The parser stops with `unrecognized arguments` on every rank, after the nodes were allocated and the"
        " container was pulled. It takes no abbreviations, and its flags have hyphens. A flag of a fork or of your own"
        " extra_args_provider is fine, so an unknown flag that is near no known one is only a warning.",
        source=SOURCE,
    ),
    by_the_reader(
        "MG002",
        "Values are of the flag's type",
        "numbers are numbers, choices are among the choices, every flag has as many values as it takes",
        "argparse stops with `invalid int value` or `invalid choice`. A switch takes no value: `--bf16 true` leaves a"
        " word `true` that belongs to nothing.",
        source=SOURCE,
    ),
    by_the_reader(
        "MG003",
        "A flag is given once",
        "no flag is repeated with another value",
        "argparse takes the last one and says nothing. In scripts that append to an array of arguments the earlier"
        " value is the one that a reader sees.",
        source=SOURCE,
        severity=WARNING,
        caught=False,
    ),
    by_the_reader(
        "MG004",
        "Every word belongs to a flag",
        "no word stands alone among the arguments",
        "The parser knows no positional arguments and stops with `unrecognized arguments`. Usual causes: a value with"
        ' blanks from an array that is expanded without quotes (write "${ARGS[@]}"), a value behind a switch, a dash'
        " that a word processor made long.",
        source=SOURCE,
    ),
    by_the_reader(
        "MG005",
        "Layouts are quoted in scripts",
        "--pipeline-model-parallel-layout stands in single quotes in a shell script",
        "Unquoted, | makes a pipe of the shell: Megatron gets the layout up to it and loses all later arguments, and"
        " the rest is run as a command. * and parentheses are the shell's too.",
        source="POSIX.1-2017, Shell Command Language, 2.9.2 Pipelines",
    ),
    by_the_reader(
        "MG006",
        "No line of a script begins with a flag",
        "lines that go on end with a backslash, and nothing behind it",
        "A backslash that is lost, or has a blank behind it, ends the command: Megatron starts without the arguments"
        " below, often with its defaults, and the shell looks for a program of the flag's name.",
        source="POSIX.1-2017, Shell Command Language, 2.2.1 Escape Character",
        caught=False,
    ),
)
