"""Jobs: a file and the options of the command line to a job without open defaults, and back to a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.optimizer import OptimizerRecipe
from planner.domain.precision import PRECISIONS
from planner.errors import SpecError
from planner.loader import Document, Path, parse
from planner.specs import catalog
from planner.specs.constraints import parse_constraint
from planner.specs.files import read_text

if TYPE_CHECKING:
    from planner.specs.job_record import JobRecord

__all__ = ["job_from_document", "job_record", "parse_constraint", "read_job"]

SEQUENCE = 4096
"""[tokens] of a sample where neither job nor model says less."""
TOKENS_PER_STEP = 4 * 2**20
"""[tokens] of a step where the job does not say."""
DIVISIBLE_BITS = 4
"""Leading bits that a default batch keeps: the rest is rounded off, so that many numbers of replicas divide it."""
FRAMEWORK = "megatron"
"""Profile of costs and memory where the job does not say."""
HEADROOM = 0.10
"""[-] share of memory left free where the job does not say."""
GAP = 0.01
"""[-] wanted distance from the bound where the job does not say."""


def read_job(
    path: str | None, overrides: Mapping[str, object], model: Model, cluster: Cluster
) -> tuple[Job, tuple[str, ...]]:
    """Return the job, and a sentence for each value that is a default, to be printed.

    Args:
        path: a job file, ``-``, or None.
        overrides: job key -> value of the option of that name; None for options that were not given. Constraints are
            added to those of the file, everything else replaces.
        model: what is trained.
        cluster: where.

    Raises:
        SpecError: with every problem, placed in the file or at the option.

    """
    document = parse(*read_text(path)) if path is not None else Document(value={}, origin="job")
    given = {key: value for key, value in overrides.items() if value is not None and value not in ((), [])}
    return _job(_merged(document, given), (), model, cluster)


def job_from_document(document: Document, model: Model, cluster: Cluster, base: Path = ()) -> Job:
    """Return the job that stands at `base` of a document.

    Raises:
        SpecError: with every problem and its place.

    """
    return _job(document, base, model, cluster)[0]


def job_record(job: Job) -> dict[str, Any]:
    """Return a resolved job as a plain record, every default written out."""
    record: dict[str, Any] = {
        "global_batch": job.global_batch,
        "sequence_length": job.sequence,
        "precision": job.precision,
        "framework": job.framework,
        "headroom": job.headroom,
        "gap": job.gap,
        "time_limit_s": job.time_limit,
    }
    if job.optimizer:
        record["optimizer"] = job.optimizer.name
    if job.target:
        record["for"] = job.target
    if job.total_tokens:
        record["total_tokens"] = job.total_tokens
    if job.constraints:
        record["constraints"] = [constraint.text for constraint in job.constraints]
    return record


def _merged(document: Document, given: Mapping[str, object]) -> Document:
    """Lay the options over the file."""
    if not isinstance(document.value, dict):
        return document
    value: dict[str, Any] = dict(document.value)
    options: dict[Path, str] = {}
    if not {"global_batch", "global_batch_tokens"}.isdisjoint(given):
        value = {key: item for key, item in value.items() if key not in {"global_batch", "global_batch_tokens"}}
    for key, item in given.items():
        name = "--" + key.removesuffix("_s").replace("_", "-")
        before = value.get(key) if key == "constraints" else None
        if isinstance(before, list) and isinstance(item, (list, tuple)):
            options |= {(key, len(before) + n): "--constraint" for n in range(len(item))}
            value[key] = [*before, *item]
            continue
        options[(key,)] = "--constraint" if key == "constraints" else name
        value[key] = list(item) if isinstance(item, tuple) else item
    return replace(document, value=value, options=options)


def _job(document: Document, base: Path, model: Model, cluster: Cluster) -> tuple[Job, tuple[str, ...]]:
    """Return the job with its defaults, and what those are."""
    from planner.specs.job_record import JobRecord
    from planner.specs.problems import validate

    record: JobRecord = validate(JobRecord, document, base=base, semantics=lambda value: _rules(value, model, cluster))
    defaults: list[str] = []
    sequence = record.sequence_length or _default_sequence(model, defaults)
    if sequence > model.max_sequence > 0:
        defaults.append(f"a sequence of {sequence:,} tokens is beyond the {model.max_sequence:,} of {model.name}")
    usual = cluster.calibration.framework if cluster.calibration else FRAMEWORK
    framework = record.framework or record.target or usual
    if record.framework is None:
        defaults.append(f"framework {framework}")
    groups = [group.name for group in cluster.groups]
    job = Job(
        global_batch=_batch(record, sequence, defaults),
        sequence=sequence,
        precision=record.precision or _default_precision(cluster, defaults),
        framework=framework,
        optimizer=_recipe(record.optimizer),
        target=record.target or "",
        headroom=_or_default(record.headroom, HEADROOM, "headroom", defaults),
        gap=_or_default(record.gap, GAP, "gap", defaults),
        time_limit=record.time_limit_s or 0.0,
        total_tokens=record.total_tokens or 0.0,
        constraints=tuple(parse_constraint(text, groups=groups) for text in record.constraints),
    )
    return job, tuple(defaults)


def _rules(value: Any, model: Model, cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Find what a job demands that the model or the cluster does not have."""
    if not isinstance(value, dict):
        return
    sequence, positions = value.get("sequence_length"), getattr(model.embedding, "num_positions", 0)
    if isinstance(sequence, int) and 0 < positions < sequence:
        message = f"{sequence:,} is more than the {positions:,} positions that {model.name} has learned; write less"
        yield ("sequence_length",), message
    constraints = value.get("constraints")
    for index, text in enumerate(constraints if isinstance(constraints, list) else ()):
        if isinstance(text, str):
            try:
                parse_constraint(text, groups=[group.name for group in cluster.groups])
            except SpecError as error:
                yield ("constraints", index), error.problems[0].message
    precision = value.get("precision")
    if not isinstance(precision, str) or precision not in PRECISIONS:
        return
    for group in (group for group in cluster.groups if not group.device.peak(precision)):
        able = [name for name in PRECISIONS if group.device.peak(name)]
        message = f"{precision} is not what {group.device.name} (group {group.name}) can do; write {' or '.join(able)}"
        yield ("precision",), message


