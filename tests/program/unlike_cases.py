"""Every plan with several kinds of pipelines, kind by kind, without the search that it judges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
from exhaustive import Exhaustive, Option, Setting

from builders import Planning
from planner.costs.crossing import Beyond, crossing


class Unlike(Exhaustive):
    """Plans in which each of two or more groups has pipelines of its own: one option, one number of stages.

    Each pipeline has at least as many micro-batches as stages; gradients are whole (ZeRO 0 or 1); schedule 1f1b.
    """

    def __init__(self, asked: Planning) -> None:
        """Find the options that the job admits."""
        super().__init__(asked)
        self._alone = 0
        self._steps: dict[Setting, dict[int, set[tuple[float, float]]]] = {}

    def sequences(self, replicas: int, stages: int) -> list[tuple[int, ...]]:  # noqa: ARG002
        """Return the one option that is priced, at every position."""
        return [(self._alone,) * stages]

    @property
    def best(self) -> float:
        """[s] the smallest step, infinite if nothing fits."""
        return min((step for meeting in self._meetings() for step in self._met(*meeting)), default=np.inf)

    def _meetings(self) -> Iterator[tuple[tuple[str, ...], int]]:
        names = list(dict.fromkeys(option.group.name for option in self.options))
        constraints = self.asked.job.constraints
        schedules = [c.value for c in constraints if c.subject == "schedule"]
        if not self.unequal or set(schedules) - {"1f1b"} or not self._allowed("vpp", 1):
            return
        for size in range(2, len(names) + 1):
            yield from product(combinations(names, size), (0, 1))

    def _met(self, groups: tuple[str, ...], zero: int) -> Iterator[float]:
        batch = self.asked.job.global_batch
        sizes = [self.asked.cluster.group(name).num_devices for name in groups]
        for numbers in product(*(range(1, size + 1) for size in sizes)):
            if sum(numbers) > batch or not self._allowed("dp", sum(numbers)):
                continue
            reached: dict[int, set[tuple[float, float]]] = {0: {(0.0, 0.0)}}
            for name, here in zip(groups, numbers, strict=True):
                own = self._shares(groups, name, zero, sum(numbers), here)
                grown: dict[int, set[tuple[float, float]]] = {}
                for (done, slowest), (samples, steps) in product(reached.items(), own.items()):
                    if done + samples <= batch:
                        both = {(max(e, f), max(y, z)) for (e, y), (f, z) in product(slowest, steps)}
                        grown.setdefault(done + samples, set()).update(both)
                reached = {samples: undominated(steps) for samples, steps in grown.items()}
            yield from (passes + sync for passes, sync in reached.get(batch, ()))

    def _shares(
        self, groups: tuple[str, ...], name: str, zero: int, replicas: int, here: int
    ) -> dict[int, set[tuple[float, float]]]:
        """Return samples -> [s] the passes and exchange of `here` replicas on a group that work on so many."""
        found: dict[int, set[tuple[float, float]]] = {}
        batch, between = self.asked.job.global_batch, crossing(groups, self.asked.cluster)
        assert between is not None
        beyond = Beyond(crossing=between, here=here)
        for index, option in enumerate(self.options):
            if option.group.name != name or option.split > 1:
                continue
            for samples, stages in product(range(1, batch + 1), range(1, self.asked.model.num_layers + 1)):
                if batch % samples or not self._possible(option, samples, stages, zero, here):
                    continue
                least = here * (max(1, stages))
                for total in range(least, batch // samples + 1):
                    for recompute in self._recomputes():
                        most = -(-total // here)
                        setting = Setting("1f1b", zero, replicas, samples, most, stages, recompute, 1, beyond)
                        found.setdefault(total * samples, set()).update(self._step(setting, index))
        return {samples: undominated(steps) for samples, steps in found.items() if steps}

    def _possible(self, option: Option, samples: int, stages: int, zero: int, here: int) -> bool:
        asked, group = self.asked, option.group
        blocks = group.num_nodes * (group.devices_per_node // option.block)
        limits = [int(c.value) for c in asked.job.constraints if c.subject == f"group {group.name}"]
        able = asked.framework.can.zero_stages if stages == 1 else asked.framework.can.zero_stages_pipeline
        written = any(c.subject == "zero" for c in asked.job.constraints)
        return (
            here * stages <= blocks
            and all(here * stages * option.block <= limit for limit in limits)
            and self._allowed("pp", stages)
            and self._allowed("micro_batch", samples)
            and self._allowed("zero", zero)
            and (written or zero in able)
        )

    def _step(self, setting: Setting, index: int) -> set[tuple[float, float]]:
        """Return the passes and the longest exchange [s] of all ways to spread the layers that are worth a look."""
        known = self._steps.setdefault(setting, {})
        if index not in known:
            self._alone = index
            plans = self.plans(setting)
            fill = (plans.forward + plans.backward).sum(axis=1) + (plans.ahead + plans.back).sum(axis=1)
            passes = (setting.passes - 1) * plans.bottlenecks + fill if len(plans.layers) else np.zeros(0)
            syncs = plans.sync.max(axis=1, initial=0.0)
            known[index] = undominated(set(zip(passes.tolist(), syncs.tolist(), strict=True)))
        return known[index]


def undominated(steps: set[tuple[float, float]]) -> set[tuple[float, float]]:
    """Return the pairs that no other one is below in both."""
    kept: set[tuple[float, float]] = set()
    lowest = np.inf
    for passes, sync in sorted(steps):
        if sync < lowest:
            kept.add((passes, sync))
            lowest = sync
    return kept
