"""The rules of torchtitan: each has something that breaks it, a message that says what to write, and public cases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.configurations.engine import broken
from planner.configurations.forms.torchtitan import TORCHTITAN as FORM
from planner.domain.configuration import NOTE, Configuration, Finding, Setting, Spot

CASES = yaml.safe_load((Path(__file__).parent / "torchtitan_cases.yaml").read_text(encoding="utf-8"))
RULES = {rule.code: rule for rule in FORM.rules}
BASE = {
    "model.name": "llama3",
    "model.flavor": "8B",
    "training.local_batch_size": 8,
    "training.seq_len": 8192,
    "parallelism.data_parallel_shard_degree": 2,
    "parallelism.tensor_parallel_degree": 2,
    "parallelism.pipeline_parallel_degree": 4,
    "activation_checkpoint.selective_ac_option": "op",
}
"""16 ranks without a fault."""


def toml(values: Mapping[str, Any], ranks: int) -> Configuration:
    """Return the configuration of TOML text with these values, each in its table."""
    tables: dict[str, list[str]] = {}
    for key, value in values.items():
        table, _, name = key.partition(".")
        tables.setdefault(table, []).append(f"{name} = {json.dumps(value)}")
    text = "".join(f"[{table}]\n" + "\n".join(lines) + "\n" for table, lines in tables.items())
    found = FORM.read(text, "plan.toml")
    return replace(found, world=Setting(name="ranks", value=ranks, spot=Spot("launcher")))


def module(values: Mapping[str, Any], ranks: int) -> Configuration:
    """Return the configuration of a Python module with the same values."""
    recipe = {"8B": "llama3_8b", "16B": "deepseek_v3_16b", "0.6B": "qwen3_0_6b"}[values["model.flavor"]]
    lines = [f"    c.{key} = {value!r}" for key, value in values.items() if key.partition(".")[0] in MODULE_TABLES]
    head = f"from torchtitan.models.x.config_registry import {recipe}\n\n\ndef plan():\n    c = {recipe}()\n"
    found = FORM.read(head + "\n".join(lines) + "\n    return c\n", "plan.py")
    return replace(found, world=Setting(name="ranks", value=ranks, spot=Spot("launcher")))


MODULE_TABLES = ("training", "parallelism", "compile", "checkpoint")


def complaints(found: Configuration) -> dict[str, Finding]:
    return {one.code: one for one in broken(FORM, found)}


def layers(*sizes: int, head: str = "output") -> list[list[str]]:
    """Return lists of modules with so many layers a stage."""
    numbers = iter(range(sum(sizes)))
    parts = [[f"layers.{next(numbers)}" for _ in range(size)] for size in sizes]
    return [["tok_embeddings", *parts[0]], *parts[1:-1], [*parts[-1], "norm", head]]


PARTS = "parallelism.module_fqns_per_model_part"
SCHEDULE = "parallelism.pipeline_parallel_schedule"
LESS = {
    "parallelism.pipeline_parallel_first_stage_less_layers": 0,
    "parallelism.pipeline_parallel_last_stage_less_layers": 0,
}
BROKEN_TOML: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("TT001", {"training.local_batch_sizes": 1}, "did you mean local_batch_size"),
    ("TT001", {"training.batch_size": 1}, "write training.local_batch_size"),
    ("TT002", {"training.seq_len": "8192"}, "should be a whole number, not '8192'"),
    ("TT002", {"parallelism.fsdp_reshard_after_forward": "allways"}, "did you mean always?"),
    ("TT004", {"model.flavor": "7B"}, "no llama3 of flavor 7B"),
    ("TT101", {"parallelism.tensor_parallel_degree": 0}, "write a whole number from 1 on"),
    ("TT101", {"parallelism.data_parallel_shard_degree": -2}, "or -1 for all ranks that are left"),
    ("TT102", {"parallelism.data_parallel_shard_degree": 4}, "= 32 ranks, and the run has 16; write"),
    (
        "TT102",
        {"parallelism.data_parallel_shard_degree": -1, "parallelism.tensor_parallel_degree": 8},
        "16 ranks are no multiple of 1 replicate * 1 cp * 8 tp * 4 pp = 32; run on 32 ranks",
    ),
    ("TT103", {"parallelism.data_parallel_shard_degree": -1}, "write 2"),
    (
        "TT104",
        {"parallelism.data_parallel_shard_degree": 1, "parallelism.data_parallel_replicate_degree": 2},
        "write data_parallel_shard_degree = 2 and data_parallel_replicate_degree = 1",
    ),
    ("TT105", {"parallelism.enable_async_tensor_parallel": True}, "write compile.enable = true"),
    ("TT201", {SCHEDULE: "1F1Bs"}, "did you mean 1F1B"),
    ("TT202", {PARTS: layers(8, 8, 8, 4, 4)}, "5 lists do not divide over 4 pipeline ranks; make them 4 or 8"),
    ("TT202", {"parallelism.pipeline_parallel_layers_per_stage": 5}, "7 stages of 5 layers do not divide"),
    ("TT203", {PARTS: layers(8, 8, 8, 8), SCHEDULE: "ZBVZeroBubble"}, "exactly two stages a rank, and these are 1"),
    ("TT203", {"parallelism.pipeline_parallel_layers_per_stage": 9, SCHEDULE: "LoopedBFS"}, "write fewer layers"),
    ("TT203", {**LESS, "parallelism.pipeline_parallel_layers_per_stage": 4}, "write more layers a stage"),
    ("TT204", {"parallelism.pipeline_parallel_first_stage_less_layers": 20}, "write 11 or less"),
    ("TT205", {PARTS: layers(8, 8, 8, 7)}, "layers.31 of llama3 8B would be in no stage"),
    ("TT205", {PARTS: layers(8, 8, 8, 8, head="lm_head")}, "the head is called output up to 0.2"),
    ("TT206", {PARTS: layers(0, 11, 11, 10)}, "stage 0 holds tok_embeddings and no layer"),
    ("TT207", {"model.name": "qwen3"}, "qwen3 cannot be cut into stages"),
    (
        "TT210",
        {PARTS: layers(4, 4, 4, 4, 4, 4, 4, 4)},
        "1F1B runs the first of the 2 stages of each rank and leaves out the others",
    ),
    ("TT211", {PARTS: layers(8, 8, 8, 8), SCHEDULE: "Interleaved1F1B"}, "make 8 stages, or write"),
    ("TT212", {SCHEDULE: "InterleavedZeroBubble", "compile.enable": True}, "write compile.enable = false"),
    ("TT301", {"training.local_batch_size": 0}, "write a whole number from 1 on"),
    ("TT302", {"parallelism.pipeline_parallel_microbatch_size": 3}, "write local_batch_size = 6 or 9"),
    ("TT303", {"training.local_batch_size": 2}, "write local_batch_size = 4 or more"),
    ("TT304", {"training.local_batch_size": 11, SCHEDULE: "Interleaved1F1B"}, "write local_batch_size = 8 or 12"),
    ("TT305", {"training.global_batch_size": 24}, "write global_batch_size = 16 or 32"),
    ("TT306", {"training.local_batch_size": 2, SCHEDULE: "Interleaved1F1B"}, "idle for about 43% of the step"),
    ("TT307", {"training.global_batch_size": 64}, "write local_batch_size = 32"),
    (
        "TT407",
        {"parallelism.tensor_parallel_degree": 16},
        "heads of keys and values of llama3 8B; write one of 1, 2, 4, 8",
    ),
    ("TT402", {"training.seq_len": 8190}, "write seq_len = 8188 or 8192"),
    ("TT404", {"training.seq_len": 262144}, "longer than the 131072"),
    ("TT405", {"model.flavor": "8B_varlen", "parallelism.context_parallel_degree": 2}, "no context parallelism"),
    (
        "TT406",
        {"parallelism.context_parallel_degree": 2, "parallelism.context_parallel_load_balancer": "tail"},
        "write headtail, ptrr or None",
    ),
    (
        "TT501",
        {"model.name": "deepseek_v3", "model.flavor": "16B", "parallelism.expert_parallel_degree": 3},
        "64 experts",
    ),
    (
        "TT502",
        {"model.name": "deepseek_v3", "model.flavor": "16B", "parallelism.expert_parallel_degree": 8},
        "write an expert_parallel_degree that divides 4",
    ),
    (
        "TT503",
        {"parallelism.expert_parallel_degree": 2, "parallelism.expert_tensor_parallel_degree": 4},
        "is neither 1 nor the tensor degree 2",
    ),
    ("TT504", {"parallelism.expert_parallel_degree": 2}, "has no effect"),
    ("TT601", {"activation_checkpoint.mode": "memory_budget"}, "write compile.enable = true"),
    ("TT602", {"activation_checkpoint.selective_ac_option": "ops"}, "is neither"),
    ("TT603", {"parallelism.data_parallel_shard_degree": 1}, "compute in float32"),
    (
        "TT604",
        {"parallelism.data_parallel_shard_degree": 1, "training.enable_cpu_offload": True},
        "nothing is offloaded",
    ),
    ("TT605", {"parallelism.fsdp_reshard_after_forward": "always"}, "for every micro-batch"),
    ("TT606", {"checkpoint.enable": True}, "here 2"),
)
BROKEN_MODULE: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("TT001", {"parallelism.expert_tensor_parallel_degree": 1}, "0.3 has no such degree"),
    ("TT105", {"compile.enable_async_tensor_parallel": True}, "write compile.enable = true"),
    ("TT205", {PARTS: layers(8, 8, 8, 8)}, "the head is called lm_head from 0.3 on, and was output before"),
    ("TT208", {"model.flavor": "0.6B"}, "uses the embedding's weights in its head"),
    ("TT209", {"training.disable_cuda_graphs": False}, "write training.disable_cuda_graphs = True"),
    ("TT401", {"parallelism.tensor_parallel_degree": 16}, "write one of 1, 2, 4, 8"),
    ("TT403", {"training.seq_len": 262144}, "longer than the 131072"),
    (
        "TT505",
        {
            "model.flavor": "16B",
            "training.disable_cuda_graphs": False,
            "parallelism.pipeline_parallel_degree": 1,
            "parallelism.expert_parallel_degree": 4,
        },
        "write training.disable_cuda_graphs = True",
    ),
)


def test_codes_are_used_once_and_say_it_all() -> None:
    """Every rule has what `planner explain` tells."""
    assert len(RULES) == len(FORM.rules)
    for rule in FORM.rules:
        assert rule.code.startswith("TT")
        assert all((rule.name, rule.summary, rule.why, rule.source))


def test_every_rule_is_broken_by_something() -> None:
    """No rule goes untested."""
    tried = {code for code, _, _ in (*BROKEN_TOML, *BROKEN_MODULE)} | {"TT003"}
    assert tried == set(RULES)


def test_what_is_sound_is_left_alone() -> None:
    """Neither the TOML nor the module has a word said against it."""
    assert complaints(toml(BASE, 16)) == {}
    values = {**BASE, "training.disable_cuda_graphs": True}
    assert complaints(module(values, 16)) == {}


@pytest.mark.parametrize(
    ("code", "changes", "message"), BROKEN_TOML, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_rule_speaks_up_in_toml(code: str, changes: dict[str, Any], message: str) -> None:
    """The message holds the numbers and the remedy, and stands where the setting is."""
    found = complaints(toml({**BASE, **changes}, 16))
    assert code in found, found
    assert message in found[code].message
    written = {key.rpartition(".")[2] for key in (*BASE, *changes)}
    if found[code].key.rpartition(".")[2] in written:
        assert found[code].spot.line > 0


@pytest.mark.parametrize(
    ("code", "changes", "message"), BROKEN_MODULE, ids=lambda one: one if isinstance(one, str) else ""
)
def test_a_rule_speaks_up_in_a_module(code: str, changes: dict[str, Any], message: str) -> None:
    """The same for the version that reads Python."""
    found = complaints(module({**BASE, "training.disable_cuda_graphs": True, **changes}, 16))
    assert code in found, found
    assert message in found[code].message


def test_the_other_version_reads_the_other_kind_of_file() -> None:
    """TOML is refused for 0.3, a module for 0.2, each with what would be right."""
    old, new = toml(BASE, 16), module({**BASE, "training.disable_cuda_graphs": True}, 16)
    assert "--to torchtitan`" in complaints(replace(old, version="0.3.0"))["TT003"].message
    assert "--to torchtitan-0.2`" in complaints(replace(new, version="0.2.1"))["TT003"].message
    assert "TT003" not in complaints(replace(old, version="0.1.0"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_public_case(case: dict[str, Any]) -> None:
    """What people met is said, and nothing else; what ran is understood."""
    found = toml({"activation_checkpoint.selective_ac_option": "op", **case["set"]}, case["ranks"])
    said = broken(FORM, found)
    assert sorted({one.code for one in said if one.severity != NOTE}) == case["codes"]
    assert set(case.get("notes", ())) <= {one.code for one in said}
    if wanted := case.get("layout"):
        layout = FORM.setup(found).layout
        values = {key: getattr(layout, key) for key in wanted}
        values = {key: json.loads(json.dumps(value)) for key, value in values.items()}
        assert values == wanted
