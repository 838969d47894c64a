"""Plan files: self-contained, versioned, digested."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.domain.plan import Plan, Stage, Strategy
from planner.domain.prediction import Certificate, Prediction, StagePrediction
from planner.errors import SpecError
from planner.loader import dump_yaml
from planner.specs.cluster import read_cluster
from planner.specs.job import read_job
from planner.specs.model import model_from_record, read_model
from planner.specs.plan import digest, plan_record, read_plan

CLUSTER = read_cluster("2x8:h100-sxm-80gb")
MODEL = model_from_record(
    {
        "name": "tiny",
        "family": "gpt2",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "vocab_size": 512,
        "max_position_embeddings": 1024,
    },
    "tiny",
)
JOB = read_job(None, {"global_batch": 8, "constraints": ("group h100 <= 16",)}, MODEL, CLUSTER)[0]
STRATEGY = Strategy(degrees=(("tp", 4), ("cp", 2)), sequence_parallel=True)
PLAN = Plan(
    stages=(
        Stage(group="h100-sxm-80gb", first_layer=0, last_layer=1, strategy=STRATEGY, recompute="selective"),
        Stage(group="h100-sxm-80gb", first_layer=2, last_layer=3, strategy=STRATEGY, num_recomputed=1),
    ),
    schedule="1f1b",
    num_replicas=1,
    micro_batch=1,
    num_microbatches=8,
    zero_stage=1,
)
CERTIFICATE = Certificate(objective=2.0, lower_bound=1.9, replay_lower_bound=1.8)
STAGE = StagePrediction(
    forward=0.1,
    backward=0.2,
    sync=0.0,
    memory=(("weights", 1e9),),
    peaks=(("forward_backward", 1e9),),
    memory_limit=2e9,
    device_memory=3e9,
    in_flight=1,
)
PREDICTION = Prediction(
    step_time=2.1,
    tokens_per_second=1e4,
    samples_per_second=4.0,
    num_devices=16,
    model_flops_utilization=0.4,
    bubble_fraction=0.1,
    time=(),
    stages=(STAGE, STAGE),
)


def record() -> dict[str, Any]:
    """Return a plan file."""
    return plan_record(PLAN, CLUSTER, MODEL, JOB, CERTIFICATE, PREDICTION)


def message(tmp_path: Path, value: object) -> str:
    """Return with which words a plan file is refused."""
    path = tmp_path / "plan.yaml"
    path.write_text(dump_yaml(value))
    with pytest.raises(SpecError) as caught:
        read_plan(str(path))
    return str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_round_trip(tmp_path: Path, suffix: str, wrapped: bool) -> None:
    """A plan file holds all it was made of; sorted keys and the command's JSON around it make no difference."""
    value: dict[str, Any] = {"plan": record(), "status": "optimal"} if wrapped else record()
    path = tmp_path / f"plan.{suffix}"
    path.write_text(json.dumps(value, sort_keys=True) if suffix == "json" else dump_yaml(value))
    found = read_plan(str(path))
    assert (found.plan, found.cluster, found.model, found.job) == (PLAN, CLUSTER, MODEL, JOB)
    assert found.certificate == CERTIFICATE
    assert found.figures is not None
    assert (found.figures.step_time, found.figures.peak_memory) == (2.1, (1e9, 1e9))
    assert found.made_by.startswith("planner ")
    assert (found.format_version, found.edited) == ("1.0", ())


def test_how_context_ranks_exchange_is_written_where_it_is_unusual(tmp_path: Path) -> None:
    """The all-to-all is recorded and read again; the ring, which is usual, is left out."""
    assert all("cp_comm_type" not in stage for stage in record()["plan"]["stages"])
    stages = tuple(replace(stage, strategy=replace(STRATEGY, cp_comm_type="a2a")) for stage in PLAN.stages)
    written = plan_record(replace(PLAN, stages=stages), CLUSTER, MODEL, JOB)
    assert all(stage["cp_comm_type"] == "a2a" for stage in written["plan"]["stages"])
    path = tmp_path / "plan.yaml"
    path.write_text(dump_yaml(written))
    assert read_plan(str(path)).plan.stages == stages
    written["plan"]["stages"][0]["cp_comm_type"] = "ring"
    assert "plan.stages[0].cp_comm_type: should be" in message(tmp_path, written)


