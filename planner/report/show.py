"""Clusters, models, devices and frameworks as tables, in the units of data sheets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from planner.domain.cluster import Cluster, Device, DeviceGroup, GroupLink, Link, Network
from planner.domain.framework import Framework
from planner.domain.model import Layer, Model
from planner.domain.optimizer import OptimizerRecipe
from planner.report.figures import count, gib, plural, rate, seconds, short
from planner.report.header import calibration_note
from planner.report.layout import WIDTH, cut, joined, labelled, table, worded
from planner.units import GBIT, KIB


def show_cluster(cluster: Cluster, width: int = WIDTH) -> str:
    """Return groups, links and what they add up to."""
    peak = sum(group.num_devices * _peak(group.device) for group in cluster.groups)
    memory = sum(group.num_devices * group.device.memory for group in cluster.groups)
    total = f"{plural(cluster.num_devices, 'device')}, {gib(memory)} GiB, {_petaflops(peak)} dense 16-bit"
    head = ["group", "nodes", "devices", "device", "GiB", "in the node", "between nodes, per node", "price/h"]
    groups = [_group(group, several=len(cluster.groups) > 1) for group in cluster.groups]
    lines = [
        *labelled("cluster", cluster.name, width),
        *labelled("total", total, width),
        *(labelled("", calibration_note(cluster.calibration), width) if cluster.calibration else []),
        "",
        *table(head, groups, right="nodes,devices,GiB,price/h"),
    ]
    if cluster.links:
        links = [
            [f"{link.first} - {link.second}", link.transport, rate(link.rate), seconds(link.latency)]
            for link in cluster.links
        ]
        lines += ["", *table(["between groups", "transport", "reached", "latency"], links, right="reached,latency")]
    for group in cluster.groups:
        lines += _fabric(group, width)
        lines += _measured(group, width)
    for link in cluster.links:
        lines += _half(f"{link.first} - {link.second}", link, width)
    lines += _assumed(cluster, width)
    return "\n".join(lines) + "\n"


def _group(group: DeviceGroup, *, several: bool) -> list[str]:
    return [
        cut(group.name, 16),
        f"{count(group.num_nodes)} x {group.devices_per_node}",
        count(group.num_devices),
        group.device.name if group.device.name != group.name else "",
        gib(group.device.memory),
        _link(group.intra_node),
        _link(group.inter_node) if several or group.num_nodes > 1 else "",
        f"{group.price_per_device_hour:,.2f}" if group.price_per_device_hour else "",
    ]


def _fabric(group: DeviceGroup, width: int) -> list[str]:
    """Return what the links of a group are beside one rate: levels below and above the node, unlike rails, sizes."""
    lines = []
    network = group.inter_node
    for level in group.intra_node.levels:
        text = f"{group.name}: {level.link.name} of {plural(level.num_devices, 'device')} {rate(level.link.bandwidth)}"
        lines += labelled("level", text, width)
        lines += _half(f"{group.name}: {level.link.name}", level.link, width)
    lines += _half(f"{group.name}: {group.intra_node.name}", group.intra_node, width)
    if network.rail_rates:
        rates = ", ".join(f"{each / GBIT:g}" for each in network.rail_rates)
        failed = len(network.rail_rates) - network.rails
        text = f"{group.name}: {rates} Gbit/s, {network.striping}{f', {failed} failed' if failed else ''}"
        lines += labelled("rails", text, width)
    lines += _half(f"{group.name}: {network.name}", network, width)
    for tier in network.tiers:
        text = f"{group.name}: beyond {plural(tier.num_nodes, 'node')} {rate(tier.bandwidth)} per node"
        lines += labelled(tier.name, text, width)
    return lines


def _half(name: str, link: Link | Network | GroupLink, width: int) -> list[str]:
    """Return at which size a message reaches half of a link's rate, if that depends on the size."""
    size = f"messages of {link.half_size / KIB:,g} KiB reach half of the rate"
    return labelled("size", f"{name}: {size}", width) if link.half_size else []


def _assumed(cluster: Cluster, width: int) -> list[str]:
    """Return which groups of unlike vendors have no declared link, and what is taken for it."""
    lines = []
    for first, second in combinations(cluster.groups, 2):
        vendors = {first.device.vendor, second.device.vendor}
        if len(vendors) == 2 and all(vendors) and cluster.link(first.name, second.name) is None:
            pair = f"{first.name} - {second.name}: no link between {first.device.vendor} and {second.device.vendor}"
            assumed = "is declared; RDMA over the slower of both networks is assumed (links: transport rdma or tcp)"
            lines += labelled("note", f"{pair} {assumed}", width)
    return lines


def _measured(group: DeviceGroup, width: int) -> list[str]:
    """Return the rates and the layers of a group that were measured."""
    lines = []
    for link, scale in ((group.intra_node, "device"), (group.inter_node, "node")):
        if link.measured:
            rates = ", ".join(f"{rate(reached)} on {plural(int(at), scale)}" for at, reached in link.measured)
            lines += labelled("measured", f"{group.name}: {link.name} {rates}", width)
    if profile := group.profile:
        of = f"{plural(profile.num_layers, 'layer')} at {plural(profile.sequence, 'token')} in {profile.precision}"
        cuts = (f"tp {tp} micro-batch {'/'.join(map(str, sizes))}" for tp, sizes in profile.micro_batches)
        lines += labelled("profile", f"{group.name}: {of}, {', '.join(map(joined, cuts))}", width)
    return lines


def _link(link: Link | Network) -> str:
    return f"{cut(link.name, 14)} {rate(link.bandwidth)}"


def _peak(device: Device) -> float:
    return device.peak("bf16") or device.peak("fp16")


