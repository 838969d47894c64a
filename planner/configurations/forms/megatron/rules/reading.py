"""Rules that the reader itself applies; they stand here for their stories."""

from __future__ import annotations

from collections.abc import Iterable

from planner.configurations.base import Complaint
from planner.configurations.forms.megatron.facts import Facts
from planner.configurations.forms.megatron.rules.base import rule
from planner.domain.configuration import WARNING

SOURCE = "NVIDIA/Megatron-LM, megatron/training/arguments.py, parse_args (allow_abbrev=False), core 0.19.2"


def _by_the_reader(_: Facts) -> Iterable[Complaint]:
    """Find nothing more than the reader has found."""
    return ()


READING = (
    rule(
        "MG001",
        "Flags are known",
        "every --flag is one that Megatron-LM's parser knows, in core 0.19.2",
        _by_the_reader,
        "The parser stops with `unrecognized arguments` on every rank, after the nodes were allocated and the"
        " container was pulled. It takes no abbreviations, and its flags have hyphens. A flag of a fork or of your own"
        " extra_args_provider is fine, so an unknown flag that is near no known one is only a warning.",
        source=SOURCE,
    ),
    rule(
        "MG002",
        "Values are of the flag's type",
        "numbers are numbers, choices are among the choices, every flag has as many values as it takes",
        _by_the_reader,
        "argparse stops with `invalid int value` or `invalid choice`. A switch takes no value: `--bf16 true` leaves a"
        " word `true` that belongs to nothing.",
        source=SOURCE,
    ),
    rule(
        "MG003",
        "A flag is given once",
        "no flag is repeated with another value",
        _by_the_reader,
        "argparse takes the last one and says nothing. In scripts that append to an array of arguments the earlier"
        " value is the one that a reader sees.",
        source=SOURCE,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG004",
        "Every word belongs to a flag",
        "no word stands alone among the arguments",
        _by_the_reader,
        "The parser knows no positional arguments and stops with `unrecognized arguments`. Usual causes: a value with"
        ' blanks from an array that is expanded without quotes (write "${ARGS[@]}"), a value behind a switch, a dash'
        " that a word processor made long.",
        source=SOURCE,
    ),
    rule(
        "MG005",
        "Layouts are quoted in scripts",
        "--pipeline-model-parallel-layout stands in single quotes in a shell script",
        _by_the_reader,
        "Unquoted, | makes a pipe of the shell: Megatron gets the layout up to it and loses all later arguments, and"
        " the rest is run as a command. * and parentheses are the shell's too.",
        source="POSIX.1-2017, Shell Command Language, 2.9.2 Pipelines",
    ),
)
