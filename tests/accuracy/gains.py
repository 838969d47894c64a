"""The pairs of runs of gains.yaml: predicted as ``planner predict --layout`` does, and compared as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from planner.costs import plan_cost
from planner.domain.model import Model
from planner.parallelism import AXES
from planner.pipeline import plan_from_layout, predict_plan
from planner.simulate import predict
from planner.specs import catalog
from planner.specs.cluster import read_cluster
from planner.specs.job import read_job
from planner.specs.layout import parse_layout
from planner.specs.model import model_from_record, read_model

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("gains.yaml")
FACTOR = 1.5
"""[-] by which a predicted gain may be larger or smaller than the published one."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs of a published comparison that differ in their schedule, as written."""

    gain: Mapping[str, Any]
    """What both share."""
    written: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Comparison and pair."""
        return f"{self.gain['id']}: {self.written['name']}"

    @property
    def published(self) -> tuple[float, float]:
        """The least and the most speed [-] of the faster run over the slower one that its source tells."""
        told = self.written["published"]
        return (told[0], told[1]) if isinstance(told, list) else (told, told)


@cache
def table() -> Mapping[str, Any]:
    """Return the whole file."""
    found = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def pairs() -> list[Pair]:
    """Return every pair, in the order of the file."""
    return [Pair(gain, written) for gain in table()["gains"] for written in gain["pairs"]]


def ratio(pair: Pair) -> float:
    """Return the predicted speed [-] of the faster run over the slower one, on the same batch."""
    slower, faster = (_step_time(pair, pair.written[which]) for which in ("slower", "faster"))
    return slower / faster


def missed(pair: Pair, found: float) -> str:
    """Return what is wrong with a predicted ratio; empty if it has the direction and roughly the size."""
    least, most = pair.published
    if found <= 1.0 < most:
        return f"predicted {found:.3f}, no gain"
    low, high = (least - 1.0) / FACTOR, (most - 1.0) * FACTOR
    return "" if low <= found - 1.0 <= high else f"predicted {found:.3f}, and {least:.3f} to {most:.3f} is published"


def _step_time(pair: Pair, layout_text: str) -> float:
    gain = pair.gain
    layout = parse_layout(f"{gain['layout']},{layout_text}", axes=tuple(axis.name for axis in AXES))
    if "layers" in gain:
        layout = replace(layout, chunk_layers=tuple((size,) for size in gain["layers"]))
    cluster, model = read_cluster(gain["cluster"]), _model(gain["model"])
    given = {
        "global_batch": layout.gbs,
        "sequence_length": layout.seq,
        "framework": layout.framework,
        "headroom": 0.0,
        **gain["options"],
    }
    plan, job = plan_from_layout(layout, cluster, model, read_job(None, given, model, cluster)[0])
    assert plan.num_devices == cluster.num_devices, f"{pair.name} leaves devices out"
    if "profile" not in gain:
        return predict_plan(plan, cluster, model, job)[0].step_time
    framework = replace(catalog.framework(job.framework), **gain["profile"])
    return predict(plan, plan_cost(plan, cluster, model, job, framework), cluster, model, job).step_time


def _model(name: str) -> Model:
    written = table()["models"][name]
    if "record" in written:
        return model_from_record({"name": name, **written["record"]}, str(TABLE))
    return read_model(str(ROOT / written["source"]))
