"""Which nodes a launch script starts its ranks on, in their order and how many on each, and what stages get of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, groupby, pairwise

from planner.configurations.launch import Allocation, per_node
from planner.configurations.shell import Script, Text, follow
from planner.domain.configuration import Setting, Spot

Nodes = tuple[tuple[str, int], ...]
"""(kind, ranks on all of them) of nodes of a kind that follow one another, in the order of the ranks."""
LISTED = "NODES"
"""Array of a script with the names of its nodes in the order of their ranks; scripts of ``planner export`` have it."""
RANK = ("NODE_RANK", "SLURM_NODEID")
"""Variables with the number of a node."""
_BOUND = re.compile(r"\$\{?NODE_RANK\}?\"? -lt ([0-9]{1,7})\b")
"""From where on nodes may be used otherwise than those before."""
_NUMBER = re.compile(r"-[0-9]+\Z")
"""What follows the name of its group in a node's."""
MOST = 32
"""Runs of nodes that are followed through a script one by one."""


def nodes(text: str, given: Allocation, script: Script, command: Callable[[Script], Sequence[Text]]) -> Nodes:
    """Return the nodes of a launch script; nothing where it does not name all of them, or not the ranks of each.

    Args:
        text: of the script.
        given: what Slurm allocates.
        script: the same, followed.
        command: a script -> the words of its launch command up to the program.
    """
    kinds = _listed(script) or list(given.kinds)
    starts = [0, *accumulate(number for _, number in kinds)]
    total = starts.pop()
    bounds = sorted({0, *(bound for bound in map(int, _BOUND.findall(text)) if bound < total)})
    if not kinds or len(bounds) > MOST:
        return ()
    counts: list[int] = []
    for bound in bounds:
        own = dict.fromkeys(RANK, str(bound))
        followed = follow(text, {**given.variables, **own}) if len(bounds) > 1 else script
        counts.append(per_node(command(followed), given))
    if not all(counts):
        return ()
    cuts = sorted({*starts, *bounds})
    return tuple(
        (kinds[bisect_right(starts, begin) - 1][0], counts[bisect_right(bounds, begin) - 1] * (end - begin))
        for begin, end in pairwise([*cuts, total])
    )


def _listed(script: Script) -> list[tuple[str, int]]:
    """Return (kind, nodes) of the nodes that a script lists by name."""
    words = script.variables.arrays.get(LISTED, [])
    if not all(word.is_known for word in words):
        return []
    return [(kind, len(list(run))) for kind, run in groupby(_NUMBER.sub("", word.chars) for word in words)]


def ranks_of(found: Nodes, origin: str) -> Setting | None:
    """Return the number of ranks on all nodes, which no option of the launcher in the file `origin` says."""
    total = sum(count for _, count in found)
    return Setting(name="world size", value=total, spot=Spot(origin)) if total else None


def stage_kinds(found: Nodes, stages: int, replicas: int, width: int, *, pipelines_first: bool) -> tuple[str, ...]:
    """Return the kind of the nodes of every stage; nothing where they are not told, or a stage has several.

    Args:
        found: the nodes.
        stages: of the pipeline.
        replicas: of every stage.
        width: ranks of one replica of a stage.
        pipelines_first: whether ranks are counted pipeline after pipeline, else stage after stage.
    """
    ends = list(accumulate(count for _, count in found))
    if not ends or ends[-1] != stages * replicas * width:
        return ()
    # Blocks of ranks that are of one stage, which take turns where pipelines are counted one after another.
    block = width if pipelines_first else width * replicas
    kinds: dict[int, set[str]] = {}
    for (kind, count), end in zip(found, ends, strict=True):
        first, last = (end - count) // block, (end - 1) // block
        for number in range(first, min(last + 1, first + stages)):
            kinds.setdefault(number % stages, set()).add(kind)
    if any(len(one) > 1 for one in kinds.values()):
        return ()
    return tuple(kind for stage in range(stages) for kind in kinds[stage])
