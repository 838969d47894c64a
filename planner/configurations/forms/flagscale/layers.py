"""Layers over stages, and what meshes ask of the model (FS2 and FS4)."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.flagscale.meshes import ARGUMENTS, CONTEXT, MESHES, hetero, meshes
from planner.domain.configuration import Configuration

SPLIT = "hetero_pipeline_layer_split"


def split(configuration: Configuration) -> list[int]:
    """Return the layers of every stage as written; none where there are none."""
    found = configuration.get(SPLIT)
    return [one for one in found if isinstance(one, int)] if isinstance(found, list) else []


def _split(configuration: Configuration) -> Iterator[Complaint]:
    found, layers = split(configuration), configuration.number("num_layers")
    pp = configuration.number("pipeline_model_parallel_size")
    if not hetero(configuration) or not found:
        return
    if layers and sum(found) != layers:
        yield (
            SPLIT,
            f"adds up to {sum(found)} layers, and the model has {layers}; change the entries by {layers - sum(found)}",
        )
    if pp and len(found) != pp:
        yield SPLIT, f"has {len(found)} entries for {pp} stages; write one number of layers for each stage"


def _even(configuration: Configuration) -> Iterator[Complaint]:
    layers, pp = configuration.number("num_layers"), configuration.number("pipeline_model_parallel_size")
    if not hetero(configuration) or split(configuration) or not (layers and pp) or layers % pp == 0:
        return
    if pp > layers:
        yield "num_layers", f"is {layers}, fewer than the {pp} stages, each of which needs one; write fewer stages"
        return
    few, more = divmod(layers, pp)
    shares = [few + (pp - more <= index) for index in range(pp)]
    message = f"{layers} layers do not divide over {pp} stages, and {layers % pp} of them would silently not be built"
    yield "num_layers", f"{message}; write {SPLIT}: {shares}"


def _chunks(configuration: Configuration) -> Iterator[Complaint]:
    for key in ("num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank"):
        if hetero(configuration) and configuration.number(key):
            yield key, "asks for virtual stages, which meshes have not; remove it"


def _embedding(configuration: Configuration) -> Iterator[Complaint]:
    if hetero(configuration) and configuration.on("standalone_embedding_stage"):
        yield "standalone_embedding_stage", "gives the embedding a stage of its own, which meshes have not; write false"


def tied(configuration: Configuration) -> bool:
    """Return whether the first and the last stage share weights or more."""
    return not configuration.on("untie_embeddings_and_output_weights") or bool(configuration.number("mtp_num_layers"))


def _tied_tensor(configuration: Configuration) -> Iterator[Complaint]:
    found = meshes(configuration)
    if found and tied(configuration) and found[0].tp != found[-1].tp:
        message = f"has tp {found[0].tp} in the first mesh and {found[-1].tp} in the last, which share the embedding"
        yield MESHES, f"{message}; give both the same tp, or write untie_embeddings_and_output_weights: true"


def _tied_data(configuration: Configuration) -> Iterator[Complaint]:
    found = meshes(configuration)
    if not found or not tied(configuration) or not configuration.on("use_distributed_optimizer"):
        return
    first, last = found[0].dp, found[-1].dp
    if first == last:
        return
    if max(first, last) % min(first, last):
        message = f"has dp {first} in the first mesh and {last} in the last, which share the embedding"
        yield MESHES, f"{message}; one must divide the other"
    elif not configuration.on("use_partial_reduce_for_shared_embedding"):
        message = f"has dp {first} and {last} at its ends, which share the embedding"
        yield MESHES, f"{message}; write use_partial_reduce_for_shared_embedding: true"


def _cut_sequence(configuration: Configuration) -> Iterator[Complaint]:
    found = meshes(configuration)
    degrees = [mesh.tp for mesh in found]
    if len(set(degrees)) > 1 and not configuration.on("sequence_parallel"):
        message = f"has tp {', '.join(map(str, degrees))}, and meshes hand over tensors as if cut along the sequence"
        yield MESHES, f"{message}; write sequence_parallel: true"


def _heads(configuration: Configuration) -> Iterator[Complaint]:
    counts = ["num_attention_heads", *(["num_query_groups"] if configuration.on("group_query_attention") else [])]
    for index, mesh in enumerate(meshes(configuration)):
        for key in counts:
            number = configuration.number(key)
            if number and number % mesh.tp:
                yield key, f"is {number}, which tp {mesh.tp} of mesh {index} does not divide; choose a tp that does"


def _sequence(configuration: Configuration) -> Iterator[Complaint]:
    length = configuration.number("seq_length")
    for index, mesh in enumerate(meshes(configuration)):
        if length and configuration.on("sequence_parallel") and length % mesh.tp:
            yield (
                "seq_length",
                f"is {length}, which tp {mesh.tp} of mesh {index} does not cut evenly; choose a multiple",
            )


RULES = (
    Rule(
        code="FS201",
        name="The split holds all layers",
        summary="hetero_pipeline_layer_split adds up to num_layers, with one entry for each stage",
        why="Each stage builds the number of layers at its place.",
        source=ARGUMENTS,
        check=_split,
    ),
    Rule(
        code="FS202",
        name="Layers divide where no split is written",
        summary="num_layers % pipeline_model_parallel_size = 0 without hetero_pipeline_layer_split",
        why="With meshes Megatron's own check is skipped, each stage takes num_layers // stages, and the rest of the"
        " layers is never built: the model trains, and is another one.",
        source=ARGUMENTS,
        check=_even,
        caught=False,
    ),
    Rule(
        code="FS203",
        name="Meshes have no virtual stages",
        summary="no num_layers_per_virtual_pipeline_stage with enable_hetero",
        why="The interleaved schedule does not know of meshes.",
        source=ARGUMENTS,
        check=_chunks,
    ),
    Rule(
        code="FS204",
        name="The embedding shares its stage",
        summary="standalone_embedding_stage: false with enable_hetero",
        why="The stages of the meshes all hold layers.",
        source=ARGUMENTS,
        check=_embedding,
    ),
    Rule(
        code="FS401",
        name="Tied ends have one tensor degree",
        summary="tp of the first mesh = tp of the last, unless embeddings are untied and there is no MTP",
        why="Both ends hold a cut of the same embedding and add up its gradients, rank by rank.",
        source=ARGUMENTS,
        check=_tied_tensor,
    ),
    Rule(
        code="FS402",
        name="Tied ends have data degrees that divide",
        summary="dp of one end divides that of the other, with use_partial_reduce_for_shared_embedding",
        why="With the distributed optimizer each rank of the smaller end reduces for several of the other.",
        source=ARGUMENTS,
        check=_tied_data,
    ),
    Rule(
        code="FS403",
        name="Unlike tensor degrees cut the sequence",
        summary="sequence_parallel: true where meshes have unlike tp",
        why="Between meshes, slices are found as if every rank held 1/tp of the sequence; where each holds all of it,"
        " shapes do not match at the first hand-over.",
        source=CONTEXT,
        check=_cut_sequence,
        caught=False,
    ),
    Rule(
        code="FS404",
        name="Tensor degrees divide the heads",
        summary="num_attention_heads and num_query_groups divide by tp of every mesh",
        why="Megatron refuses it on the ranks of that mesh; the others wait.",
        source=ARGUMENTS,
        check=_heads,
    ),
    Rule(
        code="FS405",
        name="Tensor degrees divide the sequence",
        summary="seq_length divides by tp of every mesh, with sequence_parallel",
        why="Sequence parallelism cuts each sample into tp equal runs.",
        source=ARGUMENTS,
        check=_sequence,
    ),
)
"""In the order of their codes."""
