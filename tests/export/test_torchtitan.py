"""What is written for torchtitan says the plan, reads back as the plan, and breaks none of the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import builders
import titan_plans
import transcripts
from planner.checks import refusals
from planner.configurations.engine import broken
from planner.configurations.forms.torchtitan import TORCHTITAN as FORM
from planner.configurations.forms.torchtitan.catalog import flavor
from planner.domain.configuration import ERROR, Setting, Spot
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import CannotExpress
from planner.export import Exporter
from planner.export.frameworks.torchtitan import TORCHTITAN, TORCHTITAN_TOML
from planner.specs.catalog import framework
from planner.specs.model import model_from_record, read_model
from planner.specs.plan import PlanFile

BOTH = (TORCHTITAN, TORCHTITAN_TOML)


def written(exporter: Exporter, file: PlanFile) -> str | None:
    """Return the printed part, None where it is refused."""
    if refusals(file.plan, framework("torchtitan"), file.cluster):
        return None
    try:
        return exporter.parts(file)[0].text
    except CannotExpress:
        return None


@pytest.mark.parametrize("exporter", BOTH, ids=lambda one: one.name)
@example(seed=785)  # breadth-first on one replica, of which nothing is sharded
@given(seed=st.integers(0, 10**6))
def test_what_is_written_reads_back_as_the_plan(exporter: Exporter, seed: int) -> None:
    """Layout, world, model and precision come back, and no rule has a word to say against it."""
    file = titan_plans.drawn(seed)
    text = written(exporter, file)
    if text is None:
        return
    name = exporter.parts(file)[0].name
    assert FORM.recognises(text, name)
    found = FORM.read(text, name)
    found = replace(found, world=Setting(name="ranks", value=file.plan.num_devices, spot=Spot("launcher")))
    assert [one for one in broken(FORM, found) if one.severity == ERROR] == []
    assert found.notes == ()
    setup = FORM.setup(found)
    assert replace(setup.layout, ep=1, etp=None) == titan_plans.layout(file)
    assert setup.world == file.plan.num_devices
    assert setup.precision == "bf16"
    assert setup.model is not None
    assert setup.model["num_hidden_layers"] == file.model.num_layers


def test_programs_start_what_is_written() -> None:
    """Each names the file that stands beside it, and has the allocator that torchtitan starts with."""
    file = titan_plans.drawn(LEGAL)
    for exporter, option in ((TORCHTITAN, "plan_titan"), (TORCHTITAN_TOML, "plan_titan.toml")):
        assert exporter.program is not None
        program = exporter.program(file)
        assert program.command[:2] == ("-m", "torchtitan.train")
        assert option in program.command
        assert program.environment == (("PYTORCH_ALLOC_CONF", "expandable_segments:True"),)
        assert program.parts == exporter.parts(file)
        assert all(part == part.strip() and " " not in part for part in program.command)


def test_every_degree_is_written() -> None:
    """None is left at -1 for the number of ranks to decide."""
    file = titan_plans.drawn(LEGAL)
    for exporter in BOTH:
        text = exporter.parts(file)[0].text
        for name in ("replicate", "shard"):
            assert f"data_parallel_{name}_degree = " in text
        for name in ("tensor", "context", "pipeline"):
            assert f"{name}_parallel_degree = " in text
        assert "-1" not in text


def test_a_named_model_is_named_and_another_written_out() -> None:
    """By its flavor where the sizes are the same; 405B without the float8 that its recipe has."""
    for name, line in (("8B", "c = llama3_8b()"), ("405B", 'c.model_spec = model_registry("405B")')):
        text = TORCHTITAN.parts(plain(read_named(name)))[0].text
        assert line in text
        assert "def llama_like" not in text
    text = TORCHTITAN.parts(plain(titan_plans.model(5)))[0].text
    assert "def llama_like" in text
    assert "c.loss.loss_fn.global_vocab_size = 32000" in text


@pytest.mark.parametrize(
    ("exporter", "changes", "reason"),
    [
        (TORCHTITAN, {"num_microbatches": 1}, "1F1B needs as many micro-batches as stages, and the plan has 1 for 2"),
        (TORCHTITAN_TOML, {"num_replicas": 1}, "computes in fp32 where weights are not sharded"),
        (TORCHTITAN, {"recompute": "selective"}, "does not recompute attention's scores alone"),
        (TORCHTITAN, {"sequence": 1030, "sp": True}, "sequence 1,030 is no multiple of 4"),
        (TORCHTITAN, {"sequence": 262144}, "reads 131,072 tokens at most"),
        (TORCHTITAN, {"precision": "fp8"}, "fp8 is no precision"),
        (TORCHTITAN_TOML, {"sp": False}, "cuts the sequence wherever there are tensor ranks"),
        (TORCHTITAN, {"tp": 16}, "does not divide the 8 heads of keys and values"),
        (TORCHTITAN_TOML, {"model": "llama-2-7b.json"}, "--to torchtitan writes them out for 0.3"),
        (TORCHTITAN, {"model": "gpt2.json"}, "only those like llama and mistral can be written out"),
        (TORCHTITAN, {"model": "llama-3.2-3b.json"}, "cannot cut a model into stages whose head"),
    ],
)
def test_what_torchtitan_cannot_be_told_is_refused(exporter: Exporter, changes: dict[str, Any], reason: str) -> None:
    """With the numbers, and a remedy."""
    with pytest.raises(CannotExpress) as refused:
        exporter.parts(changed(**changes))
    assert any(reason in one for one in refused.value.reasons), refused.value.reasons


def refused(exporter: Exporter, file: PlanFile) -> str:
    """Return why an exporter refuses a plan; nothing if it does not."""
    try:
        exporter.parts(file)
    except CannotExpress as error:
        return "; ".join(error.reasons)
    return ""


@pytest.mark.parametrize(
    ("model", "writable"), [("llama-3.2-3b.json", False), ("gpt2.json", False), ("qwen3-8b.json", True)]
)
def test_the_newer_version_is_a_remedy_only_where_it_can_be_told_the_plan(model: str, writable: bool) -> None:
    """A tied model in stages and one of biases are refused by both, and neither refusal sends to the other."""
    file = changed(model=model)
    assert (refused(TORCHTITAN, file) == "") == writable
    told = refused(TORCHTITAN_TOML, file)
    assert told
    assert ("--to torchtitan" in told) == writable


def test_another_order_of_ranks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the mesh of torchtitan stages are the outermost axis."""
    import planner.placement

    file = plain(read_named("8B"))
    placed = replace(planner.placement.place(file.plan, file.cluster, file.model, file.job), order="tp-cp-pp-dp")
    monkeypatch.setattr(planner.placement, "place", lambda *_: placed)
    with pytest.raises(CannotExpress, match="the plan counts its ranks tp-cp-pp-dp, and torchtitan only tp-cp-dp-pp"):
        TORCHTITAN.parts(file)


