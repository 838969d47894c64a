"""Configurations that people reported as refused, hung or silently changed: each is found, and its remedy is not.

The figures are those of the threads; what is not given there is a small model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from configurations.megatron_examples import merged
from planner.configurations.engine import broken
from planner.configurations.forms.megatron import MEGATRON
from planner.domain.configuration import NOTE, Configuration, Finding, Setting, Spot

SMALL = "--hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 131072 --bf16"
QWEN3_MOE = "--num-layers 48 --num-experts 128 --moe-ffn-hidden-size 768 --disable-bias-linear"
ONE = "CUDA_DEVICE_MAX_CONNECTIONS=1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A report."""

    source: str
    flags: str
    ranks: int | None
    codes: tuple[str, ...]
    """What is found, notes apart; nothing if the framework accepts it."""
    says: str = ""
    """Part of the first message."""
    version: str = ""
    variables: str = ONE


CASES = (
    Case(
        source="modelscope/ms-swift issue 5737: GLM-4.5-Air, 46 layers on 4 stages",
        flags="--num-layers 46 --tensor-model-parallel-size 8 --sequence-parallel --pipeline-model-parallel-size 4"
        " --micro-batch-size 2 --global-batch-size 16",
        ranks=64,
        codes=("MG201",),
        says="write --decoder-last-pipeline-num-layers 10 (12,12,12,10) or a layout string",
    ),
    Case(
        source="modelscope/ms-swift issue 6476: 94 layers, the last of 4 stages with 22",
        flags="--num-layers 94 --pipeline-model-parallel-size 4 --decoder-last-pipeline-num-layers 22"
        " --micro-batch-size 1 --global-batch-size 64",
        ranks=16,
        codes=(),
    ),
    Case(
        source="NVIDIA-NeMo/Megatron-Bridge pull request 5893: 20 layers a rank in 12 chunks",
        flags="--num-layers 40 --pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 12"
        " --micro-batch-size 1 --global-batch-size 64",
        ranks=16,
        codes=("MG203",),
        says="stage 0 has 20 layers, which do not divide into 12 chunks; use --num-virtual-stages-per-pipeline-rank 1,"
        " 2, 4, 5, 10, 20",
    ),
    Case(
        source="verl-project/verl pull request 1617: micro-batches and chunks, older core",
        flags="--num-layers 32 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4"
        " --micro-batch-size 1 --global-batch-size 40",
        ranks=16,
        codes=("MG222",),
        says="a replica has 10",
        version="0.9",
    ),
    Case(
        source="NVIDIA/Megatron-LM, schedules.py: 10 micro-batches leave 2 for the last group of 4",
        flags="--num-layers 32 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4"
        " --micro-batch-size 1 --global-batch-size 40",
        ranks=16,
        codes=("MG221",),
        says="10 micro-batches leave 2 for the last group of 4, and fewer than the 4 stages are refused;"
        " write --global-batch-size 32 or 48",
    ),
    Case(
        source="NVIDIA/Megatron-LM, schedules.py: groups of 6 leave 4 of 10, as many as there are stages",
        flags="--num-layers 32 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 4"
        " --micro-batch-size 1 --global-batch-size 40 --microbatch-group-size-per-virtual-pipeline-stage 6",
        ranks=16,
        codes=(),
    ),
    Case(
        source="NVIDIA/Megatron-LM issue 750: chunks on two stages, transfers not overlapped",
        flags="--num-layers 32 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4"
        " --micro-batch-size 1 --global-batch-size 32 --no-overlap-p2p-communication",
        ranks=16,
        codes=("MG223",),
        says="remove --no-overlap-p2p-communication",
    ),
    Case(
        source="NVIDIA/Megatron-LM issue 750: chunks on two stages, before commit 152c562",
        flags="--num-layers 32 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4"
        " --micro-batch-size 1 --global-batch-size 32",
        ranks=16,
        codes=("MG224",),
        version="0.7",
    ),
    Case(
        source="NVIDIA-NeMo/Megatron-Bridge issue 546: Qwen3-30B-A3B, tensor 4 taken for experts, expert 4, 4 GPUs",
        flags=f"{QWEN3_MOE} --tensor-model-parallel-size 4 --sequence-parallel --expert-model-parallel-size 4"
        " --micro-batch-size 1 --global-batch-size 8",
        ranks=4,
        codes=("MG102", "MG104"),
        says="expert tensor degree 4 (4 taken from --tensor-model-parallel-size; write it to be sure)",
    ),
    Case(
        source="NVIDIA-NeMo/Megatron-Bridge issue 546: the same with the expert tensor degree written",
        flags=f"{QWEN3_MOE} --tensor-model-parallel-size 4 --sequence-parallel --expert-model-parallel-size 4"
        " --expert-tensor-parallel-size 1 --micro-batch-size 1 --global-batch-size 8",
        ranks=4,
        codes=(),
    ),
    Case(
        source="THUDM/slime pull request 2077: tensor 2, pipeline 2, expert 8 on 8 GPUs, refused as 16 > 8",
        flags=f"{QWEN3_MOE} --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 2"
        " --expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --micro-batch-size 1 --global-batch-size 8"
        " --moe-token-dispatcher-type alltoall",
        ranks=8,
        codes=("MG102",),
        says="with these, expert degrees 1, 2, 4 fit, or use a multiple of 16 ranks",
    ),
    Case(
        source="THUDM/slime pull request 2077: expert 4 works",
        flags=f"{QWEN3_MOE} --tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 2"
        " --expert-model-parallel-size 4 --expert-tensor-parallel-size 1 --micro-batch-size 1 --global-batch-size 8",
        ranks=8,
        codes=(),
    ),
    Case(
        source="NVIDIA/Megatron-LM, parallel_state.py: pipelines of whole replicas, dense, with context ranks",
        flags="--num-layers 32 --pipeline-model-parallel-size 2 --context-parallel-size 2 --use-tp-pp-dp-mapping"
        " --micro-batch-size 1 --global-batch-size 64",
        ranks=16,
        codes=("MG107",),
        says="leave it out, or write --expert-tensor-parallel-size 2, which a dense model has no other use for",
    ),
    Case(
        source="NVIDIA/Megatron-LM issue 1587: experts, tensor ranks, no sequence parallelism",
        flags=f"{QWEN3_MOE} --tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 8",
        ranks=8,
        codes=("MG504",),
        says="train only with --sequence-parallel",
    ),
    Case(
        source="ROCm/Megatron-LM pull request 85: a dense model without sequence parallelism is no error",
        flags="--num-layers 32 --tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 8",
        ranks=8,
        codes=(),
    ),
    Case(
        source="NVIDIA-NeMo/RL pull request 3563: context 4 and tensor 3 need 4 x lcm(2, 3) = 24",
        flags="--num-layers 32 --tensor-model-parallel-size 3 --context-parallel-size 4 --sequence-parallel"
        " --num-attention-heads 48 --kv-channels 128 --micro-batch-size 1 --global-batch-size 8",
        ranks=24,
        codes=("MG411",),
        says="write --seq-length 4104",
    ),
    Case(
        source="NVIDIA-NeMo/RL pull request 3563: the joint multiple is 24, not 2 x 4 x 3 x 2",
        flags="--num-layers 32 --tensor-model-parallel-size 3 --context-parallel-size 4 --sequence-parallel"
        " --num-attention-heads 48 --kv-channels 128 --seq-length 4104 --micro-batch-size 1 --global-batch-size 8",
        ranks=24,
        codes=(),
    ),
    Case(
        source="bigcode-project/starcoder issue 41: a batch of 256 for 7 replicas",
        flags="--num-layers 32 --micro-batch-size 2 --global-batch-size 256",
        ranks=7,
        codes=("MG302",),
        says="write --global-batch-size 252 or 266",
    ),
    Case(
        source="hpcaitech/ColossalAI issue 6167: 65,535 rows on two tensor ranks",
        flags="--num-layers 32 --tensor-model-parallel-size 2 --sequence-parallel --micro-batch-size 1"
        " --global-batch-size 8 --vocab-size 65535 --no-pad-vocab-size",
        ranks=8,
        codes=("MG417",),
        says="pad it to 65536",
    ),
    Case(
        source="NVIDIA/Megatron-LM, validate_args: tensor ranks with 8 queues of kernels, before Blackwell",
        flags="--num-layers 32 --tensor-model-parallel-size 2 --sequence-parallel --micro-batch-size 1"
        " --global-batch-size 8",
        ranks=8,
        codes=("MG701",),
        variables="CUDA_DEVICE_MAX_CONNECTIONS=8",
    ),
    Case(
        source="NVIDIA/Megatron-LM, validate_args: Megatron-FSDP with one queue of kernels, and other checkpoints",
        flags="--num-layers 32 --use-megatron-fsdp --micro-batch-size 1 --global-batch-size 8",
        ranks=8,
        codes=("MG607", "MG703"),
    ),
    Case(
        source="NVIDIA/Megatron-LM, validate_args: torch FSDP2 with a pipeline, tied",
        flags="--num-layers 32 --use-torch-fsdp2 --pipeline-model-parallel-size 2 --micro-batch-size 1"
        " --global-batch-size 8",
        ranks=8,
        codes=("MG605",),
        says="--use-torch-fsdp2 needs no pipeline, --no-gradient-accumulation-fusion,"
        " --untie-embeddings-and-output-weights",
        variables="",
    ),
    Case(
        source="NVIDIA/Megatron-LM, validate_args: optimizer on the host, selective recompute with a method",
        flags="--num-layers 32 --optimizer-cpu-offload --recompute-granularity selective --recompute-method block"
        " --micro-batch-size 1 --global-batch-size 8",
        ranks=8,
        codes=("MG614", "MG642"),
    ),
    Case(
        source="NVIDIA/Megatron-LM, transformer_config.py: layers on the host with a pipeline",
        flags="--num-layers 32 --cpu-offloading-num-layers 4 --pipeline-model-parallel-size 2 --micro-batch-size 1"
        " --global-batch-size 16",
        ranks=8,
        codes=("MG649",),
    ),
    Case(
        source="modelscope/ms-swift pull request 9827: multi-token prediction in a stage before the loss",
        flags="--num-layers 60 --mtp-num-layers 1 --position-embedding-type rope --pipeline-model-parallel-size 16"
        " --micro-batch-size 1 --global-batch-size 64 --pipeline-model-parallel-layout E(|tt)*30,|mL",
        ranks=16,
        codes=(),
    ),
    Case(
        source="NVIDIA/Megatron-LM, pipeline_parallel_layer_layout.py: multi-token prediction before decoder layers",
        flags="--num-layers 4 --mtp-num-layers 1 --position-embedding-type rope --pipeline-model-parallel-size 2"
        " --micro-batch-size 1 --global-batch-size 64 --pipeline-model-parallel-layout Ettm|ttL",
        ranks=16,
        codes=("MG214",),
    ),
)


def configuration(case: Case) -> Configuration:
    words, _ = merged(SMALL, case.flags)
    spot = Spot("run.sh")
    pairs = [item.partition("=") for item in case.variables.split()]
    return replace(
        MEGATRON.read("\n".join(words), "run.sh"),
        version=case.version,
        world=Setting(name="world size", value=case.ranks, spot=spot) if case.ranks else None,
        environment={name: Setting(name=name, value=value, spot=spot) for name, _, value in pairs},
    )


def found(case: Case) -> list[Finding]:
    return [one for one in broken(MEGATRON, configuration(case)) if one.severity != NOTE]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.source)
def test_reports(case: Case) -> None:
    """What the framework refused is found with what was written there, and what worked is not."""
    complaints = found(case)
    assert tuple(sorted({one.code for one in complaints})) == case.codes
    assert case.says in " ".join(one.message for one in complaints)