def test_chunks_stand_beside_the_first_layers(tmp_path: Path) -> None:
    """A plan with virtual stages says so and lists the chunks of each stage; others have neither key."""
    stages = tuple(
        replace(stage, first_layer=at, last_layer=at, later_chunks=((at + 2, at + 2),))
        for at, stage in enumerate(PLAN.stages)
    )
    chunked = replace(PLAN, stages=stages, virtual_stages=2, schedule="interleaved")
    value = plan_record(chunked, CLUSTER, MODEL, JOB)
    assert value["plan"]["virtual_stages"] == 2
    assert [stage["layers"] for stage in value["plan"]["stages"]] == [[0, 0], [1, 1]]
    assert [stage["chunks"] for stage in value["plan"]["stages"]] == [[[0, 0], [2, 2]], [[1, 1], [3, 3]]]
    path = tmp_path / "plan.yaml"
    path.write_text(dump_yaml(value))
    assert read_plan(str(path)).plan == chunked
    plain = record()["plan"]
    assert "virtual_stages" not in plain
    assert not any("chunks" in stage for stage in plain["stages"])
    value["plan"]["stages"][0]["layers"] = [1, 1]
    assert "has layers [1, 1] and [0, 0] as its first chunk" in message(tmp_path, value)


def test_named_layouts_have_no_certificate(tmp_path: Path) -> None:
    """A plan that was not searched records no proof and no figures."""
    path = tmp_path / "plan.yaml"
    path.write_text(dump_yaml(plan_record(PLAN, CLUSTER, MODEL, JOB)))
    found = read_plan(str(path))
    assert (found.certificate, found.figures) == (None, None)


@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_a_newer_format_is_refused_before_its_keys(tmp_path: Path, version: str) -> None:
    """Only the version is complained of, with the remedy."""
    found = message(tmp_path, {**record(), "format_version": version, "new_key": 1})
    newest = "is newer than 1.0, the newest that this version reads; update the planner"
    assert found == f"plan.yaml:1 format_version: {version} {newest}"


def test_edited_parts_are_named(tmp_path: Path) -> None:
    """A part changed by hand is read, and named by its digest; overlapping layers are left to the checks."""
    value = record()
    value["job"]["global_batch"] = 16
    value["plan"]["stages"][1]["layers"] = [1, 9]
    path = tmp_path / "plan.yaml"
    path.write_text(dump_yaml(value))
    assert read_plan(str(path)).edited == ("plan", "job")


def test_structural_nonsense_is_refused_at_once(tmp_path: Path) -> None:
    """Missing keys, wrong types and problems of the embedded parts are reported together."""
    value = record()
    del value["plan"]["schedule"]
    value["plan"]["stages"][0]["layers"] = [3, 1]
    value["plan"]["stages"][1]["degrees"][0]["degree"] = 0
    value["plan"]["zero_stage"] = "one"
    value["cluster"]["groups"][0]["nodes"] = 0
    value["model"]["family"] = "gtp2"
    found = message(tmp_path, value)
    for words in (
        "plan.schedule: is missing",
        "plan.stages[0]: has layers [3, 1]; write [first, last]",
        "plan.stages[1].degrees[0].degree: should be at least 1, not 0",
        "plan.zero_stage: should be a whole number, not 'one'",
        "cluster.groups[0].nodes: should be at least 1",
        "did you mean gpt2",
    ):
        assert words in found


@pytest.mark.parametrize("key", ["format_version", "plan", "cluster", "model", "job", "made_by"])
def test_missing_parts(tmp_path: Path, key: str) -> None:
    """Each part of the envelope is demanded."""
    value = record()
    del value[key]
    assert f" {key}: is missing" in message(tmp_path, value)


JUNK: list[object] = [[1], "words", {"plan": 3}, {"plan": {"format_version": "1.0"}}, {"format_version": [1]}]


@pytest.mark.parametrize("junk", JUNK)
def test_junk(tmp_path: Path, junk: object) -> None:
    """What is no plan file is a problem and never a traceback."""
    assert message(tmp_path, junk)


def test_digest_does_not_depend_on_writing() -> None:
    """Order of keys and 80 for 80.0 are the same value."""
    assert digest({"a": 80, "b": [1.5]}) == digest({"b": [1.5], "a": 80.0})
    assert digest({"a": 80}) != digest({"a": 81})


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (read_plan, "groups: []", "is a cluster; name a plan here"),
        (read_cluster, "model_type: gpt2", "is a model; name a cluster here, as CLUSTER comes before MODEL"),
        (read_model, "format_version: '1.0'", "is a plan; name a model here, as CLUSTER comes before MODEL"),
    ],
)
def test_another_kind_of_file_is_named(
    tmp_path: Path, reader: Callable[[str], object], text: str, message: str
) -> None:
    """Swapped arguments are told in one sentence."""
    path = tmp_path / "x.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=message):
        reader(str(path))
