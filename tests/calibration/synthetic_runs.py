"""Runs of a machine whose constants are known: the predictor's own times, with other constants and a little noise."""

# ruff: noqa: S311 (noise is drawn, not secrets)

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np

from accuracy.judged_runs import run
from planner.accuracy.batch import batches
from planner.accuracy.setting import setting
from planner.calibration.batch import step_times
from planner.calibration.constants import constants

COLUMNS = (
    *("framework", "gpu", "gpus", "gpus_per_node", "layers", "hidden", "heads", "seq", "vocab"),
    *("tp", "pp", "mbs", "gbs", "attention_kernel", "flag"),
)
TYPICAL: Mapping[str, object] = {
    "framework": "megatron",
    "gpu": "a100-sxm-80gb",
    "gpus_per_node": 8,
    "heads": 16,
    "seq": 2048,
    "vocab": 51200,
    "gbs": 64,
    "attention_kernel": "",
    "flag": "",
}


def shapes(number: int, **changes: object) -> list[dict[str, object]]:
    """Return `number` unlike runs from small to large layers, on one node and on two.

    Those that `changes` make alike differ by their batches.
    """
    grid = product((8, 16), ((1024, 8), (2048, 16), (4096, 16), (8192, 8)), (1, 2, 8), (1, 2), (1, 4))
    rows = [
        {**TYPICAL, "gpus": gpus, "layers": layers, "hidden": hidden, "tp": tp, "pp": pp, "mbs": mbs, **changes}
        for gpus, (hidden, layers), tp, pp, mbs in grid
        if tp * pp <= gpus
    ]
    seen: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        key = tuple(row.values())
        seen[key] += 1
        row["gbs"] = 64 * seen[key]
    return random.Random(0).sample(rows, number)


def times(rows: Sequence[Mapping[str, object]], factors: Mapping[str, float], noise: float = 0.0) -> list[float]:
    """Return a step time [s] for each row on a machine whose constants are the catalogue's times `factors`."""
    settings = [setting(run(**row)) for row in rows]
    known = [one for one in constants([item.layout for item in settings]) if one.key in factors]
    assert {one.key for one in known} == set(factors)
    point = np.log([[factors[one.key] for one in known]]).reshape(1, len(known))
    draw = random.Random(1)
    return [time * np.exp(draw.gauss(0, noise)) for time in step_times(batches(settings), known, point)[0].tolist()]


def written(path: Path, rows: Sequence[Mapping[str, object]], measured: Sequence[float]) -> str:
    """Write runs as a file, and return its name."""
    lines = [",".join([*COLUMNS, "iter_time_s"])]
    lines += [
        ",".join([*(str(row[column]) for column in COLUMNS), f"{time:.6g}"])
        for row, time in zip(rows, measured, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)
