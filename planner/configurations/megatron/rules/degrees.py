"""Parallel degrees and the number of ranks."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import PARALLEL, STATE, divisors, rule
from planner.domain.configuration import WARNING

SIZES = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
)
TP, PP, CP, EP, ETP = SIZES
MOST = 4096
"""Expert degrees that are tried for a message."""


def _positive(facts: Facts) -> Iterator[Complaint]:
    for key in (*SIZES, "micro_batch_size", "global_batch_size", "num_layers", "num_distributed_optimizer_instances"):
        value = facts.count(key)
        if value is not None and value < 1:
            yield key, f"{facts.of.name(key)} is {value}; it should be a whole number from 1 on"


def _world(facts: Facts) -> Iterator[Complaint]:
    width = facts.tp * facts.pp * facts.cp
    if width and facts.world % width:
        product = f"{facts.tp} x {facts.pp} x {facts.cp} (tensor x pipeline x context) = {width}"
        nearest = [n for n in (facts.world // width * width, -(-facts.world // width) * width) if n]
        yield (
            TP if facts.tp > 1 else PP,
            (
                f"{product} does not divide the {facts.world} ranks; use {' or '.join(map(str, nearest))} ranks,"
                f" or degrees whose product is one of {divisors(facts.world)}"
            ),
        )


def _expert_world(facts: Facts) -> Iterator[Complaint]:
    width = facts.etp * facts.ep * facts.pp
    if not (width and facts.world and (facts.experts or facts.ep > 1 or ETP in facts.of)) or facts.world % width == 0:
        return
    taken = (
        ""
        if facts.value(ETP) is not None
        else f" ({facts.etp} taken from --tensor-model-parallel-size; write it to be sure)"
    )
    best = [n for n in range(1, min(facts.world, MOST) + 1) if facts.world % (facts.etp * facts.pp * n) == 0]
    remedy = f"with these, expert degrees {', '.join(map(str, best[:8]))} fit" if best else "lower one of them"
    fewest = facts.pp * max(facts.tp * facts.cp, facts.ep * facts.etp)
    yield (
        EP if facts.ep > 1 else ETP,
        (
            f"expert tensor degree {facts.etp}{taken} x expert degree {facts.ep} x {facts.pp} stages = {width} does not"
            f" divide the {facts.world} ranks; {remedy}, or use a multiple of {fewest} ranks"
        ),
    )


def _expert_tensor_unset(facts: Facts) -> Iterator[Complaint]:
    if facts.ep > 1 and facts.tp > 1 and facts.value(ETP) is None:
        yield (
            EP,
            (
                f"--expert-tensor-parallel-size is not given, so each expert is cut into {facts.tp} parts as everything"
                " else; write --expert-tensor-parallel-size 1 for whole experts, or the number that is meant"
            ),
        )


def _sequence_alone(facts: Facts) -> Iterator[Complaint]:
    if facts.on("sequence_parallel") and facts.tp == 1:
        yield (
            "sequence_parallel",
            (
                "--sequence-parallel does nothing with a tensor degree of 1, and Megatron switches it off; remove it,"
                " or give a --tensor-model-parallel-size"
            ),
        )


def _no_sequence(facts: Facts) -> Iterator[Complaint]:
    if facts.tp > 1 and not facts.on("sequence_parallel") and not facts.experts:
        yield (
            TP,
            (
                f"the {facts.tp} tensor ranks each keep norms, residuals and dropout of all tokens; --sequence-parallel"
                " cuts them too, for the same traffic"
            ),
        )


def _order(facts: Facts) -> Iterator[Complaint]:
    if not facts.on("use_tp_pp_dp_mapping") or facts.pp == 1 or not facts.dp or not facts.ep or not facts.etp:
        return
    width = facts.etp * facts.ep * facts.pp
    experts = facts.world // width if facts.world % width == 0 else 0
    if experts and experts != facts.dp:
        remedy = (
            "choose expert degrees with expert tensor x expert = tensor x context"
            if facts.experts
            else f"write --expert-tensor-parallel-size {facts.tp * facts.cp}, which a dense model has no other use for"
        )
        yield (
            "use_tp_pp_dp_mapping",
            (
                f"--use-tp-pp-dp-mapping needs as many replicas of experts ({experts}) as of everything else"
                f" ({facts.dp}), of dense models too; leave it out, or {remedy}"
            ),
        )


def _instances(facts: Facts) -> Iterator[Complaint]:
    number = facts.count("num_distributed_optimizer_instances") or 1
    if number > 1 and facts.dp and facts.dp * facts.cp % number:
        yield (
            "num_distributed_optimizer_instances",
            (
                f"{number} copies of the optimizer do not divide the {facts.dp} x {facts.cp} replicas and context"
                f" ranks; use one of {divisors(facts.dp * facts.cp)}"
            ),
        )


def _instances_alone(facts: Facts) -> Iterator[Complaint]:
    number = facts.count("num_distributed_optimizer_instances") or 1
    if number > 1 and not facts.on("use_distributed_optimizer") and not facts.fsdp:
        yield (
            "num_distributed_optimizer_instances",
            f"{number} copies of a distributed optimizer need --use-distributed-optimizer, which is not given",
        )


def _weight_shards(facts: Facts) -> Iterator[Complaint]:
    for key, tensor in (
        ("tensor_parallel_num_weight_shards", facts.tp),
        ("expert_tensor_parallel_num_weight_shards", facts.etp),
    ):
        shards = facts.count(key)
        if shards and tensor and shards % tensor:
            yield key, f"{shards} shards of weights should be a multiple of the tensor degree, {tensor}"


DEGREES = (
    rule(
        "MG101",
        "Degrees divide the ranks",
        "ranks % (tp pp cp) = 0",
        _world,
        "What the product of tensor, pipeline and context degree leaves of the ranks is the number of replicas;"
        " Megatron asserts that it is whole at start-up, when all nodes are already allocated.",
        needs=(TP, PP, CP, "tensor_parallel_num_weight_shards"),
    ),
    rule(
        "MG102",
        "Expert degrees divide the ranks",
        "ranks % (etp ep pp) = 0, with etp = tp where it is not given",
        _expert_world,
        "Experts have a grid of their own: expert tensor x expert x pipeline x expert replicas. validate_args does not"
        " check it; initialize_model_parallel raises on every rank once the process groups are built. The usual cause"
        " is that --expert-tensor-parallel-size was not given and was taken from the tensor degree (NeMo 25.07,"
        " Megatron-Bridge issue 546, slime pull request 2077).",
        needs=SIZES,
        source=STATE,
        caught=False,
    ),
    rule(
        "MG103",
        "Degrees are positive",
        "every degree, batch and number of layers >= 1",
        _positive,
        "A degree of zero divides by zero somewhere later.",
    ),
    rule(
        "MG104",
        "The expert tensor degree is written",
        "ep > 1 and tp > 1 => --expert-tensor-parallel-size is given",
        _expert_tensor_unset,
        "It defaults to the tensor degree, so that experts are cut although expert parallelism was meant to keep them"
        " whole: thin products, more all-reduces, and often a number of ranks that does not fit (NVIDIA-NeMo/Speech"
        " issue 14838).",
        needs=SIZES,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG105",
        "Sequence parallelism has a tensor axis",
        "--sequence-parallel => tp > 1",
        _sequence_alone,
        "Megatron-LM switches it off with a warning; the core's own configuration raises. Nothing is saved.",
        needs=(TP,),
        source=PARALLEL,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG106",
        "A tensor axis cuts the sequence too",
        "tp > 1 => --sequence-parallel",
        _no_sequence,
        "Without it every tensor rank keeps the inputs of norms and dropout whole: 10 s b h bytes a layer that do not"
        " shrink with the degree (Korthikanti et al. 2022, section 4.2). The traffic is the same.",
        needs=(TP, "sequence_parallel"),
        source="Korthikanti et al. 2022, Reducing Activation Recomputation, section 4.2.2",
        severity="note",
        caught=False,
    ),
    rule(
        "MG107",
        "Pipelines of whole replicas need equal expert replicas",
        "--use-tp-pp-dp-mapping, pp > 1 => ranks / (etp ep pp) = ranks / (tp cp pp)",
        _order,
        "When the pipeline axis is not the outermost, experts and the rest must agree on which ranks form a pipeline;"
        " the core asserts it while it builds process groups.",
        needs=SIZES,
        source=STATE,
        caught=False,
    ),
    rule(
        "MG110",
        "Copies of the optimizer divide the replicas",
        "(dp cp) % instances = 0",
        _instances,
        "Each copy of the sharded optimizer is held by an equal part of the replicas.",
        needs=(TP, PP, CP),
        source=STATE,
        caught=False,
    ),
    rule(
        "MG111",
        "Copies of the optimizer need a distributed one",
        "instances > 1 => --use-distributed-optimizer",
        _instances_alone,
        "Partial sharding is a way to shard, and without the distributed optimizer nothing is.",
        needs=("use_distributed_optimizer",),
        source="NVIDIA/Megatron-LM, megatron/core/distributed/distributed_data_parallel.py, core 0.19.2",
        caught=False,
    ),
    rule(
        "MG113",
        "Shards of weights are whole tensor parts",
        "shards % tp = 0",
        _weight_shards,
        "Weights are cut by the tensor axis first, and its parts are sharded further.",
        needs=SIZES,
        source=PARALLEL,
    ),
)
