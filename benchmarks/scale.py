"""Plans on three, five and eight groups of unlike devices, 1,024 and 98,304 of them, and models of 32 to 256 layers.

Writes `scale.md`: gap and search time of each, and the time as a multiple of that on 1,024 devices with as many groups
and layers. The global batch grows with the devices: one sample for each.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from planner.domain.cluster import Cluster
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.prediction import Outcome
from planner.errors import NoPlanInTime, PlannerError
from planner.pipeline import make_plan
from planner.specs.cluster import read_cluster
from planner.specs.job import HEADROOM
from planner.specs.model import model_from_record

TABLE = Path(__file__).resolve().parent / "scale.md"
DEVICES = (
    "h100-sxm-80gb",
    "a100-sxm-80gb",
    "mi300x-192gb",
    "h200-sxm-141gb",
    "mi250x-128gb",
    "a100-sxm-40gb",
    "h100-pcie-80gb",
    "l40s-48gb",
)
SIZES = (1_024, 98_304)
CASES = ((3, 32), (3, 128), (3, 256), (5, 32), (5, 128), (8, 32))
"""(groups, layers)"""
HIDDEN = 8_192
SEQUENCE = 4_096
LIMIT = 600.0
"""[s] after which a search is given up."""


def cluster_of(groups: int, devices: int) -> Cluster:
    """Return a cluster of nodes with eight devices, about as many nodes in each group, the first one largest."""
    nodes = devices // 8
    each = nodes // groups
    first = nodes - each * (groups - 1)
    texts = [f"{first if not index else each}x8:{name}" for index, name in enumerate(DEVICES[:groups])]
    return read_cluster("+".join(texts))


def model_of(layers: int) -> Model:
    """Return a Llama of so many layers as those of the 70B."""
    record = {
        "name": f"llama-{layers}",
        "family": "llama",
        "hidden_size": HIDDEN,
        "num_hidden_layers": layers,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "intermediate_size": 28_672,
        "vocab_size": 128_256,
        "max_position_embeddings": 8_192,
    }
    return model_from_record(record, f"llama-{layers}")


def planned(groups: int, devices: int, layers: int) -> Outcome:
    """Return the plan of a case."""
    job = Job(
        global_batch=devices,
        sequence=SEQUENCE,
        precision="bf16",
        framework="megatron",
        headroom=HEADROOM,
        time_limit=LIMIT,
    )
    return make_plan(cluster_of(groups, devices), model_of(layers), replace(job), references=False)


def row(groups: int, devices: int, layers: int, outcome: Outcome, small: float) -> str:
    """Return a line of the table; `small` [s] is the search time on the fewest devices, zero if this is it."""
    used = len({stage.group for stage in outcome.plan.all_stages})
    ratio = f"{outcome.search.seconds / small:.1f}" if small else ""
    kinds = len(outcome.plan.pipelines)
    return (
        f"| {groups} | {devices:,} | {layers} | {used} | {kinds} | {outcome.certificate.gap:.2%} "
        f"| {outcome.search.seconds:.1f} | {ratio} |"
    )


HEAD = """\
# Searches on many groups and devices

By `benchmarks/scale.py`: Llama with the layers of the 70B, {sequence:,} tokens, a sample for each device, bf16, profile
megatron, gap 1%. Groups: of the cluster; used: with stages; kinds: of pipelines. Times: that on 98,304 devices over
that on 1,024.

| groups | devices | layers | used | kinds | gap | search s | times |
|---|---|---|---|---|---|---|---|
"""


def main() -> int:
    """Plan all cases and write the table; return the exit code."""
    parser = argparse.ArgumentParser(description="Plans on many groups of unlike devices.")
    parser.add_argument("--smoke", action="store_true", help="one small case, which is printed and not written")
    options = parser.parse_args()
    if options.smoke:
        print(row(5, 40, 32, planned(5, 40, 32), 0.0))
        return 0
    lines = []
    for groups, layers in CASES:
        small = 0.0
        for devices in SIZES:
            try:
                outcome = planned(groups, devices, layers)
                lines.append(row(groups, devices, layers, outcome, small))
                small = outcome.search.seconds
            except (PlannerError, NoPlanInTime) as error:
                lines.append(f"| {groups} | {devices:,} | {layers} | {error} |")
            print(lines[-1], flush=True)
    TABLE.write_text(HEAD.format(sequence=SEQUENCE) + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
