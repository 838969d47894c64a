"""What a report is about, in a few lines: the cluster, the model and the job."""

from __future__ import annotations

from collections.abc import Sequence

from planner.domain.calibration import Calibration
from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.report.figures import count, percent, plural, short
from planner.report.layout import WIDTH, joined, labelled

MARK = "*"
"""Behind a value that is a default."""


def header(cluster: Cluster, model: Model, job: Job, defaults: Sequence[str] = (), width: int = WIDTH) -> list[str]:
    """Return what is planned; `defaults` are sentences on the values that nobody chose, each beginning with its key."""
    return [
        *labelled("cluster", _cluster(cluster), width),
        *(labelled("", calibration_note(cluster.calibration, job.framework), width) if cluster.calibration else []),
        *labelled("model", _model(model), width),
        *labelled("job", _job(job, defaults), width),
        *(line for text in defaults if (reason := _reason(text)) for line in labelled("", reason, width)),
    ]


def _cluster(cluster: Cluster) -> str:
    groups = []
    for group in cluster.groups:
        name = f"{group.name}: " if group.name != group.device.name else ""
        groups.append(joined(f"{name}{group.num_nodes:,} x {group.devices_per_node} {group.device.name}"))
    title = "" if ":" in cluster.name else f"{cluster.name}, "
    return f"{title}{plural(cluster.num_devices, 'device')} ({', '.join(groups)})"


def calibration_note(calibration: Calibration, framework: str = "") -> str:
    """Return on what a cluster was calibrated, and that this was with another profile than `framework` if it was."""
    runs = f"calibrated on {plural(calibration.rows, 'run')}"
    if framework not in {"", calibration.framework}:
        return f"{runs} of {calibration.framework}; how far off {framework} is, is not known"
    low, _, high = calibration.residuals
    error = f"error {percent(calibration.error_cross_validated.mape)}"
    return f"{runs} of {calibration.framework}, {error}; steps took {low:.2f} to {high:.2f} of what was predicted"


def _model(model: Model) -> str:
    return (
        f"{model.name}: {short(model.parameters)} parameters, {plural(model.num_layers, 'layer')}, "
        f"hidden {count(model.hidden)}"
    )


def _job(job: Job, defaults: Sequence[str]) -> str:
    chosen = {text.split(" ", 1)[0] for text in defaults}

    def marked(text: str, key: str) -> str:
        return text + MARK if key in chosen else text

    samples = marked(count(job.global_batch), "global_batch")
    tokens = marked(count(job.sequence), "sequence_length")
    parts = [
        f"{samples} x {tokens} tokens = {short(job.tokens_per_step)} a step",
        marked(job.precision, "precision"),
        marked(job.framework, "framework"),
        *([job.optimizer.name] if job.optimizer else []),
        f"head-room {marked(f'{job.headroom:.3g}' if job.headroom * 100 % 1 else f'{job.headroom:.0%}', 'headroom')}",
        *([f"only what {job.target} can run"] if job.target else []),
        *(constraint.text for constraint in job.constraints),
    ]
    legend = f"   {MARK} default" if chosen else ""
    return ", ".join(joined(part) for part in parts) + joined(legend)


def _reason(default: str) -> str:
    """Return a default again if it comes with its reason."""
    return default if ", since" in default or ", the most" in default else ""
