"""Links as they are written: inside a node, between nodes, above them and between groups."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag, model_validator

from planner.specs import catalog
from planner.specs.record import Amount, Count, Factor, Positive, Record, Several, Share, Switch, Text, known, one_rate

HalfSize = Annotated[
    Amount | None, Field(description="[2^10 bytes] message that reaches half of the rate; default 0: all reach all.")
]


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


class SenderRate(Record):
    """What a node sends when so many of its devices send at once."""

    devices: Count = Field(description="Devices of the node that send.")
    bandwidth_gbyte_per_s: Positive = Field(description="[10^9 bytes/s] of large messages, together.")


class LinkBlock(Record):
    """A link inside a node, per device and direction: a row of the catalogue with changes, or figures of its own."""

    name: Text | None = None
    link: Annotated[str, AfterValidator(known(catalog.link))] | None = Field(None, description="Row of the catalogue.")
    bandwidth_gbyte_per_s: Positive | None = Field(None, description="[10^9 bytes/s] one direction, per device.")
    bandwidth_gbit_per_s: Positive | None = Field(None, description="[10^9 bits/s] one direction, per device.")
    efficiency: Share | None = Field(None, description="[-] share of the bandwidth that large messages reach.")
    latency_us: Amount | None = Field(None, description="[1e-6 s] of one message.")
    half_bandwidth_kib: HalfSize = None
    measured: list[LinkRate] = Field([], description="By number of devices, ascending; replaces rate and efficiency.")

    @model_validator(mode="after")
    def has_one_rate(self) -> LinkBlock:
        """Demand a rate, unless the catalogue has it or it was measured."""
        rates = ("bandwidth_gbyte_per_s", "bandwidth_gbit_per_s")
        if any(getattr(self, rate) is not None for rate in rates) or not (self.link or self.measured):
            one_rate(self, *rates)
        return self


class LevelBlock(LinkBlock):
    """A level below the node: a link that joins so many of its devices, such as an NVLink pair or a switch island."""

    devices: Several = Field(description="Devices of one part; as many parts as fill the node.")


class NodeLinkBlock(LinkBlock):
    """A link between all devices of a node, and the faster ones inside parts of it."""

    levels: list[LevelBlock] = Field([], description="Levels below the node, smallest first.")


class NetworkBlock(Record):
    """A network between nodes, per node and direction: a row of the catalogue with changes, or figures of its own."""

    name: Text | None = None
    network: Annotated[str, AfterValidator(known(catalog.network))] | None = Field(
        None, description="Row of the catalogue, which the other keys change."
    )
    rails: Count | None = Field(None, description="Network cards of a node; one device uses one, or its share.")
    rail_gbit_per_s: Positive | None = Field(None, description="[10^9 bits/s] of one rail.")
    rail_rates_gbit_per_s: list[Amount] | None = Field(
        None, min_length=1, description="[10^9 bits/s] of each rail where they are unlike; 0 for one that failed."
    )
    striping: Literal["pooled", "static"] | None = Field(
        None, description="Whether each rail takes what it can (the default), or all take as much as the slowest."
    )
    bandwidth_gbyte_per_s: Positive | None = Field(None, description="[10^9 bytes/s] of all rails together.")
    bandwidth_gbit_per_s: Positive | None = Field(None, description="[10^9 bits/s] of all rails together.")
    efficiency: Share | None = Field(None, description="[-] share of the bandwidth that large messages reach.")
    latency_us: Amount | None = Field(None, description="[1e-6 s] of one message.")
    half_bandwidth_kib: HalfSize = None
    measured: list[NetworkRate] = Field([], description="By scale, ascending; replaces rate, efficiency and tiers.")
    senders: list[SenderRate] = Field([], description="What a node sends at most, by its devices that send, ascending.")

    @model_validator(mode="after")
    def has_one_rate(self) -> NetworkBlock:
        """Demand a rate, unless the catalogue has it or it was measured."""
        rates = ("rail_gbit_per_s", "rail_rates_gbit_per_s", "bandwidth_gbyte_per_s", "bandwidth_gbit_per_s")
        if any(getattr(self, rate) is not None for rate in rates) or not (self.network or self.measured):
            one_rate(self, *rates)
        return self

    @model_validator(mode="after")
    def has_senders_in_order(self) -> NetworkBlock:
        """Refuse numbers of senders that do not ascend."""
        numbers = [one.devices for one in self.senders]
        if numbers != sorted(set(numbers)):
            raise ValueError("lists its senders out of order; give each number of devices once, ascending")
        return self

    @model_validator(mode="after")
    def has_rails_that_work(self) -> NetworkBlock:
        """Refuse rails that are told twice, that all failed, or that stop static striping."""
        rails = self.rail_rates_gbit_per_s
        if rails is None:
            if self.striping is not None:
                raise ValueError("has striping of rails that it does not list; add rail_rates_gbit_per_s")
            return self
        if self.rails is not None:
            raise ValueError("counts its rails twice; remove rails, since rail_rates_gbit_per_s has one entry for each")
        if not any(rails):
            raise ValueError("has no rail that works: one of rail_rates_gbit_per_s should be more than 0")
        if self.striping == "static" and not all(rails):
            raise ValueError(
                "stripes over a failed rail: with striping static one of 0 stops all; remove it from "
                "rail_rates_gbit_per_s, or write striping: pooled"
            )
        return self


class TierBlock(Record):
    """A level above the node, such as a rack or a pod."""

    name: Text
    nodes: Count = Field(description="Nodes that it spans.")
    bandwidth_gbyte_per_s: Positive | None = Field(None, description="[10^9 bytes/s] per node, out of the tier.")
    bandwidth_gbit_per_s: Positive | None = Field(None, description="[10^9 bits/s] per node, out of the tier.")
    oversubscription: Factor | None = Field(
        None, description="[-] bandwidth of the network over what is left of it out of the tier."
    )

    @model_validator(mode="after")
    def has_one_rate(self) -> TierBlock:
        """Demand a rate."""
        one_rate(self, "bandwidth_gbyte_per_s", "bandwidth_gbit_per_s", "oversubscription")
        return self


LinkField = Annotated[
    Annotated[str, AfterValidator(known(catalog.link)), Tag("<name>")] | Annotated[LinkBlock, Tag("<block>")],
    Switch,
]
NodeLinkField = Annotated[
    Annotated[str, AfterValidator(known(catalog.link)), Tag("<name>")] | Annotated[NodeLinkBlock, Tag("<block>")],
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
    half_bandwidth_kib: HalfSize = None

    @model_validator(mode="after")
    def has_one_rate(self) -> GroupLinkRecord:
        """Demand a rate."""
        one_rate(self, "bandwidth_gbyte_per_s", "bandwidth_gbit_per_s")
        return self
