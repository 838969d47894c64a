"""The plan that is offered where an export refuses."""

from __future__ import annotations

from pathlib import Path

import builders
from planner.checks import refusals
from planner.loader import dump_yaml
from planner.pipeline import make_plan
from planner.pipeline.nearest import nearest_plan
from planner.specs.catalog import framework
from planner.specs.plan import plan_record, read_plan


def test_chunks_are_given_up_where_a_framework_has_none(tmp_path: Path) -> None:
    """The same stages in one run each; it is told by how much that is slower."""
    cluster = builders.cluster(
        builders.group("fast", nodes=1, per_node=2), builders.group("slow", nodes=1, per_node=2, speed=0.5)
    )
    model, job = builders.model(12), builders.job(8, "schedule = interleaved", "pp = 4", "tp = 1", gap=0.05)
    outcome = make_plan(cluster, model, job, references=False)
    path, runner = tmp_path / "plan.yaml", framework("flagscale")
    record = plan_record(outcome.plan, cluster, model, builders.job(8), outcome.certificate, outcome.prediction)
    path.write_text(dump_yaml(record), encoding="utf-8")
    assert outcome.plan.virtual_stages > 1
    assert refusals(outcome.plan, runner, cluster) == ("flagscale cannot run schedule interleaved (only 1f1b)",)
    text = nearest_plan(read_plan(str(path)), runner).replace("\u00a0", " ")
    assert text.startswith("the nearest that flagscale can run is pp 4, ")
    assert ", 1f1b, 4 devices: " in text
    assert "(+" in text
