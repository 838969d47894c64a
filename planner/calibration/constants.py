"""What a calibration may change, and within which bounds: few constants with strong priors.

Freed constants that swap with one another fit their own runs and no others, so that everything else keeps its prior.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from planner.costs.layer import attention_kernel
from planner.costs.uniform import Uniform
from planner.domain.model import Number
from planner.domain.precision import PRECISIONS
from planner.units import MICROSECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """One constant: a factor on what the catalogue says."""

    key: str
    """As in the cluster file."""
    deviation: float
    """[-] standard deviation of the prior on the logarithm of the factor."""
    low: float
    """In the unit of the key, as `high`: what is physically possible, widened where the catalogue is outside."""
    high: float
    value: Callable[[Uniform], float]
    """In the unit of the key, of one layout."""
    scaled: Callable[[Uniform, Number], Uniform]
    """A layout, or many, with the constant times a factor."""
    matters: Callable[[Uniform], bool]
    """Whether the time of one layout depends on it."""


def constants(layouts: Sequence[Uniform]) -> list[Constant]:
    """Return the constants on which the layouts depend, those first that are to be freed first."""
    rates = Counter(efficiency_key(layout) for layout in layouts)
    efficiencies = [_efficiency(key) for key, _ in sorted(rates.items(), key=lambda item: (-item[1], item[0]))]
    return [one for one in (*efficiencies, *_OTHERS) if any(one.matters(layout) for layout in layouts)]


def efficiency_key(layout: Uniform) -> str:
    """Return the key of the efficiency at which a layout's matrix products run."""
    rate = PRECISIONS[layout.job.precision].rate
    own = rate in dict(layout.group.device.efficiencies)
    return f"{rate}_efficiency" if own else "matmul_efficiency"


def _efficiency(key: str) -> Constant:
    def scaled(layout: Uniform, factor: Number) -> Uniform:
        device = layout.group.device
        if key == "matmul_efficiency":
            changed = replace(device, matmul_efficiency=device.matmul_efficiency * factor)
        else:
            shares = (
                (rate, share * factor if key == f"{rate}_efficiency" else share) for rate, share in device.efficiencies
            )
            changed = replace(device, efficiencies=tuple(shares))
        return replace(layout, group=replace(layout.group, device=changed))

    return Constant(
        key=key,
        deviation=0.15,
        low=0.1,
        high=0.95,  # the best that is measured on a product alone, without a model around it
        value=lambda layout: float(layout.group.device.efficiency(layout.job.precision)),
        scaled=scaled,
        matters=lambda layout: efficiency_key(layout) == key,
    )


def _launch_floor(layout: Uniform, factor: Number) -> Uniform:
    framework = layout.framework
    return replace(layout, framework=replace(framework, launch_floor=framework.launch_floor * factor))


def _elementwise(layout: Uniform, factor: Number) -> Uniform:
    """Scale both factors on memory-bound passes: runs do not tell them apart."""
    framework = layout.framework
    outer, inner = framework.elementwise * factor, framework.elementwise_inner * factor
    return replace(layout, framework=replace(framework, elementwise=outer, elementwise_inner=inner))


def _softmax_bytes(layout: Uniform, factor: Number) -> Uniform:
    framework = layout.framework
    return replace(layout, framework=replace(framework, softmax_bytes=framework.softmax_bytes * factor))


def _network(layout: Uniform, factor: Number) -> Uniform:
    network = layout.group.inter_node
    scaled = replace(network, efficiency=network.efficiency * factor)
    return replace(layout, group=replace(layout.group, inter_node=scaled))


_OTHERS = (
    Constant(
        key="launch_floor_us",
        deviation=0.7,
        low=50.0,
        high=5000.0,
        value=lambda layout: round(layout.framework.launch_floor / MICROSECOND, 9),
        scaled=_launch_floor,
        matters=lambda layout: layout.framework.launch_floor > 0,
    ),
    Constant(
        key="elementwise",
        deviation=0.5,
        low=0.8,
        high=8.0,
        value=lambda layout: layout.framework.elementwise,
        scaled=_elementwise,
        matters=lambda layout: layout.framework.elementwise > 0,
    ),
    Constant(
        key="softmax_bytes",
        deviation=0.4,
        low=2.0,
        high=20.0,
        value=lambda layout: layout.framework.softmax_bytes,
        scaled=_softmax_bytes,
        matters=lambda layout: not attention_kernel(layout.job, layout.framework, layout.group).fused,
    ),
    Constant(
        key="inter_node_efficiency",
        deviation=0.4,
        low=0.2,
        high=1.0,
        value=lambda layout: layout.group.inter_node.efficiency,
        scaled=_network,
        matters=lambda layout: layout.group.num_nodes > 1 and not layout.group.inter_node.measured,
    ),
)
