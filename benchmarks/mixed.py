"""Plans a 140B Llama on 128 + 640 unlike devices, and says how near each plan comes to what its groups could do alone.

After HETHUB (Xu et al. 2024), which reports up to 97.49% of the sum of its groups' own rates on 768 accelerators of two
vendors. Pairs of the catalogue, and an A100 beside another whose peak is a multiple of its own, over link rates. Writes
`mixed.md`. A row that falls short, or that has no plan, is a result.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from planner.domain.cluster import Cluster, Device
from planner.domain.job import Job
from planner.domain.model import Model
from planner.domain.prediction import Outcome
from planner.errors import PlannerError
from planner.pipeline import make_plan
from planner.specs import catalog
from planner.specs.cluster import read_cluster
from planner.specs.job import HEADROOM
from planner.specs.model import read_model
from planner.units import GBIT

ROOT = Path(__file__).resolve().parent.parent
CLUSTER = ROOT / "cluster_specs" / "hethub-mi250x-a100.yaml"
TABLE = ROOT / "benchmarks" / "mixed.md"
MODEL = ROOT / "model_specs" / "llama-140b.yaml"
BATCH = 2048
"""[samples]"""
SHARE = 0.9749
"""[-] of the sum of the groups' own rates, that a plan should reach ..."""
NEAR = 0.99
"""[-] ... or this share of what whole layers allow, where that is less."""
RATES = (800, 100, 25)
"""[Gbit/s] of a node, between the groups."""
SPEEDS = (0.4, 0.6, 0.8, 1.0, 1.5)
"""[-] peaks of the 128 devices, as multiples of the 640 others'."""
PAIRS = (
    ("mi250x-128gb", "a100-sxm-80gb"),
    ("v100-sxm-32gb", "a100-sxm-80gb"),
    ("ascend910b-64gb", "a100-sxm-80gb"),
    ("h20-96gb", "a100-sxm-80gb"),
)
"""Devices of the catalogue, 128 of the first and 640 of the second."""


@dataclass(frozen=True, slots=True)
class Case:
    """Two kinds of devices and the link between them."""

    name: str
    few: Device
    many: Device
    gbits: int


def cases() -> list[Case]:
    """Return all rows of the table."""
    a100 = catalog.device("a100-sxm-80gb")
    scaled = [(f"{speed:g} x a100 + a100", faster(a100, speed), a100) for speed in SPEEDS]
    named = [(f"{few} + {many}", catalog.device(few), catalog.device(many)) for few, many in PAIRS]
    return [Case(name, few, many, gbits) for name, few, many in [*named, *scaled] for gbits in RATES]


def faster(device: Device, speed: float) -> Device:
    """Return a device whose products run `speed` times as fast, alike in all else."""
    peaks = tuple((rate, peak * speed) for rate, peak in device.peak_flops)
    return replace(device, name=f"{device.name}-x{speed:g}", peak_flops=peaks)


def cluster_of(case: Case) -> Cluster:
    """Return the cluster of HETHUB's size with the devices and the link of a case."""
    base = read_cluster(str(CLUSTER))
    few, many = base.groups
    (join,) = base.links
    return replace(
        base,
        groups=(replace(few, device=case.few), replace(many, device=case.many)),
        links=(replace(join, bandwidth=case.gbits * GBIT),),
    )


def planned(case: Case, model: Model) -> Outcome:
    """Return the plan of a case in fp16, which all devices have."""
    job = Job(
        global_batch=BATCH, sequence=model.max_sequence, precision="fp16", framework="megatron", headroom=HEADROOM
    )
    return make_plan(cluster_of(case), model, job)


def row(case: Case, outcome: Outcome) -> str:
    """Return a line of the table."""
    references, plan, step = outcome.references, outcome.plan, outcome.prediction.step_time
    assert references is not None, "they are asked for"
    share, ceiling = references.homogeneous_step_time / step, references.whole_layer_ceiling
    reached = share >= min(SHARE, NEAR * ceiling)
    where = "both" if len({stage.group for stage in plan.all_stages}) > 1 else plan.stages[0].group
    speed = case.few.peak("fp16") * case.few.matmul_efficiency / (case.many.peak("fp16") * case.many.matmul_efficiency)
    layout = " + ".join(f"pp {one.num_stages}, dp {one.num_replicas}" for one in plan.pipelines)
    return (
        f"| {case.name} | {speed:.2f} | {case.gbits} | {step:.1f} | {layout} | {where} | {share:.1%} | {ceiling:.1%} "
        f"| {'yes' if reached else 'no'} | {outcome.certificate.gap:.2%} |"
    )


HEAD = """\
# 140B on 128 + 640 unlike devices

By `benchmarks/mixed.py`: {model}, {batch:,} x {sequence:,} tokens in fp16, framework megatron, gap 1%, head-room 10%.
Speed: what large products reach, the 128 devices' over the 640 others'. Link: Gbit/s of a node between the groups.
Share: tokens a second of the plan over the sum of what each group could do alone, at best; ceiling: the same of whole
layers with free communication and no memory limits. Reached: a share of {share:.2%}, or {near:.0%} of the ceiling.

| devices | speed | link | step s | layout | groups | share | ceiling | reached | gap |
|---|---|---|---|---|---|---|---|---|---|
"""


def line(case: Case) -> str:
    """Plan a case and return its line, which is short where there is no plan."""
    try:
        return row(case, planned(case, read_model(str(MODEL))))
    except PlannerError as error:
        return f"| {case.name} | | {case.gbits} | | {error} |"


def main() -> int:
    """Plan all cases and write the table; return the exit code."""
    parser = argparse.ArgumentParser(description="Plans a 140B Llama on pairs of unlike devices.")
    parser.add_argument("--jobs", type=int, default=1, help="cases planned at once (default 1)")
    parser.add_argument("--smoke", action="store_true", help="one case, which is printed and not written")
    options = parser.parse_args()
    if options.smoke:
        print(row(cases()[0], planned(cases()[0], read_model(str(MODEL)))))
        return 0
    lines = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for text in pool.map(line, cases()):
            print(text, flush=True)
            lines.append(text)
    model = read_model(str(MODEL))
    head = HEAD.format(model=model.name, batch=BATCH, sequence=model.max_sequence, share=SHARE, near=NEAR)
    TABLE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