def _petaflops(peak: float) -> str:
    return f"{peak / 1e15:,.1f} PFLOP/s" if peak >= 1e14 else f"{peak / 1e12:,.1f} TFLOP/s"


def show_model(model: Model, sequence: int, width: int = WIDTH) -> str:
    """Return what a model consists of, and what training it costs at `sequence` tokens a sample."""
    per_token = model.flops_per_sample(sequence) / sequence
    lines = [
        *labelled("model", f"{model.name} ({model.family})", width),
        *labelled("size", f"{short(model.parameters)} parameters ({count(model.parameters)})", width),
        *labelled("shape", _shape(model), width),
        *labelled("work", f"{_flop(per_token)} a token, forward and backward, at {count(sequence)} tokens", width),
        "",
    ]
    rows = [
        _layer("embedding", 1, model.embedding, sequence),
        _layer(model.body.kind, model.num_layers, model.body, sequence),
        _layer("head (tied)" if model.tied else "head", 1, model.head, sequence),
    ]
    head = ["layer", "number", "parameters each", "all", "forward pass"]
    lines += table(head, rows, right="number,parameters each,all,forward pass")
    hyper = ", ".join(f"{key} {value}" for key, value in model.spec if isinstance(value, (bool, int, float, str)))
    return "\n".join([*lines, "", *labelled("spec", hyper, width)]) + "\n"


def _shape(model: Model) -> str:
    shared = ", head shares the embedding's weights" if model.tied else ""
    longest = f", at most {count(model.max_sequence)} tokens" if model.max_sequence > 0 else ""
    return f"{plural(model.num_layers, 'layer')}, hidden {count(model.hidden)}{longest}{shared}"


def _flop(work: float) -> str:
    """Return an amount of work with its unit; G and T, as data sheets have it."""
    return f"{work / 1e12:,.2f} TFLOP" if work >= 1e12 else f"{work / 1e9:,.2f} GFLOP"


def _layer(title: str, number: int, layer: Layer, sequence: int) -> list[str]:
    each, all_of_them = count(layer.parameters), count(number * layer.parameters)
    return [title, count(number), each, all_of_them, _flop(number * layer.flops(sequence) / sequence)]


def show_devices(devices: Sequence[Device]) -> str:
    """Return the catalogue of devices."""
    peaks = {"bf16": "bf16", "fp16": "fp16", "fp32": "fp32", "fp8": "fp8", "fp4": "nvfp4"}
    head = ["device", "GiB", "memory GB/s", *peaks, "reached", "fused attention"]
    rows = [
        [
            device.name,
            f"{device.memory / 2**30:g}",
            count(device.memory_bandwidth / 1e9),
            *(_teraflops(device.peak(name)) for name in peaks.values()),
            f"{device.matmul_efficiency:.0%}",
            "yes" if device.fused_attention else "no",
        ]
        for device in devices
    ]
    notes = [
        "bf16 to fp4: dense TFLOP/s of the data sheet; fp32 is TF32 where the matrix units have it",
        "reached: share of it in large products of 16 bits and more, inside training",
    ]
    return "\n".join([*table(head, rows, right="GiB,memory GB/s,bf16,fp16,fp32,fp8,fp4,reached"), "", *notes]) + "\n"


def _teraflops(peak: float) -> str:
    """Return a peak of a data sheet, or a dash where there is none."""
    return f"{peak / 1e12:,.0f}" if peak >= 1e15 else f"{peak / 1e12:.4g}" if peak else "-"


def show_optimizers(recipes: Sequence[OptimizerRecipe], width: int = WIDTH, *, sources: bool = False) -> str:
    """Return the bytes per parameter of each optimizer recipe; with `sources`, also where they come from."""
    head = ["optimizer", "master", "state", "gradient", "moved", "what it keeps"]
    rows = [
        [
            recipe.name,
            f"{recipe.master_bytes:g}",
            f"{recipe.state_bytes:g}",
            f"{recipe.gradient_bytes:g}" if recipe.gradient_bytes is not None else "-",
            f"{recipe.update_bytes:g}",
            recipe.summary,
        ]
        for recipe in recipes
    ]
    lines = worded(head, rows, width, right="master,state,gradient,moved")
    lines += ["", *labelled("", "bytes a parameter; - the framework's; moved: memory traffic of the step", width)]
    for recipe in recipes if sources else ():
        lines += ["", *labelled("source", recipe.source, width)]
    return "\n".join(lines) + "\n"


def show_frameworks(frameworks: Sequence[Framework], width: int = WIDTH, *, sources: bool = False) -> str:
    """Return what each framework can carry; with `sources`, also where that and its profile come from."""
    head = ["framework", "ZeRO", "with pp", "cp", "uneven", "mixed", "schedules"]
    rows = [
        [
            framework.name,
            _stages(framework.can.zero_stages),
            _stages(framework.can.zero_stages_pipeline) or "no pp",
            ", ".join(framework.can.cp_comm_types) or "no",
            "yes" if framework.can.uneven_layers else "no",
            "yes" if framework.can.mixed_devices else "no",
            ", ".join(framework.can.schedules) or "-",
        ]
        for framework in frameworks
    ]
    lines = worded(head, rows, width)
    note = "cp: how context ranks exchange; uneven: stages of unlike numbers of layers; mixed: unlike devices in a plan"
    lines += ["", *labelled("", note, width, indent=0)]
    checked = [[framework.name, framework.can.version] for framework in frameworks]
    lines += ["", *table(["framework", "checked for"], checked)]
    for framework in frameworks if sources else ():
        lines += ["", *labelled("profile", framework.source, width), "", *labelled("can", framework.can.source, width)]
    return "\n".join(lines) + "\n"


def _stages(stages: Sequence[int]) -> str:
    return ",".join(map(str, stages))
