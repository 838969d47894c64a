"""From what a published run says of its machine to groups of devices."""

from __future__ import annotations

import re
from dataclasses import replace
from math import ceil

from planner.accuracy.refusal import NotJudgedError
from planner.accuracy.run import Run
from planner.domain.cluster import DeviceGroup, Link, Network
from planner.errors import SpecError
from planner.specs import catalog
from planner.units import GBIT, GBYTE

NETWORK_WORDS = (
    ("efa", "efa-p5"),
    ("ndr", "ib-ndr"),
    ("edr", "ib-edr"),
    ("slingshot", "slingshot-200"),
)
"""Word in the text -> network of the catalogue; figures in the text come first."""
LINK_WORDS = (
    ("nvl72", "nvl72"),
    ("nvlink5", "nvlink5"),
    ("nvlink4", "nvlink4"),
    ("nvlink3", "nvlink3"),
    ("nvlink2", "nvlink2"),
    ("pcie 4", "pcie4"),
    ("pcie", "pcie3"),
)
"""The same for links."""
_COUNTED = re.compile(r"(.+):(\d+)")
_RAILS = re.compile(r"(\d+)\s*x\s*(?:[A-Za-z-]+\s+)*?(\d+)\s*Gb/?s")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([GT])b/?s")


def machines(run: Run) -> tuple[DeviceGroup, ...]:
    """Return the devices that `run` used, a group of each kind, in the order of its ranks.

    ``V100:12+T4:4`` are twelve of one kind and four of another. Links told in as many clauses as there are kinds are
    theirs, one by one; else all have the same. A bandwidth measured over all of them is that of none.

    Raises:
        NotJudgedError: there are several kinds, and it is not said how many devices of each.
        SpecError: the catalogue knows no such device.

    """
    names = run.gpu.split("+")
    if len(names) == 1:
        return (machine(run),)
    counted = [_COUNTED.fullmatch(name.strip()) for name in names]
    counts = [int(found[2]) for found in counted if found]
    if len(counts) < len(names) or sum(counts) != run.gpus:
        raise NotJudgedError("unlike devices: how many there are of each is not in the columns")
    inside, between = (_clauses(text, len(names)) for text in (run.intra_node, run.inter_node))
    alone = replace(run, busbw_allreduce_gbyte_per_s=None)
    kinds = zip((found[1] for found in counted if found), counts, inside, between, strict=True)
    return tuple(
        machine(replace(alone, gpu=name, gpus=count, intra_node=link, inter_node=network))
        for name, count, link, network in kinds
    )


def _clauses(text: str, number: int) -> list[str]:
    """Return the clauses of a text, or the whole text for each of `number` kinds."""
    clauses = text.split(",")
    return clauses if len(clauses) == number else [text] * number


def machine(run: Run) -> DeviceGroup:
    """Return the devices of a run that used one kind of them.

    Raises:
        SpecError: the catalogue knows no such device.

    """
    row = _device_row(run.gpu)
    per_node = int(run.gpus_per_node or 8)
    num_devices = int(run.gpus or per_node)
    num_nodes = ceil(num_devices / per_node)
    return DeviceGroup(
        name="",
        device=row.device,
        num_nodes=num_nodes,
        devices_per_node=min(per_node, num_devices),
        intra_node=_link(run, row, num_nodes),
        inter_node=_network(run, row, num_nodes),
    )


def _device_row(text: str) -> catalog.DeviceRow:
    """Return the catalogue's row of `text`; what stands in brackets or behind a plus is about the machine around it."""
    try:
        return catalog.device_row(text)
    except SpecError:
        return catalog.device_row(re.sub(r"\(.*\)", "", text).strip())


def _link(run: Run, row: catalog.DeviceRow, num_nodes: int) -> Link:
    text = run.intra_node
    name = next((name for word, name in LINK_WORDS if word in text.lower()), row.intra_node)
    link = catalog.link(name or "pcie3")
    if rate := _rate(text):
        link = replace(link, bandwidth=rate, measured=())
    if num_nodes == 1 and run.busbw_allreduce_gbyte_per_s:
        return replace(link, bandwidth=run.busbw_allreduce_gbyte_per_s * GBYTE, efficiency=1.0)
    return link


def _network(run: Run, row: catalog.DeviceRow, num_nodes: int) -> Network:
    text = run.inter_node
    name = next((name for word, name in NETWORK_WORDS if word in text.lower()), row.inter_node)
    network = catalog.network(name or "ethernet-25")
    if rails := _RAILS.search(text):
        count, rate = int(rails[1]), float(rails[2]) * GBIT
        network = replace(network, bandwidth=count * rate, rails=count, measured=())
    elif rate := _rate(text):
        count = network.rails
        if "per gpu" in text.lower():
            count = int(run.gpus_per_node or 8)
            rate *= count
        network = replace(network, bandwidth=rate, rails=count, measured=())
    if run.busbw_allreduce_gbyte_per_s and num_nodes > 1:
        network = replace(network, measured=((num_nodes, run.busbw_allreduce_gbyte_per_s * GBYTE),))
    return network


def _rate(text: str) -> float:
    """Return the first rate [bytes/s] that a text tells, 0 if it tells none."""
    found = _RATE.search(text)
    return float(found[1]) * GBIT * (1000 if found[2] == "T" else 1) if found else 0.0
