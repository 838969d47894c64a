"""Which runs a calibration uses: those of one kind of device under one framework whose step time can be predicted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from planner.accuracy.refusal import NotJudgedError
from planner.accuracy.run import Run
from planner.accuracy.setting import Setting, setting
from planner.domain.cluster import Cluster, Device, DeviceGroup
from planner.errors import SpecError

NO_TIME = "no measured step time"
UNLIKE = "on unlike devices, of which one machine has one kind"
FLAGGED = "flagged; --flagged keeps it"


@dataclass(frozen=True, slots=True)
class Row:
    """A run that is used."""

    run: Run
    setting: Setting
    time: float
    """[s] of a step, measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The runs that are used, and why others are not."""

    used: tuple[Row, ...]
    framework: str
    """Name of the profile."""
    device: str
    """Name in the catalogue."""
    left_out: tuple[tuple[str, int], ...]
    """Reason and number of runs; the most frequent first."""


def usable(runs: Sequence[Run], *, device: str = "", framework: str = "", flagged: bool = False) -> Rows:
    """Return the runs that a calibration uses.

    Args:
        runs: all of them.
        device: name in the catalogue of the only device; empty for any.
        framework: name of the only profile; empty for any.
        flagged: whether doubtful runs are used.

    Raises:
        SpecError: there is none, or they are of several devices or profiles.

    """
    left_out: Counter[str] = Counter()
    rows = []
    for run in runs:
        row = _row(run, flagged=flagged)
        reason = row if isinstance(row, str) else _otherwise(row, device, framework)
        if reason:
            left_out[reason] += 1
        elif isinstance(row, Row):
            rows.append(row)
    if not rows:
        reasons = "; ".join(f"{reason}: {number}" for reason, number in _ordered(left_out))
        raise SpecError.of("", f"none of the {len(runs):,} runs can be used ({reasons}); add runs that can")
    unlike = _unlike(rows)
    if len(unlike) < len(rows):
        left_out["another run of a layout, of which the median counts"] = len(rows) - len(unlike)
    return Rows(
        used=tuple(unlike),
        framework=_only(rows, "frameworks", "--framework", (row.setting.profile for row in rows)),
        device=_only(rows, "devices", "--device", (device_of(row).name for row in rows)),
        left_out=_ordered(left_out),
    )


def _unlike(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each layout, with the median of its times: repetitions tell nothing new of the constants."""
    alike: dict[Hashable, list[Row]] = defaultdict(list)
    for row in rows:
        alike[row.setting.kind, row.setting.layout].append(row)
    return [replace(same[0], time=median(row.time for row in same)) for same in alike.values()]


def device_of(row: Row) -> Device:
    """Return the device of a run."""
    return row.setting.layout.group.device


def placed(rows: Rows, group: DeviceGroup) -> Rows:
    """Return the rows on the device and links of `group`; a bandwidth that was measured in the same job stays."""
    return replace(rows, used=tuple(_placed(row, group) for row in rows.used))


def group_of(cluster: Cluster, device: str, origin: str) -> DeviceGroup:
    """Return the group of a cluster whose device is called `device`.

    Raises:
        SpecError: there is none, or several.

    """
    found = [group for group in cluster.groups if group.device.name == device]
    if not found:
        names = ", ".join(dict.fromkeys(group.device.name for group in cluster.groups))
        raise SpecError.of(origin, f"has no group of {device}, which the runs used; it has {names}")
    if len(found) > 1:
        names = " and ".join(group.name for group in found)
        raise SpecError.of(origin, f"has several groups of {device} ({names}); name a cluster with one of them alone")
    return found[0]


def _row(run: Run, *, flagged: bool) -> Row | str:
    """Return a run as it is used, or why it is not."""
    if run.step_time is None:
        return NO_TIME
    if run.flag and not flagged:
        return FLAGGED
    try:
        found = setting(run)
    except NotJudgedError as error:
        return str(error)
    return UNLIKE if found.places else Row(run, found, run.step_time)


def _otherwise(row: Row, device: str, framework: str) -> str:
    """Return why a row is not what was asked for; empty if it is."""
    if device and device_of(row).name != device:
        return f"another device than {device}"
    return f"another framework than {framework}" if framework and row.setting.profile != framework else ""


def _only(rows: Sequence[Row], what: str, option: str, names: Iterable[str]) -> str:
    """Return the only one of `names`.

    Raises:
        SpecError: there are several.

    """
    counted = Counter(names)
    if len(counted) > 1:
        shown = ", ".join(f"{name} {number:,}" for name, number in _ordered(counted))
        message = (
            f"the {len(rows):,} runs are of several {what} ({shown}); split the file, or choose with {option} NAME"
        )
        raise SpecError.of("", message)
    return next(iter(counted))


def _ordered(counted: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def _placed(row: Row, group: DeviceGroup) -> Row:
    layout = row.setting.layout
    moved = replace(layout.group, device=group.device, intra_node=group.intra_node, inter_node=group.inter_node)
    if row.run.busbw_allreduce_gbyte_per_s:
        moved = replace(moved, intra_node=layout.group.intra_node, inter_node=layout.group.inter_node)
    return replace(row, setting=replace(row.setting, layout=replace(layout, group=moved)))
