"""The harness judges as Megatron does, and Megatron refuses what we say that it refuses."""

import shlex
from collections.abc import Callable
from typing import Any

import pytest

from frameworks.asking import Answer, Validator

pytestmark = pytest.mark.frameworks

MODEL = (
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention"
    " --num-query-groups 8 --seq-length 4096 --max-position-embeddings 4096 --swiglu --normalization RMSNorm"
    " --position-embedding-type rope --untie-embeddings-and-output-weights --disable-bias-linear --bf16"
    " --micro-batch-size 1 --global-batch-size 128"
)
CONNECTIONS = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}
EXPERTS = "--num-experts 8 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1"
EVEN = "--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*8|t*8|t*8|t*8L'"
FSDP = "--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --ckpt-format fsdp_dtensor"

Ask = Callable[..., Answer]


@pytest.fixture
def ask(validator: Callable[[str], Validator]) -> Ask:
    megatron = validator("megatron")

    def asked(flags: str, *, world: int = 64, env: dict[str, str] = CONNECTIONS, **rest: object) -> Answer:
        return megatron.ask(argv=shlex.split(f"{MODEL} {flags}"), world=world, env=env, **rest)

    return asked


@pytest.mark.parametrize(
    ("flags", "facts"),
    [
        ("--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4", {"dp": 8, "vpp": None, "microbatches": 16}),
        ("--context-parallel-size 4 --tensor-model-parallel-size 4 --sequence-parallel", {"dp": 4, "cp": 4}),
        (
            "--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2",
            {"vpp": 2, "first_step": "taken by the interleaved schedule"},
        ),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", {"dp": 64}),
        ("--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather", {"microbatches": 2}),
        (f"{EXPERTS} --tensor-model-parallel-size 2 --sequence-parallel", {"ep": 8, "etp": 1, "tp": 2}),
        ("--num-experts 8 --tensor-model-parallel-size 2", {"etp": 2}),  # it takes that of the tensors unless told
    ],
)
def test_takes(ask: Ask, flags: str, facts: dict[str, Any]) -> None:
    answer = ask(flags)
    assert answer.accepted, answer.message
    assert {key: answer.facts[key] for key in facts} == facts


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--tensor-parallel-size 2", "unrecognized arguments: --tensor-parallel-size 2"),
        ("--recompute-granularity partial", "invalid choice"),
        ("--tensor-model-parallel-size 3", "world size (64) is not divisible"),
        ("--pipeline-model-parallel-size 64", "layers should be divisible by the pipeline-model-parallel size"),
        ("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 3", "layers"),
        ("--global-batch-size 100", "must be divisible by eval_micro_batch_size (1) * data_parallel_size (64)"),
        ("--tensor-model-parallel-size 64", "num_attention_heads"),
        ("--num-experts 12 --expert-model-parallel-size 8", "Number of experts should be a multiple"),
        ("--context-parallel-size 64 --seq-length 4160", "seq"),
        ("--overlap-param-gather", "distributed optimizer"),
        ("--recompute-granularity full", "recompute_method must be"),
        (f"{EVEN} --decoder-first-pipeline-num-layers 8", "layout"),
        ("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*8|t*8|t*8|t*7L'", "32"),
        ("--pipeline-model-parallel-size 4 --pipeline-model-parallel-layout 'Et*8|t*8|t*16L'", "must be divisible by"),
        (
            "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 7",
            "number of layers at middle stage: 25",
        ),
    ],
)
def test_refuses(ask: Ask, flags: str, says: str) -> None:
    answer = ask(flags)
    assert not answer.accepted
    assert says in answer.message


def test_refuses_experts_that_the_ranks_do_not_hold_only_when_groups_are_made(ask: Ask) -> None:
    experts = "--num-experts 96 --expert-model-parallel-size 48 --expert-tensor-parallel-size 1"
    assert "expert_tensor_model_pipeline_parallel size (48)" in ask(experts).message


@pytest.mark.parametrize(
    ("batch", "says"), [(48, "should range in [PP=4 , M=3]"), (96, "The remainder of M"), (112, "The remainder of M")]
)
def test_refuses_micro_batches_that_do_not_interleave_only_at_the_first_step(ask: Ask, batch: int, says: str) -> None:
    flags = f"--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 --global-batch-size {batch}"
    assert says in ask(flags).message


