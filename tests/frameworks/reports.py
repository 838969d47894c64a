"""A program whose every process reports its place, and what the rank table says of it."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from planner.export import Part, Program
from planner.placement import place
from planner.specs.plan import PlanFile

TEXT = """\
import json, os, pathlib, sys

rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
seen = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7").split(",")
report = {
    "rank": rank,
    "world": int(os.environ["WORLD_SIZE"]),
    "node": os.environ.get("SLURMD_NODENAME") or os.environ["NODE_NAME"],
    "local_rank": local_rank,
    "device_index": int(seen[local_rank]),
    "note": os.environ["NOTE"],
    "arguments": sys.argv[1:],
}
folder = pathlib.Path(os.environ["REPORTS"])
(folder / f"{rank}.part").write_text(json.dumps(report))
(folder / f"{rank}.part").rename(folder / f"{rank}.json")
"""
NOTE = "it's $HOME"
ARGUMENTS = ("--layout", "Et*2|t*2L", "", "a  b")
PROGRAM = Program(
    command=("report.py", *ARGUMENTS), environment=(("NOTE", NOTE),), parts=(Part(name="report.py", text=TEXT),)
)


def environments() -> Path:
    """Return the folder with the environments of the frameworks."""
    return Path(os.environ.get("PLANNER_FRAMEWORKS") or Path.home() / ".cache" / "planner-frameworks")


def searched() -> str:
    """Return the folders with commands, those of the frameworks after all others."""
    return os.pathsep.join([os.environ["PATH"], *sorted(map(str, environments().glob("*/bin")))])


def free_port() -> int:
    """Return a port of the loopback."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def found(folder: Path) -> list[dict[str, Any]]:
    """Return what was reported, in the order of the ranks."""
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return sorted(reports, key=lambda report: int(report["rank"]))


def expected(file: PlanFile, *arguments: str) -> list[dict[str, Any]]:
    """Return what ranks should report that are where the rank table has them."""
    ranks = place(file.plan, file.cluster, file.model, file.job).ranks
    return [
        {
            "rank": rank.rank,
            "world": len(ranks),
            "node": rank.node,
            "local_rank": rank.local_rank,
            "device_index": rank.device_index,
            "note": NOTE,
            "arguments": [*ARGUMENTS, *arguments],
        }
        for rank in ranks
    ]
