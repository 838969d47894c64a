"""Variables of the environment, precisions and kernels."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import ARGUMENTS, CONFIG, rule
from planner.domain.configuration import WARNING

CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"
TP, CP = "tensor_model_parallel_size", "context_parallel_size"
FSDP = ("use_megatron_fsdp", "use_torch_fsdp2")


def _fsdp_key(facts: Facts) -> str:
    return next((key for key in FSDP if key in facts.of), FSDP[0])


def _one(facts: Facts) -> Iterator[Complaint]:
    """Tell of a value that is wrong; one that is not given may come from elsewhere, and is another rule's."""
    wants = (facts.tp > 1 or facts.cp > 1) and not facts.fsdp and not facts.on("overlap_moe_expert_parallel_comm")
    if wants and facts.connections not in {None, "1"}:
        yield (
            TP if facts.tp > 1 else CP,
            (
                f"{CONNECTIONS} is {facts.connections}, and tensor or context ranks need 1 before Blackwell; write"
                f" export {CONNECTIONS}=1"
            ),
        )


def _unsaid(facts: Facts) -> Iterator[Complaint]:
    """Tell of a script that does not set it."""
    is_script = bool(facts.of.environment) or facts.of.world is not None
    wants = (facts.tp > 1 or facts.cp > 1) and not facts.fsdp and not facts.on("overlap_moe_expert_parallel_comm")
    if wants and is_script and facts.connections is None:
        yield (
            TP if facts.tp > 1 else CP,
            (
                f"{CONNECTIONS} is not set here, and tensor or context ranks need it before Blackwell; write"
                f" export {CONNECTIONS}=1"
            ),
        )


def _not_one(facts: Facts) -> Iterator[Complaint]:
    if facts.fsdp and facts.connections == "1":
        yield (
            _fsdp_key(facts),
            (
                f"{CONNECTIONS} is 1, and fully sharded data parallelism needs it unset or larger: gathering has to"
                f" overtake products; write unset {CONNECTIONS}"
            ),
        )


def _between(facts: Facts) -> Iterator[Complaint]:
    if facts.fsdp and (facts.tp > 1 or facts.cp > 1):
        yield (
            _fsdp_key(facts),
            (
                "fully sharded data parallelism with tensor or context ranks: before Blackwell they want unlike"
                f" {CONNECTIONS}, so one of their exchanges is not hidden"
            ),
        )


def _overlap(facts: Facts) -> Iterator[Complaint]:
    if facts.on("tp_comm_overlap") and not (facts.on("sequence_parallel") and facts.tp > 1):
        yield "tp_comm_overlap", "--tp-comm-overlap needs --sequence-parallel and a tensor degree above 1"


def _graphs(facts: Facts) -> Iterator[Complaint]:
    if graphed(facts) and facts.value("recompute_granularity") == "full" and graphed(facts) != "full_iteration":
        yield (
            "recompute_granularity",
            "full recompute goes with CUDA graphs of the whole iteration alone; use selective",
        )


def graphed(facts: Facts) -> str:
    """Return what captures CUDA graphs; empty if nothing does."""
    if facts.on("enable_cuda_graph"):
        return "local"
    if facts.on("external_cuda_graph"):
        return "transformer_engine"
    value = facts.value("cuda_graph_impl")
    return str(value) if value not in {None, "none"} else ""


def _segments(facts: Facts) -> Iterator[Complaint]:
    names = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
    values = [str(facts.of.environment[name].value) for name in names if name in facts.of.environment]
    registered = facts.of.environment.get("NCCL_GRAPH_REGISTER")
    fixed = registered is not None and str(registered.value) == "0"
    grows = any("expandable_segments:True" in value for value in values)
    if graphed(facts) == "transformer_engine" and grows and not fixed:
        key = "cuda_graph_impl" if "cuda_graph_impl" in facts.of else "external_cuda_graph"
        yield key, "CUDA graphs with expandable_segments need NCCL_GRAPH_REGISTER=0; export it"