def test_judges_the_environment_of_the_plan_and_not_that_of_this_machine(ask: Ask) -> None:
    two = "--tensor-model-parallel-size 2"
    assert "CUDA_DEVICE_MAX_CONNECTIONS to 1" in ask(two, env={}).message
    assert ask(two, env={}, capability=[10, 0]).accepted
    assert "CUDA_DEVICE_MAX_CONNECTIONS" in ask(FSDP).message
    assert ask(FSDP, env={}).accepted


def test_a_layout_is_cut_as_it_says_with_chunks_going_round(ask: Ask) -> None:
    answer = ask("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*6|t*10|t*9|t*7L'")
    assert [[chunk["layers"] for chunk in stage] for stage in answer.facts["stages"]] == [[6, 9], [10, 7]]
    assert answer.facts["stages"][0][0]["holds"][0] == "embedding"
    assert answer.facts["stages"][1][1]["holds"][-1] == "loss"


def test_first_and_last_stages_may_be_uneven(ask: Ask) -> None:
    answer = ask(
        "--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 6 --decoder-last-pipeline-num-layers 4"
    )
    assert [stage[0]["layers"] for stage in answer.facts["stages"]] == [6, 11, 11, 4]


def test_embedding_and_head_may_count_as_layers(ask: Ask) -> None:
    answer = ask(
        "--num-layers 30 --pipeline-model-parallel-size 4 --account-for-embedding-in-pipeline-split"
        " --account-for-loss-in-pipeline-split"
    )
    assert [stage[0]["layers"] for stage in answer.facts["stages"]] == [7, 8, 8, 7]


def test_ranks_fill_tensors_then_contexts_then_data_then_stages(ask: Ask) -> None:
    answer = ask(
        "--tensor-model-parallel-size 2 --context-parallel-size 2 --pipeline-model-parallel-size 2",
        world=16,
        ranks=[13],
    )
    groups = answer.facts["groups"]["13"]
    assert (groups["tp"], groups["cp"], groups["dp"], groups["pp"]) == ([12, 13], [13, 15], [9, 13], [5, 13])


def test_the_other_mapping_puts_data_outermost(ask: Ask) -> None:
    flags = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --use-tp-pp-dp-mapping"
    groups = ask(flags, world=8, ranks=[0]).facts["groups"]["0"]
    assert (groups["pp"], groups["dp"]) == ([0, 2], [0, 4])


@pytest.mark.parametrize(
    ("flags", "facts"),
    [
        ("--sequence-parallel", {"sequence_parallel": False}),  # switched off without tensor parallelism
        (
            "--num-experts 8 --tensor-model-parallel-size 2",
            {"sequence_parallel": False},
        ),  # refused at the first step
    ],
)
def test_does_not_catch(ask: Ask, flags: str, facts: dict[str, Any]) -> None:
    answer = ask(flags)
    assert answer.accepted
    assert {key: answer.facts[key] for key in facts} == facts


def test_counts_what_a_rank_holds(ask: Ask) -> None:
    whole = ask("--vocab-size 128256", world=1).facts["parameters"]["0"]
    assert sum(whole[0].values()) == 8_030_261_248  # Llama 3 8B, as published

    flags = f"{EXPERTS} --vocab-size 128256 --tensor-model-parallel-size 2 --sequence-parallel"
    (part,) = ask(flags).facts["parameters"]["0"]
    assert part["experts"] == 32 * 3 * 4096 * 14336
    assert part["vocabulary"] == 2 * 128256 * 4096 // 2


def test_one_request_leaves_nothing_to_the_next(ask: Ask) -> None:
    first = ask("--tensor-model-parallel-size 4")
    assert not ask("--tensor-model-parallel-size 4 --pipeline-model-parallel-size 3").accepted
    assert ask("--tensor-model-parallel-size 4") == first


def test_lists_every_flag(validator: Callable[[str], Validator]) -> None:
    flags = {flag["flag"]: flag for flag in validator("megatron").ask(flags=True).facts["flags"]}
    assert flags["--tensor-model-parallel-size"]["type"] == "int"
    assert flags["--recompute-granularity"]["choices"] == ["full", "selective"]
    assert flags["--sequence-parallel"]["kind"] == "StoreTrue"
    assert len(flags) > 800
