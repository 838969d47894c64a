"""Plan files: a self-contained envelope of the decision, what it was made of, and what was found out about it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import planner
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.plan import Plan
from planner.domain.prediction import Certificate, Prediction
from planner.errors import Problem, SpecError
from planner.loader import Document, Path, parse
from planner.specs.cluster import cluster_from_document, cluster_record
from planner.specs.decision import decision, decision_record
from planner.specs.files import read_text
from planner.specs.job import job_from_document, job_record
from planner.specs.kinds import refuse_other_kind

if TYPE_CHECKING:
    from planner.specs.plan_record import PlanRecord

FORMAT_VERSION = "1.0"
"""Of the plan files that are written, and the newest that is read."""
PARTS = ("cluster", "model", "job")
"""What is embedded."""
DIGESTED = ("plan", "certificate", *PARTS)
"""What the proof is about, and the proof: each with its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a plan file says was predicted; only good for comparison."""

    step_time: float
    """[s]"""
    tokens_per_second: float
    model_flops_utilization: float
    bubble_fraction: float
    peak_memory: tuple[float, ...]
    """[bytes] of each stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan file, read."""

    plan: Plan
    cluster: Cluster
    model: Model
    job: Job
    certificate: Certificate | None
    """None if the file records none, as of a layout that was named and not searched."""
    figures: Figures | None
    """None if the file records none."""
    made_by: str
    format_version: str
    edited: tuple[str, ...]
    """Which parts differ from what was written, by their digests."""
    origin: str


def plan_record(
    plan: Plan,
    cluster: Cluster,
    model: Model,
    job: Job,
    certificate: Certificate | None = None,
    prediction: Prediction | None = None,
) -> dict[str, Any]:
    """Return the plan file as a plain record, to be written as YAML or JSON."""
    from planner.specs.model import model_record

    parts: dict[str, Any] = {
        "cluster": cluster_record(cluster),
        "model": dict(model_record(model)),
        "job": job_record(job),
    }
    record: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "made_by": f"planner {planner.__version__}",
        "plan": decision_record(plan),
    }
    if certificate:
        record["certificate"] = {
            "objective_s": float(certificate.objective),
            "lower_bound_s": float(certificate.lower_bound),
            "gap": float(certificate.gap),
            "replay_lower_bound_s": float(certificate.replay_lower_bound),
        }
    if prediction:
        record["prediction"] = {
            "step_time_s": float(prediction.step_time),
            "tokens_per_s": float(prediction.tokens_per_second),
            "model_flops_utilization": float(prediction.model_flops_utilization),
            "bubble_fraction": float(prediction.bubble_fraction),
            "peak_memory_bytes": [float(stage.peak_memory) for stage in prediction.stages],
        }
    digests = {name: digest({**record, **parts}.get(name)) for name in DIGESTED}
    return {**record, **parts, "digests": digests}


def digest(value: object) -> str:
    """Return the sha256 of a plain value's canonical JSON."""
    text = json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _canonical(value: Any) -> Any:
    """Write whole floats as integers, so that 80 and 80.0 are the same."""
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def unwritten(plan: Plan, cluster: Cluster, model: Model, job: Job, origin: str) -> PlanFile:
    """Return the plan file of a plan that was not read from one: without proof, figures or edits."""
    return PlanFile(
        plan=plan,
        cluster=cluster,
        model=model,
        job=job,
        certificate=None,
        figures=None,
        made_by=origin,
        format_version=FORMAT_VERSION,
        edited=(),
        origin=origin,
    )


def read_plan(source: str) -> PlanFile:
    """Return the plan file at a path or, for ``-``, on standard input; ``planner plan --format json`` is one too.

    Raises:
        SpecError: with every problem and its place.

    """
    return parsed_plan(*read_text(source))


def parsed_plan(text: str, origin: str) -> PlanFile:
    """Return the plan file that `text` is.

    Raises:
        SpecError: with every problem and its place.

    """
    document = parse(text, origin)
    refuse_other_kind(document, "plan")
    return plan_from_document(document)


