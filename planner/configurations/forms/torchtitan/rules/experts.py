"""TT5##: experts."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.torchtitan.degrees import EXPERT, EXPERT_TENSOR, degrees, is_old, model_of
from planner.domain.configuration import NOTE, Configuration

COUNTS = ("num_experts", "n_routed_experts", "num_local_experts")


def _experts(configuration: Configuration) -> int | None:
    """Return the experts of a layer, 0 of a dense model, None where the model is not known."""
    model = model_of(configuration)
    return None if model is None else next((model.config[key] for key in COUNTS if key in model.config), 0)


def _uneven_experts(configuration: Configuration) -> Iterator[Complaint]:
    found, number = degrees(configuration), _experts(configuration)
    if found.sound and number and number % found.expert:
        able = [str(degree) for degree in range(1, number + 1) if number % degree == 0]
        yield EXPERT, f"{number} experts do not divide over {found.expert} expert ranks; write one of {', '.join(able)}"


def _no_ranks(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    if not found.sound or found.expert == 1 or found.shards is None:
        return
    inner = found.expert_tensor if is_old(configuration) else 1
    ranks = found.shards * found.context * found.tensor
    if ranks % (found.expert * inner):
        taken = f"{found.expert} expert" + (f" * {inner} expert-tensor" if inner > 1 else "")
        yield (
            EXPERT,
            (
                f"{taken} ranks do not divide the {found.shards} shard * {found.context} cp * {found.tensor} tp ="
                f" {ranks} ranks that they are taken from; write an expert_parallel_degree that divides"
                f" {ranks // inner}"
            ),
        )


def _expert_tensor(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    if found.sound and found.expert > 1 and found.expert_tensor not in {1, found.tensor}:
        yield (
            EXPERT_TENSOR,
            (
                f"expert_tensor_parallel_degree {found.expert_tensor} is neither 1 nor the tensor degree"
                f" {found.tensor}; write one of these"
            ),
        )


def _dense(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    if found.sound and found.expert > 1 and _experts(configuration) == 0:
        yield EXPERT, f"expert_parallel_degree {found.expert} has no effect: the model has no experts; write 1"


def _captured(configuration: Configuration) -> Iterator[Complaint]:
    found = degrees(configuration)
    graphs = not configuration.on("training.disable_cuda_graphs")
    if found.sound and found.expert > 1 and found.pipeline == 1 and graphs and _experts(configuration):
        yield (
            EXPERT,
            (
                "expert ranks exchange tokens by way of the host, which CUDA graphs, on by default, cannot capture;"
                " write training.disable_cuda_graphs = True"
            ),
        )


RULES = (
    Rule(
        code="TT501",
        name="Experts divide over expert ranks",
        summary="num_experts % expert_parallel_degree = 0",
        why="Each rank holds as many experts as every other.",
        source="torchtitan/models/moe/moe.py at v0.2.2, torchtitan/models/common/moe.py at v0.3.0",
        check=_uneven_experts,
        caught=False,
    ),
    Rule(
        code="TT502",
        name="Expert ranks are taken from the mesh",
        summary="shard * cp * tp % ep = 0 (up to 0.2: % (ep * expert_tensor))",
        why=(
            "Expert parallelism takes no ranks of its own: it borrows those that share weights out. The mesh of the"
            " experts is made by a division that rounds down, and then does not fit the ranks."
        ),
        source="torchtitan/distributed/parallel_dims.py at v0.2.2 and v0.3.0 (build_mesh); issues/1184",
        check=_no_ranks,
    ),
    Rule(
        code="TT503",
        name="Experts are cut as the rest, or not at all",
        summary="expert_tensor_parallel_degree is 1 or tensor_parallel_degree",
        why="torchtitan asserts it when it builds the mesh; 0.3 has no such degree.",
        source="torchtitan/distributed/parallel_dims.py at v0.2.2",
        check=_expert_tensor,
        until="0.3",
    ),
    Rule(
        code="TT504",
        name="Expert ranks have experts",
        summary="expert_parallel_degree = 1 for dense models",
        why="torchtitan ignores the degree.",
        source="torchtitan/config/configs.py at v0.3.0",
        check=_dense,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="TT505",
        name="Expert ranks run without CUDA graphs",
        summary="ep > 1 needs training.disable_cuda_graphs, but for dispatchers that do not wait for the host",
        why="0.3 captures CUDA graphs by default, and refuses dispatchers that synchronize with the host.",
        source="torchtitan/trainer.py at v0.3.0 (_validate_cuda_graphs)",
        check=_captured,
        since="0.3",
    ),
)
