"""Kubernetes manifests by the models of their APIs: Kubeflow's TrainJob, JobSet and the core kinds in them.

A request: `text` (YAML, one document or several). The models refuse wrong types and keys that are missing; an unknown
key they drop, and so would a server that is not strict: here that is refused, as `kubectl` does by default.
"""

from __future__ import annotations

import typing

import pydantic
import yaml
from kubeflow_trainer_api import models

KINDS = {
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): models.TrainerV1alpha1TrainJob,
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): models.TrainerV1alpha1TrainingRuntime,
    ("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime"): models.TrainerV1alpha1ClusterTrainingRuntime,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): models.JobsetV1alpha2JobSet,
    ("batch/v1", "Job"): models.IoK8sApiBatchV1Job,
    ("v1", "ConfigMap"): models.IoK8sApiCoreV1ConfigMap,
    ("v1", "Service"): models.IoK8sApiCoreV1Service,
}

REFUSALS = (ValueError, pydantic.ValidationError, yaml.YAMLError)


def answer(request: dict[str, typing.Any]) -> dict[str, object]:
    """The kinds of the documents, in order."""
    documents = [document for document in yaml.safe_load_all(request["text"]) if document is not None]
    if not documents:
        raise ValueError("no document")
    return {"kinds": [_kind(document) for document in documents]}


def _kind(document: dict[str, typing.Any]) -> str:
    kind = (document.get("apiVersion"), document.get("kind"))
    if kind not in KINDS:
        raise ValueError(f"no model of {kind[1]} in {kind[0]}")
    if lost := list(_lost(document, KINDS[kind].from_dict(document).to_dict(), "")):
        raise ValueError(f"unknown keys or values of another type: {', '.join(lost)}")
    return str(kind[1])


def _lost(given: typing.Any, kept: typing.Any, place: str) -> typing.Iterator[str]:
    """Places of what the model did not keep as it was given."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key not in kept and value is not None:
                yield f"{place}.{key}".strip(".")
            else:
                yield from _lost(value, kept.get(key), f"{place}.{key}".strip("."))
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for index, (value, same) in enumerate(zip(given, kept, strict=True)):
            yield from _lost(value, same, f"{place}[{index}]")
    elif given != kept:
        yield place