def _default_sequence(model: Model, defaults: list[str]) -> int:
    sequence = min(SEQUENCE, model.max_sequence) if model.max_sequence > 0 else SEQUENCE
    why = f", the most that {model.name} takes" if sequence < SEQUENCE else ""
    defaults.append(f"sequence_length {sequence:,} tokens{why}")
    return sequence


def _batch(record: JobRecord, sequence: int, defaults: list[str]) -> int:
    """Return [samples] of a step; a size in tokens is rounded down to whole samples, which is told."""
    if record.global_batch is not None:
        return record.global_batch
    tokens = record.global_batch_tokens or TOKENS_PER_STEP
    batch = max(1, tokens // sequence)
    if record.global_batch_tokens is None:
        batch -= batch % 2 ** max(0, batch.bit_length() - DIVISIBLE_BITS)
    if record.global_batch_tokens is None or batch * sequence != tokens:
        defaults.append(f"global_batch {batch:,} samples ({batch * sequence:,} tokens a step)")
    return batch


def _default_precision(cluster: Cluster, defaults: list[str]) -> str:
    """Return the first of bf16, fp16 and fp32 that every device supports."""
    wide = [name for name, row in PRECISIONS.items() if not row.narrow]
    able = (name for name in wide if all(group.device.peak(name) for group in cluster.groups))
    precision = next(able, "fp32")
    able_of = sum(1 for group in cluster.groups if group.device.peak("bf16"))
    reason = "not every device does bf16" if able_of else "no device does bf16"
    defaults.append(f"precision {precision}" + ("" if precision == "bf16" else f", since {reason}"))
    return precision


def _recipe(name: str | None) -> OptimizerRecipe | None:
    """Return the optimizer recipe, or None for the framework's usual one."""
    from planner.specs.job_record import USUAL_OPTIMIZER

    return catalog.optimizer(name) if name is not None and name != USUAL_OPTIMIZER else None


def _or_default(value: float | None, default: float, name: str, defaults: list[str]) -> float:
    if value is None:
        defaults.append(f"{name} {default:.0%}")
    return default if value is None else value
