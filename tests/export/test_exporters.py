"""Every target writes the same of the same plan, and says no where it cannot say what the plan says."""

from __future__ import annotations

import csv
import io

import pytest

import builders
import transcripts
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import CannotExpress, SpecError
from planner.export import EXPORTERS, LAUNCHERS, Exporter, Launcher, target
from planner.pipeline.written import parts
from planner.specs.cluster import read_cluster
from planner.specs.plan import PlanFile

LAB = read_cluster(str(transcripts.ROOT / "cluster_specs" / "lab-3080-4090.yaml"))


def stage(group: str, first: int, last: int, tp: int = 2) -> Stage:
    return Stage(group=group, first_layer=first, last_layer=last, strategy=Strategy(degrees=(("tp", tp),)))


def pipelines(*stages: Stage, dp: int) -> Plan:
    return Plan(stages=stages, schedule="1f1b", num_replicas=dp, micro_batch=1, num_microbatches=4, zero_stage=1)


def plan_file(plan: Plan) -> PlanFile:
    return PlanFile(
        plan=plan,
        cluster=LAB,
        model=builders.model(4),
        job=builders.job(plan.global_batch),
        certificate=None,
        figures=None,
        made_by="a test",
        format_version="1.0",
        edited=(),
        origin="plan.yaml",
    )


MIXED = plan_file(pipelines(stage("rtx3080", 0, 1), stage("rtx4090", 2, 3), dp=2))
"""Two pipelines, each with a pair of cards of either kind."""
TORN = plan_file(pipelines(stage("rtx3080", 0, 1), stage("rtx3080", 2, 2), stage("rtx4090", 3, 3), dp=1))
"""A pipeline that goes from the first box to the second one and back."""


def main(name: str, file: PlanFile) -> str:
    """Return the part that is printed."""
    return parts(target(name), file)[0].text


@pytest.mark.parametrize("one", [*EXPORTERS, *LAUNCHERS], ids=lambda one: one.name)
def test_a_target_is_named(one: Exporter | Launcher) -> None:
    """It is found by its name, and says what it is."""
    assert target(one.name) is one
    assert one.summary


@pytest.mark.parametrize("name", ["rank-table", "hostfile"])
def test_a_target_is_steady(name: str) -> None:
    """It ends its text with a line, and writes the same again."""
    assert main(name, MIXED).endswith("\n")
    assert main(name, MIXED) == main(name, MIXED)


def test_an_unknown_target_is_refused_with_those_that_exist() -> None:
    """The message lists them."""
    with pytest.raises(SpecError, match=r"known: .*rank-table, hostfile"):
        target("nowhere")


def test_the_rank_table_has_a_row_for_each_rank() -> None:
    """As CSV and as data: the same columns and values."""
    found = target("rank-table")
    assert isinstance(found, Exporter)
    assert found.document is not None
    rows = list(csv.DictReader(io.StringIO(main("rank-table", MIXED))))
    document = found.document(MIXED)
    assert document["rank_order"] == "tp-cp-pp-dp"
    assert rows == [{key: str(value) for key, value in rank.items()} for rank in document["ranks"]]
    assert [(row["rank"], row["node"], row["device_index"], row["stage"]) for row in rows[2:5]] == [
        ("2", "lab-0", "2", "1"),
        ("3", "lab-0", "3", "1"),
        ("4", "lab-1", "0", "0"),
    ]


def test_a_hostfile_has_a_line_for_each_node() -> None:
    """Nodes in the order of their ranks, with as many slots as ranks; all else is comment."""
    assert main("hostfile", MIXED) == "# ranks in the order tp-cp-pp-dp\nlab-0 slots=4\nlab-1 slots=4\n"


def test_a_hostfile_tells_which_devices_are_meant() -> None:
    """With tp 1 ranks go to and fro between the kinds of cards; and who uses the last two alone says so."""
    text = main("hostfile", plan_file(pipelines(stage("rtx3080", 0, 1, tp=1), stage("rtx4090", 2, 3, tp=1), dp=4)))
    assert "# lab-0: ranks in their order on devices 0,2,1,3\nlab-0 slots=4\n" in text
    text = main("hostfile", plan_file(pipelines(stage("rtx4090", 0, 3), dp=1)))
    assert text.endswith("# lab-0: ranks in their order on devices 2,3\nlab-0 slots=2\n")


def test_a_hostfile_cannot_skip_ranks_of_a_node() -> None:
    """A box with the first and the last stage has none of the ranks between."""
    with pytest.raises(CannotExpress) as refused:
        main("hostfile", TORN)
    assert refused.value.reasons[0].startswith("lab-0 has ranks 1 and 4, but none between")
    assert len(refused.value.reasons) == 1
