import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from frameworks.asking import Validator


def _environment(name: str) -> Path:
    folder = os.environ.get("PLANNER_FRAMEWORKS")
    return (Path(folder) if folder else Path.home() / ".cache" / "planner-frameworks") / name


@pytest.fixture(scope="session")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Validator]]:
    """The validator of a framework by name, that is by the name of its driver; started once, whoever asks."""
    started: dict[str, Validator] = {}

    def named(name: str) -> Validator:
        environment = _environment(name)
        if not (environment / ".made").exists():
            pytest.skip(f"{name} is not installed: tests/frameworks/environments.sh {name} makes its environment")
        if name not in started:
            started[name] = Validator(name, environment, tmp_path_factory.mktemp(name))
        return started[name]

    yield named
    for each in started.values():
        each.close()
