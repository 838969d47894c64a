"""The stories of what the reader of overrides finds."""

from planner.configurations.by_reader import by_the_reader
from planner.domain.configuration import WARNING

HYDRA = "NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/training/utils/omegaconf_utils.py at 067f987 (2026-08-22)"
READING = (
    by_the_reader(
        "MB001",
        "Keys are fields of the configuration",
        "every key stands in a section of ConfigContainer, and is one of its fields",
        "Hydra refuses a key that the configuration has not. The rules know only part of the fields, so a key in a"
        " known section that is near no known one passes, and one that is near is a warning.",
        source=HYDRA,
    ),
    by_the_reader(
        "MB002",
        "Values are of the field's type",
        "numbers are numbers, switches are true or false, choices are among the choices",
        "A value of another type is refused when the configuration is built, or taken as text that is compared with"
        " nothing. $NAME in a list of overrides is left open.",
        source=HYDRA,
    ),
    by_the_reader(
        "MB003",
        "A key is given once",
        "no override is repeated with another value, or contradicts an option",
        "The last override counts, and overrides win over options such as -gb wherever they stand.",
        source="NVIDIA-NeMo/Megatron-Bridge, scripts/training/run_recipe.py at 067f987 (2026-08-22)",
        severity=WARNING,
        caught=False,
    ),
    by_the_reader(
        "MB004",
        "Layouts are quoted in scripts",
        "model.pipeline_model_parallel_layout stands in single quotes in a shell script",
        "Unquoted, | makes a pipe of the shell: the recipe gets the layout up to it and loses all later overrides.",
        source="POSIX.1-2017, Shell Command Language, 2.9.2 Pipelines",
    ),
)