def test_weights_that_tensor_ranks_cut_are_never_copied() -> None:
    """ZeRO 0 with tensor ranks is nothing that torchtitan runs; the plan is refused before it is written."""
    file = changed()
    file = replace(file, plan=replace(file.plan, zero_stage=0, stages=file.plan.stages[:1]))
    assert refusals(file.plan, framework("torchtitan"), file.cluster) == (
        "torchtitan cannot run tensor parallelism with ZeRO stage 0 (only 2, 3)",
    )


LEGAL = 4
"""A plan that both versions can be told."""


def read_named(name: str) -> Model:
    found = flavor("llama3", name, "0.3")
    assert found is not None
    return model_from_record(found.config, "model")


def plain(model: Model, **changes: Any) -> PlanFile:
    """Return two stages of two replicas with four tensor ranks each."""
    half = model.num_layers // 2
    strategy = Strategy(degrees=(("tp", changes.get("tp", 4)),), sequence_parallel=changes.get("sp", True))
    stages = tuple(
        Stage(
            group="chips",
            first_layer=first,
            last_layer=last,
            strategy=strategy,
            recompute=changes.get("recompute", "op"),
        )
        for first, last in ((0, half - 1), (half, model.num_layers - 1))
    )
    plan = Plan(
        stages=stages,
        schedule="1f1b",
        num_replicas=changes.get("num_replicas", 2),
        micro_batch=1,
        num_microbatches=changes.get("num_microbatches", 4),
        zero_stage=2,
    )
    group = builders.group(nodes=4, per_node=16)
    able = replace(group.device, peak_flops=(("bf16", builders.PEAK), ("fp8", 2 * builders.PEAK)))
    rest = {"sequence": changes.get("sequence", 1024), "precision": changes.get("precision", "bf16")}
    return replace(
        titan_plans.drawn(LEGAL),
        plan=plan,
        model=model,
        cluster=builders.cluster(replace(group, device=able)),
        job=builders.job(plan.global_batch, framework="torchtitan", **rest),
    )


def changed(model: str = "", **changes: Any) -> PlanFile:
    read = read_model(str(transcripts.ROOT / "model_specs" / model)) if model else read_named("8B")
    return plain(read, **changes)


def test_schedules_that_split_backward_passes_are_not_compiled() -> None:
    """Torch stops at a compiled model there; stages are named in the order of the layers, there and back."""
    seeds = [titan_plans.drawn(seed) for seed in range(200)]
    found = [one for one in seeds if one.plan.schedule == "zbv" and one.plan.num_stages == 2]
    texts = [(file, text) for file in found if (text := written(TORCHTITAN_TOML, file)) is not None]
    assert texts
    for file, text in texts:
        assert 'pipeline_parallel_schedule = "ZBVZeroBubble"' in text
        assert "[compile]\nenable = false" in text
        first, second = file.plan.stages
        layout = FORM.setup(FORM.read(text, "plan.toml")).layout
        assert layout.chunk_layers == (first.chunk_sizes, second.chunk_sizes)
