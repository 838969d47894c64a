"""Meshes: what they are made of, and how ranks and kinds of devices come to them (FS1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from planner.configurations.base import Complaint, Rule
from planner.domain.configuration import Configuration

ARGUMENTS = "FlagScale, flagscale/train/arguments.py at da4935e (2025-11-13)"
CONTEXT = "FlagScale, flagscale/train/hetero/parallel_context.py at da4935e (2025-11-13)"
MOST = 100_000
"""Of a degree."""
MESHES = "hetero_process_meshes"
TYPES = "hetero_device_types"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """Five numbers of the list."""

    tp: int
    cp: int
    ep: int
    dp: int
    pp: int

    @property
    def ranks(self) -> int:
        """Ranks of all its stages."""
        return self.tp * self.cp * self.dp * self.pp


def hetero(configuration: Configuration) -> bool:
    """Return whether meshes are in use."""
    return configuration.on("enable_hetero")


def meshes(configuration: Configuration) -> tuple[Mesh, ...]:
    """Return the meshes in use; none where there are none, or their list is broken."""
    found = configuration.get(MESHES)
    if not hetero(configuration) or not isinstance(found, list) or len(found) % 5 or not all(map(_degree, found)):
        return ()
    rows = [found[at : at + 5] for at in range(0, len(found), 5)]
    return tuple(Mesh(tp=tp, cp=cp, ep=ep, dp=dp, pp=pp) for tp, cp, ep, dp, pp in rows)


def _degree(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST


def _groups_of_five(configuration: Configuration) -> Iterator[Complaint]:
    found = configuration.get(MESHES)
    if not hetero(configuration) or meshes(configuration):
        return
    form = "each mesh is five numbers from 1 on: tp, cp, ep, dp, pp, such as [2, 1, 1, 4, 1, 4, 1, 1, 2, 1]"
    if not isinstance(found, list) or not found:
        yield "enable_hetero", f"meshes are switched on and {MESHES} says none; {form}"
    elif len(found) % 5:
        yield MESHES, f"has {len(found)} numbers, which is no multiple of five; {form}"
    else:
        yield MESHES, f"has a number that is no degree; {form}"


def _stages(configuration: Configuration) -> Iterator[Complaint]:
    found, pp = meshes(configuration), configuration.number("pipeline_model_parallel_size")
    total = sum(mesh.pp for mesh in found)
    if found and total != pp:
        sums = " + ".join(str(mesh.pp) for mesh in found)
        message = f"is {pp}, and the meshes have {sums} = {total} stages; write pipeline_model_parallel_size: {total}"
        yield "pipeline_model_parallel_size", message


def _ranks(configuration: Configuration) -> Iterator[Complaint]:
    found, world = meshes(configuration), configuration.world
    total = sum(mesh.ranks for mesh in found)
    if found and world is not None and world.value != total:
        sums = " + ".join(str(mesh.ranks) for mesh in found)
        message = f"need tp x cp x dp x pp ranks each, {sums} = {total} together, and {world.value} are started"
        yield MESHES, f"{message}; change dp or pp of a mesh, or the nodes"


def _types(configuration: Configuration) -> Iterator[Complaint]:
    found, types = meshes(configuration), configuration.get(TYPES)
    if not found:
        return
    if not isinstance(types, list):
        yield MESHES, f"needs {TYPES}, one for each of its {len(found)} meshes, such as [A100, V100]"
    elif len(types) != len(found):
        yield TYPES, f"names {len(types)} types for {len(found)} meshes; name one for each, in their order"
    current = configuration.get("hetero_current_device_type")
    if isinstance(types, list) and types and current is not None and current not in types:
        message = f"is {current!r}, which is none of {', '.join(map(str, types))}; name one of these"
        yield "hetero_current_device_type", message


def _types_together(configuration: Configuration) -> Iterator[Complaint]:
    types = configuration.get(TYPES)
    if not meshes(configuration) or not isinstance(types, list):
        return
    met = [name for index, name in enumerate(types) if index == 0 or types[index - 1] != name]
    again = next((name for index, name in enumerate(met) if name in met[:index]), None)
    if again is not None:
        message = f"comes back to {again} behind another type, and ranks are sorted by the first place of their type"
        remedy = f"all {again} ranks go before; call the later ones by another name, here and in the hostfile"
        yield TYPES, f"{message}: {remedy} ({again}-2)"


def _context(configuration: Configuration) -> Iterator[Complaint]:
    found = meshes(configuration)
    if any(mesh.cp > 1 for mesh in found):
        degrees = ", ".join(str(mesh.cp) for mesh in found)
        yield MESHES, f"has context degrees {degrees}, and meshes run without context parallelism; write 1 in each"


def _order(configuration: Configuration) -> Iterator[Complaint]:
    if len(meshes(configuration)) > 1 and configuration.on("use_tp_pp_dp_mapping"):
        message = "counts ranks pipeline by pipeline, and meshes find their neighbours as if stage by stage"
        yield "use_tp_pp_dp_mapping", f"{message}; remove it"


def _instances(configuration: Configuration) -> Iterator[Complaint]:
    number = configuration.number("num_distributed_optimizer_instances", 1)
    if meshes(configuration) and number != 1:
        yield "num_distributed_optimizer_instances", f"is {number}, and meshes run with one alone; remove it"


def _experts(configuration: Configuration) -> Iterator[Complaint]:
    listed = configuration.get("expert_tensor_parallel_size_per_process_mesh")
    found = meshes(configuration)
    if isinstance(listed, list) and found and len(listed) != len(found):
        message = f"has {len(listed)} numbers for {len(found)} meshes; write one for each"
        yield "expert_tensor_parallel_size_per_process_mesh", message
        return
    for index, mesh in enumerate(found):
        etp = (
            listed[index] if isinstance(listed, list) else configuration.number("expert_tensor_parallel_size", mesh.tp)
        )
        experts = etp * mesh.ep * mesh.pp
        if experts and mesh.ranks % experts:
            message = (
                f"gives mesh {index} {mesh.ranks} ranks, which etp {etp} x ep {mesh.ep} x pp {mesh.pp} = {experts}"
            )
            yield MESHES, f"{message} does not divide; etp is tp where it is not written"


RULES = (
    Rule(
        code="FS101",
        name="Meshes are groups of five",
        summary="hetero_process_meshes = [tp, cp, ep, dp, pp] for each mesh, all from 1 on",
        why="The message of FlagScale's own check speaks of four numbers; the expert degree came later.",
        source=ARGUMENTS,
        check=_groups_of_five,
    ),
    Rule(
        code="FS102",
        name="Meshes hold all stages",
        summary="pipeline_model_parallel_size = the sum of pp over the meshes",
        why="Each mesh holds a run of stages; the pipeline goes through all meshes.",
        source=ARGUMENTS,
        check=_stages,
    ),
    Rule(
        code="FS103",
        name="Meshes hold all ranks",
        summary="world = the sum of tp cp dp pp over the meshes",
        why="The run stops with `World size mismatch` once all processes have met.",
        source=CONTEXT,
        check=_ranks,
    ),
    Rule(
        code="FS104",
        name="Every mesh has a type of device",
        summary="as many hetero_device_types as meshes; hetero_current_device_type is one of them",
        why="The runner replaces the current type by that of the hostfile, where the hostfile has types.",
        source=ARGUMENTS,
        check=_types,
    ),
    Rule(
        code="FS105",
        name="A type does not come back",
        summary="meshes of one type follow one another, or have names of their own",
        why="Ranks are sorted by the first place of their type in hetero_device_types. Of [A, B, A] the ranks of the"
        " third mesh are sorted to the first, and the second mesh runs on A: nothing notices.",
        source=CONTEXT,
        check=_types_together,
        caught=False,
    ),
    Rule(
        code="FS106",
        name="Meshes have no context axis",
        summary="cp = 1 in every mesh",
        why="`Context parallelism is not supported` stops every rank.",
        source=CONTEXT,
        check=_context,
    ),
    Rule(
        code="FS107",
        name="Meshes count ranks stage by stage",
        summary="no use_tp_pp_dp_mapping with several meshes",
        why="Neighbouring meshes find each other's ranks with the strides of tp, cp, dp, pp, whatever the order is;"
        " the wrong ranks would exchange activations.",
        source=CONTEXT,
        check=_order,
        caught=False,
    ),
    Rule(
        code="FS108",
        name="Meshes have one instance of the optimizer",
        summary="num_distributed_optimizer_instances = 1",
        why="Groups for several instances are not built across meshes.",
        source=CONTEXT,
        check=_instances,
    ),
    Rule(
        code="FS501",
        name="Experts divide every mesh",
        summary="tp cp dp pp of a mesh divides by etp ep pp",
        why="Experts have groups of their own in each mesh.",
        source=CONTEXT,
        check=_experts,
    ),
)
"""In the order of their codes."""
