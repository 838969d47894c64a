"""The context degree, its levels and its exchanges."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import rule
from planner.domain.configuration import WARNING

CP = "context_parallel_size"


def _hierarchical(facts: Facts) -> Iterator[Complaint]:
    sizes = facts.value("hierarchical_context_parallel_sizes")
    if isinstance(sizes, list) and facts.cp and prod(sizes) != facts.cp:
        product = " x ".join(map(str, sizes))
        yield (
            "hierarchical_context_parallel_sizes",
            f"{product} = {prod(sizes)} should be the context degree, {facts.cp}",
        )


def _two_levels(facts: Facts) -> Iterator[Complaint]:
    kinds = facts.value("cp_comm_type")
    if isinstance(kinds, list) and "a2a+p2p" in kinds and facts.value("hierarchical_context_parallel_sizes") is None:
        yield (
            "cp_comm_type",
            (
                "--cp-comm-type a2a+p2p needs --hierarchical-context-parallel-sizes A B, with A x B the context degree"
                f"{f', {facts.cp},' if facts.cp else ''} and A ranks that exchange heads inside a node"
            ),
        )


def _context_without_use(facts: Facts) -> Iterator[Complaint]:
    if "cp_comm_type" in facts.of and facts.cp == 1:
        yield "cp_comm_type", "--cp-comm-type does nothing with a context degree of 1; give --context-parallel-size"


CONTEXT = (
    rule(
        "MG108",
        "Levels of context parallelism multiply to its degree",
        "prod(hierarchical sizes) = cp",
        _hierarchical,
        "The first level exchanges heads inside a node, the second keys and values in a ring between nodes.",
        needs=(CP,),
    ),
    rule(
        "MG109",
        "Two-level context parallelism has its levels",
        "a2a+p2p => --hierarchical-context-parallel-sizes",
        _two_levels,
        "Without the sizes the groups cannot be built, and validate_args asserts them.",
        needs=(CP,),
    ),
    rule(
        "MG112",
        "A kind of exchange has context ranks",
        "--cp-comm-type => cp > 1",
        _context_without_use,
        "The flag alone switches nothing on; a forgotten degree is the usual cause.",
        needs=(CP,),
        severity=WARNING,
        caught=False,
    ),
)
