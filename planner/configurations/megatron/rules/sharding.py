"""What is sharded over replicas, and what is overlapped with it."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.base import rule
from planner.domain.configuration import WARNING

DIST, REDUCE, GATHER = "use_distributed_optimizer", "overlap_grad_reduce", "overlap_param_gather"
STEP, STRATEGY = "overlap_param_gather_with_optimizer_step", "data_parallel_sharding_strategy"
TORCH, FSDP, FORMAT = "use_torch_fsdp2", "use_megatron_fsdp", "ckpt_format"
NEEDS = (DIST, REDUCE, GATHER, TORCH, FSDP)
DATA = "NVIDIA/Megatron-LM, megatron/core/distributed, core 0.19.2"


def _gather(facts: Facts) -> Iterator[Complaint]:
    if facts.on(GATHER) and not (facts.on(DIST) or facts.fsdp == "megatron" or facts.value("optimizer") == "dist_muon"):
        yield GATHER, "--overlap-param-gather needs weights that are sharded; add --use-distributed-optimizer"
    elif facts.on(GATHER) and not facts.on(REDUCE):
        yield GATHER, "--overlap-param-gather needs --overlap-grad-reduce; add it"


def _step(facts: Facts) -> Iterator[Complaint]:
    if not facts.on(STEP):
        return
    wrong = {
        "--use-distributed-optimizer": not facts.on(DIST),
        "--overlap-param-gather": not facts.on(GATHER),
        "several chunks a stage": facts.vpp == 1,
        "--ckpt-format torch": facts.value(FORMAT) != "torch",
    }
    missing = [words for words, broken in wrong.items() if broken]
    if missing:
        yield STEP, f"--overlap-param-gather-with-optimizer-step needs {', '.join(missing)}"


def _exposed(facts: Facts) -> Iterator[Complaint]:
    if facts.on(DIST) and not facts.fsdp and facts.dp != 1:
        off = [
            flag
            for key, flag in ((REDUCE, "--overlap-grad-reduce"), (GATHER, "--overlap-param-gather"))
            if not facts.on(key)
        ]
        if off:
            yield DIST, f"the exchange of the sharded optimizer is not hidden behind compute; add {' '.join(off)}"


def _replicated(facts: Facts) -> Iterator[Complaint]:
    if facts.dp * facts.cp > 1 and not facts.on(DIST) and not facts.fsdp and facts.value("optimizer") == "adam":
        share = 12 - 12 / (facts.dp * facts.cp)
        yield (
            "micro_batch_size",
            (
                f"all {facts.dp * facts.cp} replicas keep the whole optimizer; --use-distributed-optimizer saves"
                f" {share:.0f} of 18 bytes a parameter"
            ),
        )


def _torch(facts: Facts) -> Iterator[Complaint]:
    if facts.fsdp != "torch":
        return
    wrong = {
        "no pipeline": facts.pp > 1,
        "no expert degree": facts.ep > 1,
        "no --use-distributed-optimizer": facts.on(DIST),
        "--no-gradient-accumulation-fusion": facts.on("gradient_accumulation_fusion"),
        "--ckpt-format torch_dist or torch_dcp": facts.value(FORMAT) not in {"torch_dist", "torch_dcp"},
        "--untie-embeddings-and-output-weights": not facts.on("untie_embeddings_and_output_weights"),
        "no --fp16": facts.on("fp16"),
    }
    missing = [words for words, broken in wrong.items() if broken]
    if missing:
        yield TORCH, f"--use-torch-fsdp2 needs {', '.join(missing)}"


def _both(facts: Facts) -> Iterator[Complaint]:
    if facts.on(TORCH) and facts.on(FSDP):
        yield TORCH, "--use-torch-fsdp2 and --use-megatron-fsdp both shard all; keep one"


def _format(facts: Facts) -> Iterator[Complaint]:
    if facts.fsdp == "megatron" and facts.value(FORMAT) != "fsdp_dtensor":
        written = f"not {facts.value(FORMAT)}" if FORMAT in facts.of else f"and the default is {facts.value(FORMAT)}"
        key = FORMAT if FORMAT in facts.of else FSDP
        yield key, f"Megatron-FSDP needs --ckpt-format fsdp_dtensor, {written}"


def _dtensor(facts: Facts) -> Iterator[Complaint]:
    if facts.value(FORMAT) == "fsdp_dtensor" and facts.fsdp != "megatron":
        yield FORMAT, "--ckpt-format fsdp_dtensor is Megatron-FSDP's; add --use-megatron-fsdp, or use torch_dist"


def _dcp(facts: Facts) -> Iterator[Complaint]:
    if facts.value(FORMAT) == "torch_dcp" and (facts.fsdp != "torch" or facts.tp > 1 or facts.pp > 1):
        yield FORMAT, "--ckpt-format torch_dcp goes with --use-torch-fsdp2 alone, without tensor or pipeline degree"


def _strategy(facts: Facts) -> Iterator[Complaint]:
    if STRATEGY in facts.of and not facts.fsdp:
        yield (
            STRATEGY,
            f"--data-parallel-sharding-strategy {facts.value(STRATEGY)} does nothing without --use-megatron-fsdp",
        )


def _meta(facts: Facts) -> Iterator[Complaint]:
    if facts.on("init_model_with_meta_device") and facts.fsdp == "megatron" and facts.value(STRATEGY) == "no_shard":
        yield (
            "init_model_with_meta_device",
            "--init-model-with-meta-device needs weights that are sharded, not no_shard",
        )


def _pipeline(facts: Facts) -> Iterator[Complaint]:
    if facts.fsdp == "megatron" and facts.pp > 1 and facts.value(STRATEGY) in {"optim_grads", "optim_grads_params"}:
        yield (
            FSDP,
            (
                f"with {facts.pp} stages weights and gradients are gathered and scattered again for each micro-batch;"
                " use --data-parallel-sharding-strategy optim, or no pipeline"
            ),
        )


SHARDING = (
    rule(
        "MG601",
        "Overlapped gathering has what it gathers",
        "--overlap-param-gather => sharded, overlapped reduction",
        _gather,
        "validate_args asserts both.",
        needs=(*NEEDS, "optimizer"),
    ),
    rule(
        "MG602",
        "Gathering during the optimizer's step has chunks",
        "distributed optimizer, gathering, chunks",
        _step,
        "Chunks gather one after the other while the next are updated; its checkpoints are the old ones.",
        needs=(*NEEDS, "pipeline_model_parallel_size", FORMAT),
    ),
    rule(
        "MG603",
        "Exchanges of the sharded optimizer are hidden",
        "distributed optimizer => overlap of both",
        _exposed,
        "Without the flags the whole exchange stands between two steps.",
        needs=NEEDS,
        source=DATA,
        severity="note",
        caught=False,
    ),
    rule(
        "MG604",
        "Replicas share the optimizer",
        "dp > 1 => --use-distributed-optimizer",
        _replicated,
        "bf16 weights, fp32 gradients and 12 bytes of optimizer: 18 bytes a parameter, 6 + 12 / dp where it is sharded,"
        " for the same traffic (Megatron-LM, distributed optimizer guide).",
        needs=(*NEEDS, "optimizer"),
        source=DATA,
        severity="note",
        caught=False,
    ),
    rule(
        "MG605",
        "torch FSDP2 stands almost alone",
        "no pipeline, experts or distributed optimizer; untied; no fp16",
        _torch,
        "validate_args asserts each of them.",
        needs=(
            *NEEDS,
            "pipeline_model_parallel_size",
            FORMAT,
            "expert_model_parallel_size",
            "untie_embeddings_and_output_weights",
            "gradient_accumulation_fusion",
        ),
    ),
    rule(
        "MG606",
        "One kind of full sharding",
        "torch FSDP2 or Megatron-FSDP",
        _both,
        "They wrap the same modules.",
        needs=NEEDS,
        caught=False,
    ),
    rule(
        "MG607",
        "Megatron-FSDP has its checkpoints",
        "Megatron-FSDP => --ckpt-format fsdp_dtensor",
        _format,
        "No other format can save its weights; validate_args asserts it, even where nothing is saved.",
        needs=(*NEEDS, FORMAT),
        since="0.15",
    ),
    rule(
        "MG608",
        "Checkpoints of Megatron-FSDP have it",
        "fsdp_dtensor => --use-megatron-fsdp",
        _dtensor,
        "validate_args asserts it.",
        needs=(*NEEDS, FORMAT),
        since="0.15",
    ),
    rule(
        "MG609",
        "torch_dcp checkpoints have torch FSDP2 alone",
        "torch_dcp => FSDP2, tp = pp = 1",
        _dcp,
        "validate_args asserts it.",
        needs=(*NEEDS, FORMAT, "tensor_model_parallel_size", "pipeline_model_parallel_size"),
    ),
    rule(
        "MG610",
        "A strategy of sharding is used",
        "--data-parallel-sharding-strategy => Megatron-FSDP",
        _strategy,
        "Without it nothing but the optimizer can be sharded, and the flag is ignored.",
        needs=NEEDS,
        severity=WARNING,
        caught=False,
    ),
    rule(
        "MG619",
        "Meta devices have sharded weights",
        "--init-model-with-meta-device => not no_shard",
        _meta,
        "validate_args raises.",
        needs=(*NEEDS, STRATEGY),
    ),
    rule(
        "MG620",
        "Full sharding has no pipeline",
        "Megatron-FSDP optim_grads(_params) => pp = 1",
        _pipeline,
        "Every micro-batch gathers all weights of its stage again, and the pipeline waits for it.",
        needs=(*NEEDS, STRATEGY, "pipeline_model_parallel_size"),
        source=DATA,
        severity=WARNING,
        caught=False,
    ),
)
