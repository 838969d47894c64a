"""Links as they are written: inside a node, between nodes, above them and between groups."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag, model_validator

from planner.specs import catalog
from planner.specs.record import Amount, Count, Positive, Record, Several, Share, Switch, Text, known, one_rate


class LinkRate(Record):
    """What collectives of some devices of a node reach: the bus bandwidth that ``all_reduce_perf -g N`` prints."""

    devices: Several = Field(description="Devices of one node that took part.")
    bandwidth_gbyte_per_s: Positive = Field(description="[10^9 bytes/s] bus bandwidth of large messages.")


class NetworkRate(Record):
    """What collectives of all devices of some nodes reach: the bus bandwidth that ``all_reduce_perf`` prints."""

    nodes: Several | None = Field(None, description="Nodes that took part, all devices of each.")
    devices: Several | None = Field(None, description="Devices of these nodes together, instead of the nodes.")
    bandwidth_gbyte_per_s: Positive = Field(description="[10^9 bytes/s] bus bandwidth of large messages.")

    @model_validator(mode="after")
    def has_one_scale(self) -> NetworkRate:
        """Demand the nodes or the devices."""
        if (self.nodes is None) == (self.devices is None):
            raise ValueError("should say either nodes or devices: how many took part")
        return self


class LinkBlock(Record):
    """A link inside a node, per device and direction: a row of the catalogue with changes, or figures of its own."""

    name: Text | None = None
    link: Annotated[str, AfterValidator(known(catalog.link))] | None = Field(None, description="Row of the catalogue.")
    bandwidth_gbyte_per_s: Positive | None = Field(None, description="[10^9 bytes/s] one direction, per device.")
    bandwidth_gbit_per_s: Positive | None = Field(None, description="[10^9 bits/s] one direction, per device.")
    efficiency: Share | None = Field(None, description="[-] share of the bandwidth that large messages reach.")
    latency_us: Amount | None = Field(None, description="[1e-6 s] of one message.")
    measured: list[LinkRate] = Field([], description="By number of devices, ascending; replaces rate and efficiency.")

    @model_validator(mode="after")
    def has_one_rate(self) -> LinkBlock:
        """Demand a rate, unless the catalogue has it or it was measured."""
        rates = ("bandwidth_gbyte_per_s", "bandwidth_gbit_per_s")
        if any(getattr(self, rate) is not None for rate in rates) or not (self.link or self.measured):
            one_rate(self, *rates)
        return self


class NetworkBlock(Record):
    """A network between nodes, per node and direction: a row of the catalogue with changes, or figures of its own."""

    name: Text | None = None
    network: Annotated[str, AfterValidator(known(catalog.network))] | None = Field(
        None, description="Row of the catalogue, which the other keys change."
    )
    rails: Count | None = Field(None, description="Network cards of a node; one device uses one, or its share.")
    rail_gbit_per_s: Positive | None = Field(None, description="[10^9 bits/s] of one rail.")
    bandwidth_gbyte_per_s: Positive | None = Field(None, description="[10^9 bytes/s] of all rails together.")
    bandwidth_gbit_per_s: Positive | None = Field(None, description="[10^9 bits/s] of all rails together.")
    efficiency: Share | None = Field(None, description="[-] share of the bandwidth that large messages reach.")
    latency_us: Amount | None = Field(None, description="[1e-6 s] of one message.")
    measured: list[NetworkRate] = Field([], description="By scale, ascending; replaces rate, efficiency and tiers.")

    @model_validator(mode="after")
    def has_one_rate(self) -> NetworkBlock:
        """Demand a rate, unless the catalogue has it or it was measured."""
        rates = ("rail_gbit_per_s", "bandwidth_gbyte_per_s", "bandwidth_gbit_per_s")
        if any(getattr(self, rate) is not None for rate in rates) or not (self.network or self.measured):
            one_rate(self, *rates)
        return self


class TierBlock(Record):
    """A level above the node, such as a rack or a pod."""

    name: Text
    nodes: Count = Field(description="Nodes that it spans.")
    bandwidth_gbyte_per_s: Positive | None = Field(None, description="[10^9 bytes/s] per node, out of the tier.")
    bandwidth_gbit_per_s: Positive | None = Field(None, description="[10^9 bits/s] per node, out of the tier.")

    @model_validator(mode="after")
    def has_one_rate(self) -> TierBlock:
        """Demand a rate."""
        one_rate(self, "bandwidth_gbyte_per_s", "bandwidth_gbit_per_s")
        return self


LinkField = Annotated[
    Annotated[str, AfterValidator(known(catalog.link)), Tag("<name>")] | Annotated[LinkBlock, Tag("<block>")],
    Switch,
]
NetworkField = Annotated[
    Annotated[str, AfterValidator(known(catalog.network)), Tag("<name>")] | Annotated[NetworkBlock, Tag("<block>")],
    Switch,
]


class GroupLinkRecord(Record):
    """What connects two groups."""

    between: list[Text] = Field(min_length=2, max_length=2, description="Names of the two groups.")
    transport: Literal["rdma", "tcp", "node"] = "rdma"
    bandwidth_gbyte_per_s: Positive | None = Field(None, description="[10^9 bytes/s] per node; per device for `node`.")
    bandwidth_gbit_per_s: Positive | None = Field(None, description="[10^9 bits/s] per node; per device for `node`.")
    efficiency: Share | None = Field(None, description="[-] share of the bandwidth that large messages reach.")
    latency_us: Amount | None = Field(None, description="[1e-6 s] of one message.")

    @model_validator(mode="after")
    def has_one_rate(self) -> GroupLinkRecord:
        """Demand a rate."""
        one_rate(self, "bandwidth_gbyte_per_s", "bandwidth_gbit_per_s")
        return self
