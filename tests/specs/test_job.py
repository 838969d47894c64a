"""Jobs: defaults, options over files, and problems."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import SpecError
from planner.layers import Embedding
from planner.loader import Document
from planner.specs import catalog
from planner.specs.cluster import read_cluster
from planner.specs.job import job_from_document, job_record, read_job
from planner.specs.model import model_from_record

MODEL = model_from_record(
    {
        "name": "tiny",
        "family": "gpt2",
        "hidden_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "vocab_size": 512,
        "max_position_embeddings": 8192,
    },
    "tiny",
)
CLUSTER = read_cluster("2x8:h100-sxm-80gb")
OLD = read_cluster("2x8:h100-sxm-80gb+1x8:v100-sxm-32gb")
BLACKWELL = read_cluster("1x8:b200-sxm-180gb")
FILE = "global_batch_tokens: 4e6\nsequence_length: 1000\nprecision: fp16\nconstraints: [tp <= 8]\nfor: torchtitan\n"


def test_defaults_are_resolved_and_told() -> None:
    """4,096 tokens, 4 Mi / 4,096 = 1,024 samples, bf16, megatron: and each is told."""
    job, notes = read_job(None, {}, MODEL, CLUSTER)
    assert (job.sequence, job.global_batch, job.precision, job.framework) == (4096, 1024, "bf16", "megatron")
    assert (job.headroom, job.gap, job.time_limit, job.constraints) == (0.10, 0.01, 0.0, ())
    for word in ("sequence_length 4,096", "global_batch 1,024", "precision bf16", "framework megatron", "headroom 10%"):
        assert any(note.startswith(word) for note in notes)


def test_defaults_follow_model_and_cluster() -> None:
    """A model of 2,048 positions gets 2,048 samples, and a V100 gets fp16."""
    job, _ = read_job(None, {}, replace(MODEL, max_sequence=2048), OLD)
    assert (job.sequence, job.global_batch, job.precision) == (2048, 2048, "fp16")
    assert read_job(None, {}, replace(MODEL, max_sequence=0), CLUSTER)[0].sequence == 4096
    longest = replace(MODEL, embedding=Embedding(hidden=64, vocabulary=1000))
    assert read_job(None, {"sequence_length": 2**23}, longest, CLUSTER)[0].global_batch == 1


def test_options_replace_and_constraints_add(tmp_path: Path) -> None:
    """An option wins over the file; what was given is no default; constraints of both hold."""
    path = tmp_path / "job.yaml"
    path.write_text(FILE)
    job, notes = read_job(str(path), {}, MODEL, CLUSTER)
    assert (job.global_batch, job.target, job.framework) == (4000, "torchtitan", "torchtitan")
    options = {"global_batch": 7, "precision": None, "constraints": ("pp=2",), "framework": "megatron"}
    job, notes = read_job(str(path), options, MODEL, CLUSTER)
    assert (job.global_batch, job.precision, job.framework) == (7, "fp16", "megatron")
    assert [constraint.text for constraint in job.constraints] == ["tp <= 8", "pp=2"]
    assert not [note for note in notes if note.startswith(("global_batch", "precision", "framework"))]


def test_tokens_are_rounded_down_and_told() -> None:
    """4,000,000 tokens are 976 samples of 4,096 tokens."""
    job, notes = read_job(None, {"global_batch_tokens": 4_000_000}, MODEL, CLUSTER)
    assert job.global_batch == 976
    assert "global_batch 976 samples (3,997,696 tokens a step)" in notes


def test_the_usual_optimizer_is_none(tmp_path: Path) -> None:
    """Without a key, and with the word framework, which also takes back what a file says; no record has it."""
    path = tmp_path / "job.yaml"
    path.write_text("optimizer: adam_bf16_states\n")
    assert read_job(str(path), {}, MODEL, CLUSTER)[0].optimizer == catalog.optimizer("adam-bf16-states")
    for job in (
        read_job(None, {}, MODEL, CLUSTER)[0],
        read_job(str(path), {"optimizer": "framework"}, MODEL, CLUSTER)[0],
    ):
        assert job.optimizer is None
        assert "optimizer" not in job_record(job)


@pytest.mark.parametrize(
    ("device", "able"),
    [
        ("a100-sxm-80gb", "bf16 or fp16 or fp32"),
        ("mi300x-192gb", "bf16 or fp16 or fp32 or fp8"),
        ("h100-sxm-80gb", "bf16 or fp16 or fp32 or fp8"),
    ],
)
def test_a_device_without_the_rate_is_refused(device: str, able: str) -> None:
    """Neither NVFP4 nor blocks of MXFP8 before the devices that have fp4; Blackwell has both, asked for only."""
    for precision in ("mxfp8", "nvfp4"):
        with pytest.raises(SpecError) as caught:
            read_job(None, {"precision": precision}, MODEL, read_cluster(f"1x8:{device}"))
        (problem,) = caught.value.problems
        assert problem.message == f"{precision} is not what {device} (group {device}) can do; write {able}"
        assert read_job(None, {"precision": precision}, MODEL, BLACKWELL)[0].precision == precision
    assert read_job(None, {}, MODEL, BLACKWELL)[0].precision == "bf16"


def test_all_problems_at_once(tmp_path: Path) -> None:
    """Mistakes in the file stand at its lines, those of options at the options."""
    path = tmp_path / "job.yaml"
    lines = ("global_batch: 0", "framework: megatorn", "gapp: 3", "constraints:", "- tp <= 8", "- group x unused")
    path.write_text("\n".join((*lines, "precision: bf16")))
    options = {"headroom": 1.0, "time_limit_s": -1.0, "constraints": ("foo = 3",)}
    with pytest.raises(SpecError) as caught:
        read_job(str(path), options, MODEL, OLD)
    found = {problem.place.removeprefix(f"{tmp_path}/"): problem.message for problem in caught.value.problems}
    assert set(found) == {
        "job.yaml:1 global_batch",
        "job.yaml:2 framework",
        "job.yaml:3 gapp",
        "job.yaml:6 constraints[1]",
        "job.yaml:7 precision",
        "--headroom",
        "--time-limit",
        "--constraint",
    }
    assert "did you mean megatron" in found["job.yaml:2 framework"]
    assert "write fp16 or fp32" in found["job.yaml:7 precision"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("global_batch: 8\nglobal_batch_tokens: 9\n", "keep one"),
        ("precision: bf61\n", "did you mean bf16?"),
        ("precision: [bf16]\n", "should be text"),
        ("optimizer: lion\n", "no optimizer is called 'lion'; known: adam-fp32-states, "),
        ("headroom: 10%\n", "should be a number, not '10%'"),
        ("constraints: tp <= 8\n", "should be a list"),
        ("total_tokens: .inf\n", "not a finite number"),
        ("- 3\n", "mapping"),
    ],
)
def test_bad_jobs(tmp_path: Path, text: str, words: str) -> None:
    """Each mistake is told with what would be right."""
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_job(str(path), {}, MODEL, CLUSTER)
    assert words in str(caught.value)


def test_record_round_trip() -> None:
    """A resolved job is written and read without loss."""
    options = {"constraints": ["tp <= 8", "group h100 <= 8"], "total_tokens": 1e12, "for": "megatron"}
    options |= {"optimizer": "Adam 8bit", "precision": "fp8"}
    job, _ = read_job(None, options, MODEL, CLUSTER)
    assert job_from_document(Document(value=job_record(job), origin="job"), MODEL, CLUSTER) == job
