"""TT0##: whether keys, values, version and model are known."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.torchtitan.catalog import MODULE, flavor, flavors, models
from planner.configurations.forms.torchtitan.degrees import FLAVOR, is_old
from planner.configurations.forms.torchtitan.values import UNKNOWN, WRONG
from planner.domain.configuration import Configuration
from planner.specs.problems import nearest


def _found_by_reading(_configuration: Configuration) -> Iterator[Complaint]:
    """Yield nothing: the reader has found it."""
    yield from ()


def _is_toml(configuration: Configuration) -> bool:
    return "job.config_file" in configuration.defaults


def _other_version(configuration: Configuration) -> Iterator[Complaint]:
    version = configuration.version
    if _is_toml(configuration) and not is_old(configuration):
        what = f"is TOML, which torchtitan reads up to 0.2.2, not {version}"
        yield "", f"{what}; `planner export --to torchtitan` writes the Python module that 0.3 takes instead"
    if not _is_toml(configuration) and is_old(configuration):
        what = f"is Python, which torchtitan reads from 0.3 on, not {version}"
        yield "", f"{what}; `planner export --to torchtitan-0.2` writes the TOML that 0.2 takes instead"


def _unknown_flavor(configuration: Configuration) -> Iterator[Complaint]:
    model, name = configuration.get("model.name"), configuration.get(FLAVOR)
    version = configuration.version or MODULE
    if not isinstance(model, str) or not isinstance(name, str) or model not in models(version):
        return
    if flavor(model, name, version) is None:
        known = [one.name for one in flavors(version) if one.model == model]
        yield FLAVOR, f"torchtitan {version} has no {model} of flavor {name}{nearest(name, known)}"


RULES = (
    Rule(
        code=UNKNOWN,
        name="Keys are known",
        summary="every key is one of torchtitan's, of the version that reads the file",
        why=(
            "In TOML an unknown key stops the start with ValueError: Invalid field names. In a Python module an"
            " unknown attribute of a configuration with slots stops it with AttributeError. Keys moved with 0.3,"
            " which has no expert_tensor_parallel_degree and no [activation_checkpoint] table."
        ),
        source=(
            "torchtitan/config/manager.py at v0.2.2 (_dict_to_dataclass); slots of torchtitan/config/configs.py, v0.3.0"
        ),
        check=_found_by_reading,
    ),
    Rule(
        code=WRONG,
        name="Values are of their kind",
        summary="numbers are numbers, switches are true or false, choices are among those that exist",
        why=(
            "torchtitan does not check the kinds of what TOML or Python assigns; it fails later, where the value is"
            " used, or takes a text for true."
        ),
        source="torchtitan/config/job_config.py at v0.2.2, torchtitan/config/configs.py at v0.3.0: the dataclasses",
        check=_found_by_reading,
        caught=False,
    ),
    Rule(
        code="TT003",
        name="The version reads this kind of file",
        summary="TOML up to 0.2.2, a Python module with a configuration function from 0.3 on",
        why=(
            "0.3.0 dropped TOML: --job.config_file is an unknown option there, and --module and --config name a"
            " Python function. The other way round, 0.2 has neither of these options."
        ),
        source="torchtitan/config/manager.py at v0.2.2 and v0.3.0",
        check=_other_version,
    ),
    Rule(
        code="TT004",
        name="The model's flavor exists",
        summary="model.flavor, or the argument of model_registry, is one of the model's",
        why="An unknown flavor stops the start with a KeyError; flavors were added and renamed with 0.3.",
        source="torchtitan/models/*/__init__.py at v0.2.2 and v0.3.0",
        check=_unknown_flavor,
    ),
)
