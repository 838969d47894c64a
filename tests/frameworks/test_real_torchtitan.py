"""The harness judges as torchtitan does, which refuses what we say that it refuses, in its old form and its new."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from frameworks.asking import Answer, Validator

pytestmark = pytest.mark.frameworks

Ask = Callable[..., Answer]


def _layers(first: int, after: int) -> list[str]:
    return [f"layers.{number}" for number in range(first, after)]


def _split(head: str) -> str:
    """Llama 3 8B in four stages of 6, 10, 10 and 6 layers."""
    parts = [["tok_embeddings", *_layers(0, 6)], _layers(6, 16), _layers(16, 26), [*_layers(26, 32), "norm", head]]
    return json.dumps(parts)


@pytest.fixture
def toml(validator: Callable[[str], Validator]) -> Ask:
    """Asks 0.2 about a TOML file with these lines."""
    titan = validator("torchtitan_02")

    def asked(
        parallelism: str = "", training: str = "", *, model: str = "llama3/8B", world: int = 16, **rest: object
    ) -> Answer:
        name, flavor = model.split("/")
        text = f'[model]\nname = "{name}"\nflavor = "{flavor}"\n[training]\n{training}\n[parallelism]\n{parallelism}\n'
        return titan.ask(text=text, world=world, **rest)

    return asked


@pytest.fixture
def module(validator: Callable[[str], Validator]) -> Ask:
    """Asks 0.3 about a module whose function sets these keys."""
    titan = validator("torchtitan_03")

    def asked(
        *lines: str, model: str = "llama3/llama3_8b", world: int = 16, argv: tuple[str, ...] = (), **rest: object
    ) -> Answer:
        name, registered = model.split("/")
        start = ["c.training.disable_cuda_graphs = True", "c.training.local_batch_size = 8"]
        body = "".join(f"    {line}\n" for line in ["c = base()", *start, *lines, "return c"])
        text = f"from torchtitan.models.{name}.config_registry import {registered} as base\n\n\ndef plan():\n{body}"
        flags = ["--module", "plan_titan", "--config", "plan", *argv]
        return titan.ask(files={"plan_titan.py": text}, argv=flags, world=world, **rest)

    return asked


PIPELINE_02 = (
    f"pipeline_parallel_degree = 4\ntensor_parallel_degree = 2\nmodule_fqns_per_model_part = {_split('output')}"
)
PIPELINE_03 = (
    "c.parallelism.pipeline_parallel_degree = 4",
    "c.parallelism.tensor_parallel_degree = 2",
    "c.parallelism.pipeline_parallel_schedule = '1F1B'",
    f"c.parallelism.module_fqns_per_model_part = {_split('lm_head')}",
)


@pytest.mark.parametrize(
    ("parallelism", "training", "facts"),
    [
        ("", "", {"microbatches": None, "gradient_accumulation_steps": 1}),
        ("", "global_batch_size = 256", {"gradient_accumulation_steps": 2}),
        ("pipeline_parallel_degree = 4", "", {"schedule": "Schedule1F1B", "microbatches": 8}),
        ("context_parallel_degree = 2\ntensor_parallel_degree = 4", "seq_len = 4096", {"microbatches": None}),
        ("data_parallel_replicate_degree = 2\nfsdp_reshard_after_forward = 'never'", "", {"schedule": None}),
    ],
)
def test_the_old_form_is_taken(toml: Ask, parallelism: str, training: str, facts: dict[str, Any]) -> None:
    answer = toml(parallelism, training)
    assert answer.accepted, answer.message
    assert {key: answer.facts["0"][key] for key in facts} == facts


def test_old_stages_are_cut_as_the_file_says(toml: Ask) -> None:
    facts = toml(PIPELINE_02, ranks=[0, 15]).facts
    assert facts["0"]["stages"][0]["layers"] == [0, 1, 2, 3, 4, 5]
    assert facts["15"]["stages"][0]["layers"] == [26, 27, 28, 29, 30, 31]
    assert facts["15"]["stages"][0]["holds"] == ["norm", "output"]
    assert facts["0"]["parallel"] == {"pp": 4, "dp_replicate": 1, "dp_shard": 2, "cp": 1, "tp": 2, "ep": 1, "etp": 1}


def test_old_looped_schedules_give_a_rank_several_stages(toml: Ask) -> None:
    looped = "pipeline_parallel_degree = 4\npipeline_parallel_schedule = '{}'"
    stages = {name: toml(looped.format(name)).facts["0"]["stages"] for name in ("Interleaved1F1B", "ZBVZeroBubble")}
    assert {name: [stage["stage"] for stage in held] for name, held in stages.items()} == {
        "Interleaved1F1B": [0, 4],
        "ZBVZeroBubble": [0, 7],
    }


def test_old_parameters_are_shards_of_the_whole(toml: Ask) -> None:
    assert toml(world=8).facts["0"]["stages"][0]["parameters"] == 8_030_261_248 // 8


@pytest.mark.parametrize(
    ("parallelism", "training", "says"),
    [
        ("tensor_degree = 2", "", "Invalid field names"),
        ("data_parallel_shard_degree = 3", "", "!= WORLD_SIZE(16)"),
        ("", "global_batch_size = 17", "global batch size must be multiple of"),
        (
            "pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 3",
            "",
            "must be divisible by microbatch_size 3",
        ),
        (
            "pipeline_parallel_degree = 16",
            "local_batch_size = 8",
            "must be greater than or equal to the number of stages",
        ),
        (
            "context_parallel_degree = 2\ntensor_parallel_degree = 2",
            "seq_len = 1022",
            "must be divisible by the product",
        ),
        ("fsdp_reshard_after_forward = 'sometimes'", "", "reshard_after_forward_policy: sometimes"),
        ("pipeline_parallel_degree = 4\npipeline_parallel_layers_per_stage = 5", "", "must be divisible by"),
        ("pipeline_parallel_degree = 4\npipeline_parallel_schedule = '2F2B'", "", "2F2B"),
        ("tensor_parallel_degree = [", "", "TOMLDecodeError"),
    ],
)
def test_the_old_form_is_refused(toml: Ask, parallelism: str, training: str, says: str) -> None:
    answer = toml(parallelism, training)
    assert not answer.accepted
    assert says in answer.message


def test_old_experts_must_divide_the_shards(toml: Ask) -> None:
    experts = "expert_parallel_degree = {}\ndata_parallel_shard_degree = 16"
    assert toml(experts.format(4), model="deepseek_v3/16B").accepted
    assert not toml(experts.format(3), model="deepseek_v3/16B").accepted


def test_what_the_old_version_does_not_catch(toml: Ask) -> None:
    # 8 heads of keys and values cannot be split in 16: it breaks at the first step.
    assert toml("tensor_parallel_degree = 16").accepted
    # The head has another name in 0.3: it is left out of the model without a word.
    headless = toml(PIPELINE_02.replace('"output"', '"lm_head"'), ranks=[15]).facts["15"]["stages"][0]
    assert headless["holds"] == ["norm"]


@pytest.mark.parametrize(
    ("lines", "facts"),
    [
        ((), {"microbatches": None, "gradient_accumulation_steps": 1}),
        (("c.training.global_batch_size = 256",), {"gradient_accumulation_steps": 2}),
        (PIPELINE_03, {"schedule": "Schedule1F1B", "microbatches": 8}),
        (("c.parallelism.context_parallel_degree = 2", "c.parallelism.tensor_parallel_degree = 4"), {"schedule": None}),
    ],
)
def test_the_new_form_is_taken(module: Ask, lines: tuple[str, ...], facts: dict[str, Any]) -> None:
    answer = module(*lines)
    assert answer.accepted, answer.message
    assert {key: answer.facts["0"][key] for key in facts} == facts


def test_new_stages_are_cut_as_the_module_says(module: Ask) -> None:
    facts = module(*PIPELINE_03, ranks=[0, 15]).facts
    assert facts["0"]["stages"][0]["layers"] == [0, 1, 2, 3, 4, 5]
    assert facts["15"]["stages"][0]["holds"] == ["norm", "lm_head"]
    assert facts["15"]["stages"][0]["parameters"] == 917_032_960  # half of the stage, with its norms whole
    assert facts["0"]["parallel"]["dp_shard"] == 2


def test_flags_go_over_the_module(module: Ask) -> None:
    answer = module(argv=("--parallelism.data-parallel-replicate-degree=4",))
    assert answer.facts["0"]["parallel"]["dp_shard"] == 4


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (("c.parallelism.tensor_degree = 2",), "no attribute 'tensor_degree'"),
        (("c.parallelism.data_parallel_shard_degree = 3",), "!= WORLD_SIZE(16)"),
        (("c.training.global_batch_size = 17",), "global batch size must be multiple of"),
        (("c.parallelism.tensor_parallel_degree = 16",), "must divide n_kv_heads (8)"),
        (("c.parallelism.context_parallel_degree = 2", "c.training.seq_len = 1022"), "must be divisible by 4"),
        ((*PIPELINE_03, "c.training.disable_cuda_graphs = False"), "CUDA graphs do not support pipeline parallelism"),
        ((*PIPELINE_03, "c.parallelism.pipeline_parallel_schedule = '2F2B'"), "2F2B"),
    ],
)
def test_the_new_form_is_refused(module: Ask, lines: tuple[str, ...], says: str) -> None:
    answer = module(*lines)
    assert not answer.accepted
    assert says in answer.message.replace("│", " ")


def test_flags_that_there_are_not_are_refused(module: Ask) -> None:
    assert "Unrecognized options: --parallelism.width=1" in module(argv=("--parallelism.width=1",)).message


def test_what_the_new_version_does_not_catch(module: Ask) -> None:
    # A misspelt or missing module is left out of the model without a word.
    headless = module(*PIPELINE_03[:3], f"c.parallelism.module_fqns_per_model_part = {_split('output')}", ranks=[15])
    assert headless.facts["15"]["stages"][0]["holds"] == ["norm"]
    few = ["tok_embeddings", "layers.0"], ["layers.7"], ["layers.9"], ["norm", "lm_head"]
    assert module(*PIPELINE_03[:3], f"c.parallelism.module_fqns_per_model_part = {list(few)}").accepted


@pytest.mark.parametrize(("name", "table"), [("torchtitan_02", "parallelism"), ("torchtitan_03", "parallelism")])
def test_lists_every_key(validator: Callable[[str], Validator], name: str, table: str) -> None:
    keys = validator(name).ask(keys=True).facts["tables"][table]
    assert keys["tensor_parallel_degree"] == {"type": "int", "choices": None, "default": 1}
    assert ("expert_tensor_parallel_degree" in keys) == (name == "torchtitan_02")
