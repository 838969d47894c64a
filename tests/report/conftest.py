"""A cluster of unlike groups and a small one, each with a model and a job."""

from __future__ import annotations

import pytest

import transcripts
from planner.domain.job import Job
from planner.specs.cluster import read_cluster
from planner.specs.model import read_model
from report.report_cases import Case

JOB = Job(global_batch=128, sequence=4096, precision="bf16", framework="megatron")


@pytest.fixture(scope="session")
def mixed() -> Case:
    """Three groups of unlike devices and a model of 126 layers."""
    specs = transcripts.ROOT
    return Case(
        read_cluster(str(specs / "cluster_specs/mixed-h100-a100-l40s.yaml")),
        read_model(str(specs / "model_specs/llama-3-405b.json")),
        JOB,
    )


@pytest.fixture(scope="session")
def small() -> Case:
    """Two nodes of eight H100 and a model of 32 layers."""
    model = read_model(str(transcripts.ROOT / "model_specs/llama-3-8b.json"))
    return Case(read_cluster("2x8:h100-sxm-80gb"), model, JOB)
