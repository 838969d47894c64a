"""What only Megatron-Bridge refuses, replaces or takes for granted; the rest are rules of Megatron-Core."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.megatron.facts import Facts
from planner.domain.configuration import WARNING, Configuration

RUNNER = "NVIDIA-NeMo/Megatron-Bridge, scripts/training/run_recipe.py and recipe_runner.py at 067f987 (2026-08-22)"
CORE = "NVIDIA/Megatron-LM, megatron/core/transformer/transformer_config.py, core 0.19.2"
TP, PP, EP, ETP = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
)
VPP, LAYOUT = "num_virtual_stages_per_pipeline_rank", "pipeline_model_parallel_layout"
CUT = (
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
)


def _blamed(configuration: Configuration, *keys: str) -> str:
    """Return the first of `keys` that is written, else the recipe, which says what is not."""
    return next((key for key in keys if key in configuration), "recipe")


def _expert_ranks(configuration: Configuration) -> Iterator[Complaint]:
    """Yield what is wrong whatever the tensor degree of experts is."""
    yield from _dividing(configuration, 1)


def _inherited_ranks(configuration: Configuration) -> Iterator[Complaint]:
    yield from _dividing(configuration, Facts(configuration).tp)


def _dividing(configuration: Configuration, etp: int) -> Iterator[Complaint]:
    """Yield what is wrong with the ranks of experts where nothing says their tensor degree, and it is `etp`."""
    facts = Facts(configuration)
    each = facts.pp * facts.ep
    known = each and etp and facts.world and facts.ep > 1
    if not known or configuration.get(ETP) is not None or facts.world % (etp * each) == 0:
        return
    most = min(facts.ep, facts.world // (etp * facts.pp))
    fits = next((size for size in range(most, 0, -1) if facts.world % (etp * facts.pp * size) == 0), 0)
    remedies = ["model.expert_tensor_parallel_size=1"] if etp > 1 and facts.world % each == 0 else []
    remedies += [f"model.expert_model_parallel_size={fits}"] if fits else []
    product = f"etp {etp} x ep {facts.ep} x pp {facts.pp} = {etp * each}"
    usual = "taken from tp" if etp > 1 else "at least 1"
    yield (
        _blamed(configuration, EP, PP, TP),
        (
            f"{product} does not divide {facts.world} ranks (etp is {usual} where it is not written);"
            f" write {' or '.join(remedies) or 'other degrees'}"
        ),
    )


def _alone(configuration: Configuration) -> Iterator[Complaint]:
    facts = Facts(configuration)
    if facts.tp == 1 and facts.on("sequence_parallel"):
        key = _blamed(configuration, "sequence_parallel", TP)
        yield key, "sequence parallelism needs a tensor degree above 1; write model.sequence_parallel=false"


def _chunks(configuration: Configuration) -> Iterator[Complaint]:
    facts, vpp = Facts(configuration), configuration.number(VPP)
    stages = facts.stages_text
    if stages and facts.pp and vpp and len(stages) % facts.pp == 0 and len(stages) != facts.pp * vpp:
        yield (
            LAYOUT,
            (
                f"the layout has {len(stages)} stages, and pp {facts.pp} x vpp {vpp} = {facts.pp * vpp}; write"
                f" model.virtual_pipeline_model_parallel_size={len(stages) // facts.pp}, or null to take the layout's"
            ),
        )


def _beside(configuration: Configuration) -> Iterator[Complaint]:
    for index, stage in enumerate(Facts(configuration).stages_text or ()):
        if "m" in stage and "t" not in stage:
            message = f"gives stage {index} no layer (t) beside m, and some versions build no such stage"
            yield LAYOUT, f"{message}; move a t there"


def _brought(configuration: Configuration) -> Iterator[Complaint]:
    """Tell of cuts that the recipe brings beside a layout; those that are written are another rule's."""
    if isinstance(configuration.get(LAYOUT), str) and LAYOUT in configuration:
        for key in CUT:
            if key not in configuration and configuration.get(key):
                off = "false" if key.startswith("account") else "null"
                name = f"model.{key}" if off == "false" else f"model.num_layers_in_{key.split('_')[1]}_pipeline_stage"
                yield LAYOUT, f"the recipe brings {name}, which a layout excludes; write {name}={off}"


def _owner(configuration: Configuration) -> Iterator[Complaint]:
    own, length = configuration.number("model.seq_length"), configuration.number("seq_length")
    if own and own != length:
        taken = f"the dataset's, {length}" if length else "that of the dataset"
        yield "model.seq_length", f"is replaced by {taken}; write dataset.seq_length={own} instead"


OWN = (
    Rule(
        code="MB102",
        name="Expert and pipeline degrees divide the ranks",
        summary="world % (ep pp) = 0, whatever the tensor degree of experts",
        why="Experts have groups of their own. Megatron-Core takes tp for a tensor degree of experts that is not"
        " written, Bridge 1; a recipe may say another. Where it is known MG102 judges the whole product.",
        source="NVIDIA/Megatron-LM, megatron/core/parallel_state.py, core 0.19.2; NVIDIA-NeMo/Megatron-Bridge,"
        " src/megatron/bridge/models/transformer_config.py at 067f987",
        check=_expert_ranks,
        since="0.7",
    ),
    Rule(
        code="MB103",
        name="Expert degrees divide the ranks, with the tensor degree of all",
        summary="world % (etp ep pp) = 0, where etp is tp unless it is written",
        why="The tensor degree of experts is silently that of everything else, so that tp 4 and ep 4 need 16 ranks;"
        " write model.expert_tensor_parallel_size=1. Bridge 0.7 takes 1 by itself; when that began is not known.",
        source="NVIDIA-NeMo/Megatron-Bridge issue 546; NVIDIA-NeMo/Speech issue 14838",
        check=_inherited_ranks,
        until="0.7",
    ),
    Rule(
        code="MB104",
        name="Sequence parallelism has a tensor axis",
        summary="model.sequence_parallel => tp > 1",
        why="The core's configuration raises. Megatron-LM's parser switches it off before that, Bridge does not.",
        source="NVIDIA/Megatron-LM, megatron/core/model_parallel_config.py, core 0.19.2; NVIDIA-NeMo/Megatron-Bridge,"
        " scripts/translate_mlm_to_bridge.py at 067f987",
        check=_alone,
    ),
    Rule(
        code="MB204",
        name="A layout has the chunks that are said",
        summary="stages of the layout = pp x model.virtual_pipeline_model_parallel_size, where that is not null",
        why="The core asserts it. A recipe may bring a number of chunks that a layout of your own does not have.",
        source=CORE,
        check=_chunks,
    ),
    Rule(
        code="MB206",
        name="Multi-token prediction has a layer beside it",
        summary="no stage with m and without t",
        why="Megatron-Core takes m alone in the last stage but one; other bridges crashed on it, for the stage has no"
        " decoder layer whose form the predictor could take.",
        source=CORE + "; modelscope/ms-swift pull request 9827",
        check=_beside,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="MB207",
        name="A layout takes back what the recipe cuts otherwise",
        summary="no numbers of layers at the ends and no counted embedding or loss of the recipe beside a layout",
        why="Both say how layers are divided, and the core raises. The others have to be set to null or false.",
        source=CORE,
        check=_brought,
    ),
    Rule(
        code="MB401",
        name="The dataset owns the sequence length",
        summary="dataset.seq_length is written, not model.seq_length",
        why="The runner sets the model's length to the dataset's after all overrides: the model's is lost in silence.",
        source=RUNNER,
        check=_owner,
        severity=WARNING,
        caught=False,
    ),
)
"""In the order of their codes."""
