"""Plans as arguments of Megatron-DeepSpeed: what they say, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import builders
import uniform
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import CannotExpress
from planner.export.frameworks.megatron_deepspeed import MEGATRON_DEEPSPEED
from planner.pipeline.written import parts
from planner.specs.plan import PlanFile


def stage(first: int, last: int, *, recompute: str = "none", num_recomputed: int = 0) -> Stage:
    return Stage(
        group="chips",
        first_layer=first,
        last_layer=last,
        strategy=Strategy(degrees=(("tp", 2),), sequence_parallel=True),
        recompute=recompute,
        num_recomputed=num_recomputed,
    )


def plan(*stages: Stage, zero: int = 1) -> Plan:
    return Plan(stages=stages, schedule="1f1b", num_replicas=2, micro_batch=1, num_microbatches=8, zero_stage=zero)


TWO = plan(stage(0, 1), stage(2, 3))


def lines(file: PlanFile) -> list[str]:
    return parts(MEGATRON_DEEPSPEED, file)[0].text.splitlines()


def test_a_pipeline_is_written_out() -> None:
    """Size, degrees, batch, precision, and what DeepSpeed reads."""
    assert lines(uniform.plan_file(TWO, 4)) == [
        "--num-layers 4",
        "--hidden-size 768",
        "--ffn-hidden-size 3072",
        "--num-attention-heads 16",
        "--num-key-value-heads 16",
        "--kv-channels 64",
        "--seq-length 384",
        "--max-position-embeddings 4096",
        "--normalization rmsnorm",
        "--swiglu",
        "--use-rotary-position-embeddings",
        "--disable-bias-linear",
        "--untie-embeddings-and-output-weights",
        "--no-query-key-layer-scaling",
        "--tensor-model-parallel-size 2",
        "--sequence-parallel",
        "--pipeline-model-parallel-size 2",
        "--micro-batch-size 1",
        "--global-batch-size 16",
        "--bf16",
        "--deepspeed",
        "--deepspeed_config ds_config.json",
        "--zero-stage 1",
    ]


def test_json_and_variables_stand_beside_the_arguments() -> None:
    """A pipeline exchanges by itself; sequence parallelism wants one queue."""
    _, environment, config = parts(MEGATRON_DEEPSPEED, uniform.plan_file(TWO, 4))
    assert environment.text.endswith("CUDA_DEVICE_MAX_CONNECTIONS=1\n")
    found = json.loads(config.text)
    assert (found["train_batch_size"], found["gradient_accumulation_steps"]) == (16, 8)
    assert found["zero_optimization"]["overlap_comm"] is False


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_without_stages_there_is_no_pipeline_engine(zero: int) -> None:
    """deepspeedai/Megatron-DeepSpeed issue 474: GPTModelPipe refuses ZeRO 2 and 3 even with pipeline degree 1."""
    found = lines(uniform.plan_file(plan(stage(0, 3), zero=zero), 4))
    assert found[16:18] == ["--pipeline-model-parallel-size 1", "--no-pipeline-parallel"]
    assert found[-1] == f"--zero-stage {zero}"


def test_recompute_is_of_all_stages() -> None:
    """Full by DeepSpeed's checkpoints, or Megatron's selective."""
    full = plan(stage(0, 1, num_recomputed=2), stage(2, 3, num_recomputed=2))
    found = lines(uniform.plan_file(full, 4))
    assert "--deepspeed-activation-checkpointing" in found
    assert "--recompute-granularity full" in found
    chosen = plan(stage(0, 1, recompute="selective"), stage(2, 3, recompute="selective"))
    assert "--recompute-granularity selective" in lines(uniform.plan_file(chosen, 4))


def test_launchers_start_the_script() -> None:
    """No argument needs quotes."""
    assert MEGATRON_DEEPSPEED.program
    assert MEGATRON_DEEPSPEED.document
    program = MEGATRON_DEEPSPEED.program(uniform.plan_file(TWO, 4))
    assert program.command[:3] == ("pretrain_gpt.py", "--num-layers", "4")
    assert [part.name for part in program.parts] == ["arguments.txt", "environment.env", "ds_config.json"]
    assert MEGATRON_DEEPSPEED.document(uniform.plan_file(TWO, 4))["arguments"] == list(program.command[1:])


def test_ranks_must_be_counted_stage_by_stage() -> None:
    """Its topology has stages outermost."""
    file = uniform.plan_file(TWO, 4)
    halves = [replace(builders.group(name, nodes=2, per_node=2), nodes="boxes") for name in ("chips", "others")]
    mixed = replace(TWO, stages=(TWO.stages[0], replace(TWO.stages[1], group="others")))
    with pytest.raises(CannotExpress, match="counts ranks in the order tp-cp-dp-pp, and the plan in tp-cp-pp-dp"):
        MEGATRON_DEEPSPEED.parts(replace(file, plan=mixed, cluster=builders.cluster(*halves)))


def test_models_that_it_cannot_build_are_refused() -> None:
    """With what is missing."""
    file = uniform.plan_file(TWO, 4)
    with pytest.raises(CannotExpress, match="builds gpt2, llama, mistral, not qwen3"):
        MEGATRON_DEEPSPEED.parts(replace(file, model=replace(file.model, family="qwen3")))
    with pytest.raises(CannotExpress, match="positions for 4096 tokens, and the job's samples have 8192"):
        MEGATRON_DEEPSPEED.parts(replace(file, job=replace(file.job, sequence=8192)))
