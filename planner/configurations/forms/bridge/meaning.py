"""What overrides of a Bridge recipe mean as a layout."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Setup
from planner.configurations.forms.bridge.degrees import CP, EP, ETP, PP, TP, replicas
from planner.configurations.forms.bridge.layers import VPP, stage_layers, stages
from planner.configurations.megatron_model import hugging_face
from planner.domain.configuration import Configuration
from planner.domain.plan import CP_COMM_TYPES
from planner.errors import Problem, SpecError
from planner.specs.layout import Layout

PRECISIONS = {
    "bf16_mixed": "bf16",
    "fp16_mixed": "fp16",
    "bf16_with_fp8_current_scaling_mixed": "fp8",
    "bf16_with_fp8_delayed_scaling_mixed": "fp8",
    "bf16_with_mxfp8_mixed": "mxfp8",
    "bf16_with_nvfp4_mixed": "nvfp4",
}
"""Name of a recipe of precision (src/megatron/bridge/training/mixed_precision.py) -> ours."""
STRATEGIES = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
"""Of Megatron-FSDP -> ZeRO stage."""
ASKED = {"tp": TP, "pp": PP, "cp": CP, "micro_batch_size": "micro_batch_size"}


def setup(configuration: Configuration) -> Setup:
    """Return what overrides without errors mean; what neither they nor a known recipe say is taken as 1, and said.

    Raises:
        SpecError: they ask for an exchange of context or a recompute that no plan has.
    """
    problems = [Problem(str(configuration.spot(key)), message) for key, message in _beyond(configuration)]
    if problems:
        raise SpecError(problems)
    missing = [name for name, key in ASKED.items() if not configuration.number(key)]
    assumed = [f"{name} is taken as 1, for nothing that is known says it" for name in missing]
    pp = configuration.number(PP, 1) or 1
    chunks = _chunk_layers(configuration, pp)
    vpp = len(chunks[0]) if chunks else configuration.number(VPP, 1) or 1
    return Setup(
        layout=Layout(
            tp=configuration.number(TP, 1) or 1,
            pp=pp,
            vpp=vpp,
            dp=replicas(configuration) or None,
            cp=configuration.number(CP, 1) or 1,
            cp_comm_type=configuration.get("cp_comm_type") if configuration.number(CP) > 1 else None,
            ep=configuration.number(EP, 1) or 1,
            etp=configuration.number(ETP) or None,
            zero=_zero(configuration),
            sp=configuration.on("sequence_parallel"),
            mbs=configuration.number("micro_batch_size", 1) or 1,
            gbs=configuration.number("global_batch_size") or None,
            seq=configuration.number("seq_length") or None,
            recompute=str(configuration.get("recompute_granularity") or "none"),
            framework="megatron",
            chunk_layers=chunks,
            recompute_layers=_recompute_layers(configuration, vpp),
        ),
        world=configuration.world.value if configuration.world else None,
        model=hugging_face(configuration),
        precision=PRECISIONS.get(str(configuration.get("mixed_precision"))),
        assumed=(*assumed, *configuration.notes),
    )


def _beyond(configuration: Configuration) -> Iterator[tuple[str, str]]:
    """Yield what no plan can say."""
    exchange, kind = configuration.get("cp_comm_type"), configuration.get("recompute_granularity")
    if exchange not in (None, *CP_COMM_TYPES) and configuration.number(CP) > 1:
        yield "cp_comm_type", f"is {exchange!r}, and plans have {' or '.join(CP_COMM_TYPES)}"
    if kind not in (None, "selective", "full"):
        yield "recompute_granularity", f"is {kind!r}; it is full, selective or null"


def _chunk_layers(configuration: Configuration, pp: int) -> tuple[tuple[int, ...], ...]:
    """Return the layers of every chunk of every stage; none where they are equal or not known."""
    found = stages(configuration)
    if found and len(found) % pp == 0 and configuration.number(PP):
        counts = [one.count("t") for one in found]
        return tuple(tuple(counts[stage::pp]) for stage in range(pp))
    held = stage_layers(configuration)
    vpp = configuration.number(VPP, 1) or 1
    layers = configuration.number("num_layers")
    if not held or sum(held) == layers:
        return tuple((count // vpp,) * vpp for count in held) if len(set(held)) > 1 else ()
    ends = [configuration.on(f"account_for_{end}_in_pipeline_split") for end in ("embedding", "loss")]
    rows = [[count // vpp] * vpp for count in held]
    rows[0][0] -= ends[0]
    rows[-1][-1] -= ends[1]
    return tuple(map(tuple, rows))


def _zero(configuration: Configuration) -> int:
    if configuration.on("use_megatron_fsdp"):
        return STRATEGIES.get(str(configuration.get("data_parallel_sharding_strategy", "optim_grads_params")), 3)
    return int(configuration.on("use_distributed_optimizer"))


def _recompute_layers(configuration: Configuration, vpp: int) -> int | None:
    """Return how many layers a stage recomputes; a number of layers is one for each chunk."""
    block = configuration.get("recompute_granularity") == "full" and configuration.get("recompute_method") == "block"
    return configuration.number("recompute_num_layers") * vpp if block else None