def _whole(facts: Facts) -> Iterator[Complaint]:
    scaled = facts.on("fp16") and not facts.value("loss_scale")  # NaN drive the loss scale, and are not looked for
    if graphed(facts) == "full_iteration" and facts.on("check_for_nan_in_loss_and_grad") and not scaled:
        yield "cuda_graph_impl", "a graph of the whole iteration needs --no-check-for-nan-in-loss-and-grad"


def _hybrid(facts: Facts) -> Iterator[Complaint]:
    if not facts.on("hybrid_context_parallel"):
        return
    wrong = {
        "no pipeline": facts.pp > 1,
        "no CUDA graphs": facts.on("enable_cuda_graph"),
        "no Megatron-FSDP": facts.fsdp == "megatron",
        "--calculate-per-token-loss": not facts.on("calculate_per_token_loss"),
        "--dataloader-type single": facts.value("dataloader_type") not in {None, "single"},
    }
    missing = [words for words, broken in wrong.items() if broken]
    if missing:
        yield "hybrid_context_parallel", f"--hybrid-context-parallel needs {', '.join(missing)}"


def _entropy(facts: Facts) -> Iterator[Complaint]:
    if facts.on("cross_entropy_loss_fusion") and facts.value("cross_entropy_fusion_impl") == "te":
        yield "cross_entropy_fusion_impl", "the fused loss of Transformer Engine is refused as unstable; write native"


ENVIRONMENT = (
    rule(
        "MG701",
        "Tensor and context ranks have one queue of kernels",
        "tp or cp > 1 => the variable is 1",
        _one,
        "One queue keeps the order in which kernels are launched, so that an exchange starts before the product that it"
        " hides behind. From Blackwell on it does not matter. validate_args asserts it on earlier devices.",
        needs=(TP, CP, *FSDP),
        severity=WARNING,
    ),
    rule(
        "MG702",
        "The one queue of kernels is asked for",
        "tp or cp > 1 => the script sets the variable",
        _unsaid,
        "The variable may come from the image or the cluster; if it does not, validate_args stops before Blackwell.",
        needs=(TP, CP, *FSDP),
        severity=WARNING,
    ),
    rule(
        "MG703",
        "Full sharding has many queues of kernels",
        "FSDP => the variable is not 1",
        _not_one,
        "Gathering of the next weights has to run beside the products of the present ones.",
        needs=FSDP,
    ),
    rule(
        "MG704",
        "Full sharding has no tensor or context ranks",
        "FSDP => tp = cp = 1",
        _between,
        "validate_args warns of it.",
        needs=(TP, CP, *FSDP),
        severity="note",
        caught=False,
    ),
    rule(
        "MG705",
        "Overlapped tensor exchange has what it needs",
        "--tp-comm-overlap => sequence parallelism, tp > 1",
        _overlap,
        "Only gathering and scattering along the sequence are overlapped.",
        needs=(TP, "sequence_parallel"),
    ),
    rule(
        "MG713",
        "CUDA graphs have no full recompute",
        "graphs, full recompute => whole iteration",
        _graphs,
        "A layer that is recomputed is captured twice.",
        needs=("recompute_granularity", "cuda_graph_impl"),
        source=CONFIG,
    ),
    rule(
        "MG714",
        "CUDA graphs have fixed addresses",
        "graphs, expandable_segments => NCCL_GRAPH_REGISTER=0",
        _segments,
        "NCCL registers addresses that the allocator then maps again.",
        needs=("cuda_graph_impl",),
    ),
    rule(
        "MG715",
        "Graphs of the iteration do not look for NaN",
        "full_iteration => no check",
        _whole,
        "The check waits for the device.",
        needs=("cuda_graph_impl",),
        source=ARGUMENTS,
    ),
    rule(
        "MG716",
        "Context degrees by sample stand alone",
        "--hybrid-context-parallel => no pipeline, graphs or FSDP",
        _hybrid,
        "validate_args asserts each.",
        needs=("pipeline_model_parallel_size",),
    ),
    rule(
        "MG717",
        "The fused loss is Megatron's own",
        "--cross-entropy-loss-fusion => native",
        _entropy,
        "validate_args asserts it.",
        needs=("cross_entropy_fusion_impl",),
        since="0.19",
    ),
)
