"""What is known of torchtitan: keys with their kinds and defaults, models by flavor, configurations to start from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pkgutil import get_data
from typing import Any

from planner.loader import load

TOML, MODULE = "0.2", "0.3"
"""Last version that reads TOML, and first that reads Python: the versions whose keys are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key of a configuration."""

    kind: str
    """``whole``, ``number``, ``text``, ``switch``, ``choice``, ``texts``, ``groups`` or ``any``."""
    default: Any = None
    of: tuple[str, ...] = ()
    """What a ``choice`` may be."""
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """A model that torchtitan knows by name."""

    model: str
    """``llama3``"""
    name: str
    """``8B``"""
    config: Mapping[str, Any]
    """Its ``config.json``, as Hugging Face would write it."""
    pipeline: bool
    """Whether it can be cut into stages."""
    context: bool
    """Whether context ranks can share it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A configuration of torchtitan's own, from which others start."""

    model: str
    flavor: str
    values: Mapping[str, Any]
    """Dotted keys that it sets."""
    converted: bool
    """Whether its matrix products are quantized."""


def release(version: str) -> str:
    """Return `TOML` or `MODULE`, by which a version's keys and models are known; the newest where none is given."""
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    return TOML if numbers and tuple(numbers) < (0, 3) else MODULE


@cache
def keys(version: str) -> Mapping[str, Key]:
    """Return the keys of a release, dotted."""
    rows: Mapping[str, Mapping[str, Any]] = _catalog()["keys"][release(version)]
    return {name: Key(**{**row, "of": tuple(row.get("of", ()))}) for name, row in rows.items()}


@cache
def defaults(version: str) -> Mapping[str, Any]:
    """Return what torchtitan takes for keys that are not written."""
    return {name: key.default for name, key in keys(version).items()}


def free_tables(version: str) -> tuple[str, ...]:
    """Return the tables whose keys are not checked."""
    return tuple(_catalog()["free"][release(version)])


def moved(key: str, version: str) -> str:
    """Return what became of a key of another version; empty if that is not known."""
    found: str = _catalog()["moved"][release(version)].get(key, "")
    return found


def models(version: str) -> tuple[str, ...]:
    """Return the names of the models of a release whose sizes are known."""
    return tuple(dict.fromkeys(flavor.model for flavor in flavors(version)))


@cache
def flavors(version: str) -> tuple[Flavor, ...]:
    """Return every flavor of a release."""
    return tuple(_flavors(release(version)))


def flavor(model: str, name: str, version: str) -> Flavor | None:
    """Return the flavor called `name` of a model, under any of its names; None if its sizes are not known."""
    row = _catalog()["models"].get(model)
    wanted = row["same"].get(name, name) if row else name
    return next((one for one in flavors(version) if (one.model, one.name) == (model, wanted)), None)


@cache
def recipes() -> Mapping[str, Recipe]:
    """Return the configurations of torchtitan's own, by the names of their functions."""
    return {
        name: Recipe(
            model=row["model"],
            flavor=row["flavor"],
            converted=row.get("converted", False),
            values={key: value for key, value in row.items() if "." in key},
        )
        for name, row in _catalog()["recipes"].items()
    }


def _flavors(version: str) -> Iterator[Flavor]:
    for model, row in _catalog()["models"].items():
        for name, sizes in row["flavors"].items():
            if version not in sizes.get("versions", (TOML, MODULE)):
                continue
            config = {"model_type": row["model_type"], **row["common"], **sizes}
            config.pop("versions", None)
            yield Flavor(
                model=model,
                name=name,
                config={"name": f"{model}-{name}", **config},
                pipeline=version in row["pipeline"],
                context=version in row["context"],
            )


@cache
def _catalog() -> Mapping[str, Any]:
    data = get_data("planner.catalog", "torchtitan.yaml")
    if data is None:
        raise AssertionError("torchtitan.yaml is part of the package")
    value: Mapping[str, Any] = load(data.decode(), "torchtitan.yaml").value
    return value
