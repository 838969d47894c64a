"""The batch over meshes with data degrees of their own (FS3)."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.flagscale.meshes import ARGUMENTS, meshes
from planner.domain.configuration import Configuration


def micro_batches(configuration: Configuration) -> int:
    """Return the micro-batches of a step, the same in all meshes; 0 where they are not known or do not come out."""
    found = meshes(configuration)
    at_once = configuration.number("micro_batch_size") * (found[0].dp if found else 0)
    total = configuration.number("global_batch_size")
    return total // at_once if at_once and total and total % at_once == 0 else 0


def _shared(configuration: Configuration) -> Iterator[Complaint]:
    found, size = meshes(configuration), configuration.number("micro_batch_size")
    for index, mesh in enumerate(found):
        if size and found[0].dp * size % mesh.dp:
            message = f"{size} x dp {found[0].dp} of the first mesh = {found[0].dp * size} samples at once"
            yield "micro_batch_size", f"{message} do not divide over dp {mesh.dp} of mesh {index}; change one of them"


def _whole(configuration: Configuration) -> Iterator[Complaint]:
    found = meshes(configuration)
    size, total = configuration.number("micro_batch_size"), configuration.number("global_batch_size")
    if found and size and total % (size * found[0].dp):
        at_once = f"micro_batch_size {size} x dp {found[0].dp} of the first mesh = {size * found[0].dp}"
        near = max(1, round(total / (size * found[0].dp))) * size * found[0].dp
        yield "global_batch_size", f"is {total}, which {at_once} does not divide; write {near}"


RULES = (
    Rule(
        code="FS301",
        name="Every mesh gets whole samples",
        summary="dp of the first mesh x micro_batch_size divides by dp of every mesh",
        why="micro_batch_size is that of the first mesh; another mesh works on dp_first micro_batch_size / dp samples.",
        source=ARGUMENTS,
        check=_shared,
    ),
    Rule(
        code="FS302",
        name="The batch is whole micro-batches",
        summary="global_batch_size divides by micro_batch_size x dp of the first mesh",
        why="All meshes run the same number of micro-batches.",
        source=ARGUMENTS,
        check=_whole,
    ),
)
"""In the order of their codes."""
