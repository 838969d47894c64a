"""Measured layers: the CSV of a profile, or the rows that a plan file embeds, to the domain and back."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.domain.profile import LayerProfile, LayerTimes, ProfileRow
from planner.errors import Problem, SpecError
from planner.loader.words import finite, integer
from planner.specs import catalog
from planner.specs.cluster_record import GroupRecord, ProfileBlock
from planner.specs.files import read_text

COUNTS = ("tp", "micro_batch")
KEYS = (*COUNTS, "layer")
TIMES = ("forward_s", "backward_s", "update_s")
COLUMNS = ("device", *KEYS, *TIMES)
"""What the header of a profile must have; other columns mean nothing."""
PROBLEMS_MAX = 20
"""Problems of one file that are told."""

Layers = Mapping[int, LayerTimes]
"""Times by layer: 0 the embedding, the last one the head."""


def read_profiles(groups: Sequence[GroupRecord], folder: Path) -> tuple[LayerProfile | None, ...]:
    """Return the profile of each group, None where it has none; files are named as seen from `folder`.

    Raises:
        SpecError: a file cannot be used; with the problems of all files.

    """
    found = [_found(group, folder) for group in groups]
    problems = [problem for _, wrong in found for problem in wrong]
    if problems:
        raise SpecError(list(dict.fromkeys(problems)))
    return tuple(profile for profile, _ in found)


def _found(group: GroupRecord, folder: Path) -> tuple[LayerProfile | None, tuple[Problem, ...]]:
    """Return the profile of a group and no problems, or None and what is wrong with it."""
    try:
        return (_profile(group.profile, _names(group), folder) if group.profile else None), ()
    except SpecError as error:
        return None, error.problems


def profile_record(profile: LayerProfile) -> dict[str, Any]:
    """Return a profile as a plain record that holds its rows."""
    return {
        "device": profile.device,
        "layers": profile.num_layers,
        **({"hidden_size": profile.hidden} if profile.hidden else {}),
        "sequence": profile.sequence,
        "precision": profile.precision,
        "rows": [
            {
                "tp": row.tp,
                "micro_batch": row.micro_batch,
                "embedding_s": _seconds(row.embedding),
                "body_s": _seconds(row.body),
                "head_s": _seconds(row.head),
            }
            for row in profile.rows
        ],
    }


def _seconds(times: LayerTimes) -> list[float]:
    return [times.forward, times.backward, times.update]


def _names(group: GroupRecord) -> tuple[str, ...]:
    """Return what a profile may call the device of a group."""
    if group.profile and group.profile.device:
        return (group.profile.device,)
    name = group.device if isinstance(group.device, str) else group.device.device
    if name is None:
        return tuple(filter(None, [getattr(group.device, "name", None)]))
    row = catalog.device_row(name)
    return (row.device.name, *row.aliases)


def _profile(block: ProfileBlock, names: tuple[str, ...], folder: Path) -> LayerProfile:
    rows = _rows_of(block, names, folder) if block.file else map(_embedded, block.rows)
    return LayerProfile(
        device=names[0],
        num_layers=block.layers,
        hidden=block.hidden_size or 0,
        sequence=block.sequence,
        precision=block.precision,
        rows=tuple(sorted(rows, key=lambda row: (row.tp, row.micro_batch))),
    )


def _embedded(row: Any) -> ProfileRow:
    embedding, body, head = (
        LayerTimes(forward=forward, backward=backward, update=update)
        for forward, backward, update in (row.embedding_s, row.body_s, row.head_s)
    )
    return ProfileRow(tp=row.tp, micro_batch=row.micro_batch, embedding=embedding, body=body, head=head)


def _rows_of(block: ProfileBlock, names: tuple[str, ...], folder: Path) -> list[ProfileRow]:
    """Return the rows of a device in a CSV file.

    Raises:
        SpecError: with every problem of the file.

    """
    text, origin = read_text(str(folder / (block.file or "")))
    layers: dict[tuple[int, int], dict[int, LayerTimes]] = defaultdict(dict)
    problems: list[Problem] = []
    for line, cells in _cells(text, origin, names):
        numbers = {key: _number(cells[key], key) for key in (*KEYS, *TIMES)}
        wrong = [f"{key} should be {_wanted(key)}, not {cells[key]!r}" for key, value in numbers.items() if value < 0]
        tp, micro_batch, layer = (int(numbers[key]) for key in KEYS)
        if not wrong and layer in layers[tp, micro_batch]:
            wrong = [f"layer {layer} of tp {tp} and micro_batch {micro_batch} stands there twice; keep one"]
        problems += [Problem(f"{origin}:{line}", message) for message in wrong]
        forward, backward, update = (numbers[key] for key in TIMES)
        layers[tp, micro_batch][layer] = LayerTimes(forward=forward, backward=backward, update=update)
    if problems:
        raise SpecError(problems[:PROBLEMS_MAX])
    return [_row(*key, found, block, origin) for key, found in layers.items()]


def _cells(text: str, origin: str, names: tuple[str, ...]) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield line and cells of each row of a device.

    Raises:
        SpecError: the table cannot be read, or has no such device.

    """
    reader = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True, restval="")
    try:
        rows = [(reader.line_num, cells) for cells in reader]
    except csv.Error as error:
        raise SpecError.of(f"{origin}:{reader.line_num}", f"is broken CSV ({error}); write plain numbers") from None
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise SpecError.of(f"{origin}:1", f"has no column {', '.join(missing)}; a profile has {', '.join(COLUMNS)}")
    wanted, others, found = {catalog.simple(name) for name in names}, set(), False
    for line, cells in rows:
        if catalog.simple(cells["device"]) in wanted:
            found = True
            yield line, cells
        else:
            others.add(cells["device"])
    if not found:
        has = ", ".join(sorted(others)) or "no rows"
        raise SpecError.of(origin, f"has no rows of {names[0]}; it has {has}: say which one with `device` in profile")


def _number(text: str, key: str) -> float:
    """Return the number in a column, whole and at least 1 where the column asks for it; below 0 if it is none."""
    try:
        value = float(integer(text.strip()) if key in KEYS else finite(text.strip()))
    except ValueError:
        return -1.0
    return -1.0 if value < 1 and key in COUNTS else value


def _wanted(key: str) -> str:
    """Return what a column holds."""
    return "a whole number, at least 1" if key in COUNTS else "a whole number" if key in KEYS else "seconds"


def _row(tp: int, micro_batch: int, layers: Layers, block: ProfileBlock, origin: str) -> ProfileRow:
    """Return the layers at one tensor degree and micro-batch, those of the body as their mean."""
    here, last = f"tp {tp} and micro_batch {micro_batch}", block.layers + 1
    if sorted(layers) != list(range(last + 1)):
        message = f"at {here} should have layers 0 (embedding) to {last} (head), for the {block.layers} of the profile"
        raise SpecError.of(origin, f"{message}; it has {len(layers)}, the last being {max(layers)}")
    body = [layers[index] for index in range(1, last)]
    mean = LayerTimes(
        forward=sum(times.forward for times in body) / len(body),
        backward=sum(times.backward for times in body) / len(body),
        update=sum(times.update for times in body) / len(body),
    )
    if not (mean.forward and mean.backward and mean.update):
        raise SpecError.of(origin, f"at {here} has body layers that take no time; leave out what was not measured")
    return ProfileRow(tp=tp, micro_batch=micro_batch, embedding=layers[0], body=mean, head=layers[last])
