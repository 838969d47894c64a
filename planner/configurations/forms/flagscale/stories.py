"""The stories of what the reader of FlagScale's YAML finds."""

from planner.configurations.by_reader import by_the_reader
from planner.domain.configuration import WARNING

RUNNER = "FlagScale, flagscale/runner/runner_train.py and utils.py at da4935e (2025-11-13)"
READING = (
    by_the_reader(
        "FS001",
        "Keys are arguments",
        "every key of system, model and data is an argument of FlagScale or Megatron-LM",
        "The runner writes each key as a flag, and the parser stops with `unrecognized arguments` on every rank. A key"
        " that is near no known one passes, for it may be one of yours.",
        source=RUNNER,
        severity=WARNING,
    ),
    by_the_reader(
        "FS002",
        "Values are of the argument's type",
        "numbers are whole numbers, and lists of numbers are lists",
        "argparse stops with `invalid int value`. Meshes and layer splits are YAML lists, [2, 1, 1, 4, 1].",
        source=RUNNER,
    ),
    by_the_reader(
        "FS003",
        "An argument stands once",
        "no argument is in two blocks with two values",
        "The runner flattens the blocks one after another, and the parser takes the last of each in silence.",
        source=RUNNER,
        severity=WARNING,
        caught=False,
    ),
)
