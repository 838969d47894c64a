"""Plans as DeepSpeed's JSON: what it says, what it refuses, and that reading it gives the plan again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import uniform
from configurations import cases
from planner.checks import refusals
from planner.configurations.forms.deepspeed import DEEPSPEED as FORM
from planner.domain.configuration import NOTE
from planner.errors import CannotExpress
from planner.export.frameworks.deepspeed import DEEPSPEED
from planner.pipeline.written import parts
from planner.specs.catalog import framework
from planner.specs.plan import PlanFile

ULYSSES = uniform.plan(cp=2, dp=4, zero=2, micro_batch=2, num_microbatches=3, comm="a2a")


def config(file: PlanFile) -> str:
    part, _ = parts(DEEPSPEED, file)
    assert part.name == "ds_config.json"
    return part.text


def notes(file: PlanFile) -> str:
    return parts(DEEPSPEED, file)[1].text


def test_everything_of_a_plan_is_written_out() -> None:
    """All three parts of the batch, both degrees of the mesh, one precision."""
    assert json.loads(config(uniform.plan_file(ULYSSES, 4))) == {
        "train_batch_size": 24,
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 3,
        "bf16": {"enabled": True},
        "fp16": {"enabled": False},
        "zero_optimization": {
            "stage": 2,
            "overlap_comm": True,
            "contiguous_gradients": True,
            "reduce_bucket_size": 500_000_000,
            "allgather_bucket_size": 500_000_000,
        },
        "sequence_parallel_size": 2,
        "data_parallel_size": 4,
    }


def test_notes_tell_what_the_script_must_do() -> None:
    """Recompute and Ulysses are the script's."""
    ulysses = "- Ulysses over 2 consecutive ranks: UlyssesSPAttentionHF.register_with_transformers("
    assert notes(uniform.plan_file(ULYSSES, 4)).splitlines()[1:] == [
        "- samples of 384 tokens, 2 in each micro-batch",
        "- gradients added up over 3 micro-batches, one call of engine.step for each",
        "- no layer recomputed: no gradient checkpointing",
        f"{ulysses}sequence_parallel_size=2), and UlyssesSPDataLoaderAdapter around the data",
    ]
    assert "every layer recomputed" in notes(uniform.plan_file(uniform.plan(dp=2, zero=3, recompute=True), 2))


def test_launchers_start_a_script_with_it() -> None:
    """With the arguments of deepspeed.add_config_arguments; nothing needs quotes."""
    assert DEEPSPEED.program
    program = DEEPSPEED.program(uniform.plan_file(ULYSSES, 4))
    assert program.command == ("train.py", "--deepspeed", "--deepspeed_config", "ds_config.json")
    assert [part.name for part in program.parts] == ["ds_config.json", "ds_config_notes.txt"]


def test_it_is_steady() -> None:
    """The same again, ending with a line."""
    file = uniform.plan_file(ULYSSES, 4)
    assert config(file) == config(file)
    assert config(file).endswith("}\n")


def test_a_pipeline_is_refused() -> None:
    """It is cut in code."""
    stage = uniform.plan().stages[0]
    halves = (replace(stage, last_layer=1), replace(stage, first_layer=2))
    file = uniform.plan_file(replace(uniform.plan(num_microbatches=2), stages=halves), 2)
    with pytest.raises(CannotExpress, match="PipelineModule cuts the layers in the script's code"):
        DEEPSPEED.parts(file)


def test_other_precisions_and_recompute_are_refused() -> None:
    """All reasons at once."""
    plan = uniform.plan(dp=2)
    plan = replace(plan, stages=(replace(plan.stages[0], recompute="selective"),))
    with pytest.raises(CannotExpress) as refused:
        DEEPSPEED.parts(uniform.plan_file(plan, 2, "fp8"))
    assert [reason.partition(",")[0] for reason in refused.value.reasons] == [
        "it trains in bf16",
        "selective recompute is the model's own and nothing that its JSON says; plan with recompute=none",
    ]


@pytest.mark.parametrize("seed", range(60))
def test_what_is_written_is_read_again(seed: int) -> None:
    """By our own reader: no rule is broken, and it means the plan."""
    file = uniform.drawn(seed, "a2a", tensor=False)
    assert not refusals(file.plan, framework("deepspeed"), file.cluster)
    text = DEEPSPEED.parts(file)[0].text
    told = cases.findings(FORM, text, "ds_config.json", world=file.plan.num_devices)
    assert all(one.severity == NOTE for one in told), told
    meant = FORM.setup(cases.read(FORM, text, "ds_config.json"))
    layout, stage = meant.layout, file.plan.stages[0]
    assert (layout.dp, layout.cp, layout.zero) == (
        file.plan.num_replicas,
        stage.strategy.degree("cp"),
        file.plan.zero_stage,
    )
    assert (layout.mbs, layout.gbs) == (file.plan.micro_batch, file.plan.global_batch)
    assert (layout.recompute == "full") == bool(stage.num_recomputed)
    assert (meant.world, meant.precision) == (file.plan.num_devices, file.job.precision)