def plan_from_document(document: Document) -> PlanFile:
    """Return the plan file that a document holds.

    Raises:
        SpecError: with every problem and its place.

    """
    from planner.specs.plan_record import PlanRecord
    from planner.specs.problems import validate

    base = _base(document.value)
    _refuse_newer(document, base)
    problems: list[Problem] = []
    record: PlanRecord | None = None
    parts: tuple[Cluster, Model, Job] | None = None
    try:
        record = validate(PlanRecord, document, base=base)
    except SpecError as error:
        problems += error.problems
    try:
        parts = _parts(document, base)
    except SpecError as error:
        problems += error.problems
    if record is None or parts is None:
        raise SpecError(list(dict.fromkeys(problems)))
    cluster, model, job = parts
    return PlanFile(
        plan=decision(record.plan),
        cluster=cluster,
        model=model,
        job=job,
        certificate=_certificate(record),
        figures=_figures(record),
        made_by=record.made_by,
        format_version=record.format_version,
        edited=_edited(record, document.value["plan"] if base else document.value),
        origin=document.origin,
    )


def _base(value: Any) -> Path:
    """Return where the plan file stands: at the root, or below ``plan`` of a command's JSON output."""
    inner = value.get("plan") if isinstance(value, dict) else None
    return ("plan",) if isinstance(inner, dict) and "format_version" in inner else ()


def _refuse_newer(document: Document, base: Path) -> None:
    """Stop at a newer format before its new keys are called unknown."""
    value = document.value
    for part in base:
        value = value[part]
    version = str(value.get("format_version", "")) if isinstance(value, dict) else ""
    numbers = version.split(".")
    if len(numbers) == 2 and all(number.isascii() and number.isdigit() for number in numbers):
        newest = tuple(int(number) for number in FORMAT_VERSION.split("."))
        if (int(numbers[0][:9]), int(numbers[1][:9])) > newest:
            message = (
                f"{version} is newer than {FORMAT_VERSION}, the newest that this version reads; update the planner"
            )
            raise SpecError([document.problem((*base, "format_version"), message)])


def _parts(document: Document, base: Path) -> tuple[Cluster, Model, Job] | None:
    """Return the embedded parts, None where one is missing; the problems of cluster and model come together."""
    from planner.specs.model import model_from_document

    value = document.value
    for part in base:
        value = value[part]
    if not isinstance(value, dict) or not all(isinstance(value.get(name), dict) for name in PARTS):
        return None
    problems: list[Problem] = []
    cluster: Cluster | None = None
    model: Model | None = None
    try:
        cluster = cluster_from_document(document, (*base, "cluster"))
    except SpecError as error:
        problems += error.problems
    try:
        model = model_from_document(document, (*base, "model"))
    except SpecError as error:
        problems += error.problems
    if cluster is None or model is None:
        raise SpecError(list(dict.fromkeys(problems)))
    return cluster, model, job_from_document(document, model, cluster, (*base, "job"))


def _edited(record: PlanRecord, written: Mapping[str, Any]) -> tuple[str, ...]:
    if record.digests is None:
        return DIGESTED
    return tuple(name for name in DIGESTED if getattr(record.digests, name) != digest(written.get(name)))


def _certificate(record: PlanRecord) -> Certificate | None:
    found = record.certificate
    if found is None:
        return None
    return Certificate(
        objective=found.objective_s, lower_bound=found.lower_bound_s, replay_lower_bound=found.replay_lower_bound_s
    )


def _figures(record: PlanRecord) -> Figures | None:
    found = record.prediction
    if found is None:
        return None
    return Figures(
        step_time=found.step_time_s,
        tokens_per_second=found.tokens_per_s,
        model_flops_utilization=found.model_flops_utilization,
        bubble_fraction=found.bubble_fraction,
        peak_memory=tuple(found.peak_memory_bytes),
    )
