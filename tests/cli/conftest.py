"""The command line with a pipeline of known answers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import planner
import transcripts
from cli.stub_pipeline import Pipeline, Planner
from planner.cli import app


@pytest.fixture
def pipeline(monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """Put a pipeline of known answers in the place of the real one."""
    stub = Pipeline()
    monkeypatch.setitem(sys.modules, "planner.pipeline", stub)
    monkeypatch.setattr(planner, "pipeline", stub, raising=False)
    return stub


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planner:
    """Return a function that runs the command line in a scratch folder that looks like the repository."""
    monkeypatch.chdir(transcripts.scratch(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")

    def planner_(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(app, arguments, input=stdin)

    return planner_


@pytest.fixture
def plan_file(run: Planner, pipeline: Pipeline) -> str:
    """Return the name of a plan file."""
    assert run("plan", "1x8:h100-sxm-80gb", "model_specs/llama-3-8b.json", "-o", "plan.yaml").exit_code == 0
    pipeline.jobs.clear()
    return "plan.yaml"
