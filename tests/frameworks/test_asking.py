"""The harness itself, without any framework: what is a judgement and what is not."""

import runpy
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frameworks import asking
from frameworks.asking import BrokenError, Validator

Server = dict[str, Any]


@pytest.fixture
def server() -> Server:
    """The names in serve.py, which runs in other environments than ours."""
    return runpy.run_path(str(asking.SERVER))


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment of no framework."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


def _driver(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> types.SimpleNamespace:
    return types.SimpleNamespace(answer=answer, REFUSALS=(ValueError, AssertionError, SystemExit))


def test_facts_are_handed_on(server: Server) -> None:
    answer = server["_answer"](_driver(lambda request: {"twice": 2 * request["world"]}), {"id": 1, "world": 4})
    assert answer == {"id": 1, "accepted": True, "message": "", "facts": {"twice": 8}}


def test_what_a_framework_raises_to_refuse_is_a_refusal_in_its_words(server: Server) -> None:
    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise ValueError("no such degree")

    answer = server["_answer"](_driver(refuse), {"id": 1})
    assert answer == {"id": 1, "accepted": False, "message": "ValueError: no such degree", "facts": {}}


def test_a_refusal_without_words_says_what_was_asked(server: Server) -> None:
    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError

    answer = server["_answer"](_driver(refuse), {"id": 1})
    assert answer["message"] == "AssertionError in refuse: raise AssertionError"


def test_a_framework_that_prints_and_leaves_refuses_with_what_it_printed(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def leave(_: dict[str, Any]) -> dict[str, Any]:
        print("use the other flag")  # noqa: T201 as a framework does
        sys.exit(2)

    answer = server["_answer"](_driver(leave), {"id": 1})
    assert (answer["accepted"], answer["message"]) == (False, "SystemExit: use the other flag")
    assert capsys.readouterr() == ("", "use the other flag\n")  # never among the answers


def test_whatever_else_breaks_is_no_judgement(server: Server) -> None:
    answer = server["_answer"](_driver(lambda request: {"world": request["world"]}), {"id": 1})
    assert "KeyError: 'world'" in answer["error"]
    assert "accepted" not in answer


def test_a_framework_that_cannot_be_imported_is_no_judgement(environment: Path) -> None:
    validator = Validator("kubernetes", environment, environment)
    with pytest.raises(BrokenError, match="No module named 'kubeflow_trainer_api'"):
        validator.ask(text="")
    validator.close()


def test_the_scripts_of_the_environments_name_what_they_cannot_make(environment: Path) -> None:
    script = asking.SERVER.parents[2] / "environments.sh"
    run = subprocess.run(
        [script, "colossalai"],
        env={"PLANNER_FRAMEWORKS": str(environment), "PATH": "/usr/bin:/bin", "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert "there is no environment colossalai; choose among: megatron" in run.stderr
    assert [path.name for path in environment.iterdir()] == ["bin"]
