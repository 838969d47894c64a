"""Megatron-LM's arguments say the plan, its own rules accept them, and reading them gives the plan back."""

# ruff: noqa: S311 (plans are drawn, not secrets)

from __future__ import annotations

import random
import re
import shlex
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders
import transcripts
from planner.configurations.engine import broken
from planner.configurations.forms.megatron import MEGATRON as FORM
from planner.domain.configuration import ERROR, Setting, Spot
from planner.domain.model import Model
from planner.domain.plan import Plan, Stage, Strategy
from planner.errors import CannotExpress
from planner.export import startable, target
from planner.export.frameworks.megatron import MEGATRON
from planner.pipeline.written import parts
from planner.specs.cluster import read_cluster
from planner.specs.layout import Layout
from planner.specs.model import model_from_record
from planner.specs.plan import PlanFile

seeds = st.integers(min_value=0, max_value=100_000)
few = settings(max_examples=150, derandomize=True, deadline=None, database=None)
WORLD = 64


def plan_file(plan: Plan, model: Model | None = None, **changes: object) -> PlanFile:
    """Return a plan on eight nodes with eight devices each."""
    group = builders.group(nodes=8, per_node=8)
    rates = tuple((rate, builders.PEAK) for rate in ("bf16", "fp16", "fp32", "fp8", "fp4"))
    group = replace(group, device=replace(group.device, peak_flops=rates))
    wanted = model or builders.model(sum(stage.num_layers for stage in plan.stages), heads=8)
    return PlanFile(
        plan=plan,
        cluster=builders.cluster(group),
        model=wanted,
        job=replace(builders.job(plan.global_batch), **{"sequence": 512, **changes}),  # type: ignore[arg-type]
        certificate=None,
        figures=None,
        made_by="a test",
        format_version="1.0",
        edited=(),
        origin="plan.yaml",
    )


def plan(
    *sizes: tuple[int, ...],
    dp: int = 2,
    microbatches: int = 8,
    zero: int = 1,
    recomputed: object = 0,
    **strategy: object,
) -> Plan:
    """Return a plan whose stages have chunks of `sizes`; `recomputed` is a number, or ``all``."""
    flat = [stage[chunk] for chunk in range(len(sizes[0])) for stage in sizes]
    ends = list(accumulate(flat))
    chunks = [(end - size, end - 1) for end, size in zip(ends, flat, strict=True)]
    policy = str(strategy.pop("recompute", "none"))
    stages = []
    for rank, stage in enumerate(sizes):
        first, *later = chunks[rank :: len(sizes)]
        count = sum(stage) if recomputed == "all" else int(str(recomputed))
        stages.append(
            Stage(
                group="chips",
                first_layer=first[0],
                last_layer=first[1],
                later_chunks=tuple(later),
                strategy=Strategy(**strategy),  # type: ignore[arg-type]
                recompute=policy,
                num_recomputed=count,
            )
        )
    virtual = len(sizes[0])
    return Plan(
        stages=tuple(stages),
        schedule="interleaved" if virtual > 1 else "1f1b",
        num_replicas=dp,
        micro_batch=1,
        num_microbatches=microbatches,
        zero_stage=zero,
        virtual_stages=virtual,
    )


def arguments(file: PlanFile) -> str:
    return parts(MEGATRON, file)[0].text


def drawn(seed: int) -> PlanFile:
    """Return a random plan that Megatron-LM can run."""
    draw = random.Random(seed)
    pp, vpp = draw.choice((1, 1, 2, 4)), draw.choice((1, 1, 2, 3))
    vpp = 1 if pp == 1 else vpp
    even = draw.random() < 0.5
    size = draw.randint(1, 4)
    sizes = tuple(tuple(size if even else draw.randint(1, 5) for _ in range(vpp)) for _ in range(pp))
    tp, cp = draw.choice((1, 2, 4)), draw.choice((1, 1, 2))
    degrees = tuple((axis, degree) for axis, degree in (("tp", tp), ("cp", cp)) if degree > 1)
    recomputed: object = draw.choice((0, 0, "all"))
    if even or vpp == 1:
        recomputed = draw.choice((recomputed, vpp * draw.randint(1, min(min(stage) for stage in sizes))))
    made = plan(
        *sizes,
        dp=draw.choice((1, 2)),
        microbatches=pp * draw.randint(1, 4),
        zero=draw.choice((0, 1) if pp > 1 else (0, 1, 2, 3)),
        recomputed=recomputed,
        recompute="none" if recomputed else draw.choice(("none", "selective")),
        degrees=degrees,
        sequence_parallel=tp > 1 and draw.random() < 0.7,
        cp_comm_type=draw.choice(("p2p", "a2a")) if cp > 1 and tp * cp <= 4 else "p2p",
    )
    family = draw.choice(("llama", "gpt2", "qwen2", "qwen3", "mistral"))
    made = replace(made, micro_batch=draw.choice((1, 2, 4)))
    precision = draw.choice(("bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4"))
    return plan_file(made, model_of(family, sum(map(sum, sizes)), draw), precision=precision)


def model_of(family: str, layers: int, draw: random.Random, **changes: object) -> Model:
    record: dict[str, object] = {
        "family": family,
        "name": "small",
        "hidden_size": 512,
        "num_hidden_layers": layers,
        "num_attention_heads": 8,
        "num_key_value_heads": 8 if family == "gpt2" else draw.choice((8, 8, 4)),
        "head_dim": draw.choice((64, 128)),
        "intermediate_size": draw.choice((2048, 1536)),
        "vocab_size": draw.choice((32000, 50257, 1000)),
        "max_position_embeddings": 2048,
        "tie_word_embeddings": draw.random() < 0.5,
        **changes,
    }
    return model_from_record(record, "a test")


def means(made: Plan) -> dict[str, object]:
    """Return what a layout must say that means the plan."""
    strategy = made.stages[0].strategy
    layers = [stage.num_recomputed for stage in made.stages]
    whole = all(stage.num_recomputed == stage.num_layers for stage in made.stages)
    return {
        "tp": strategy.degree("tp"),
        "pp": made.num_stages,
        "vpp": made.virtual_stages,
        "cp": strategy.degree("cp"),
        "cp_comm_type": strategy.cp_comm_type if strategy.degree("cp") > 1 else None,
        "zero": made.zero_stage,
        "sp": strategy.sequence_parallel,
        "mbs": made.micro_batch,
        "gbs": made.global_batch,
        "seq": 512,
        "recompute": "full" if any(layers) else made.stages[0].recompute,
        "recompute_layers": None if whole or not any(layers) else max(layers),
        "schedule": made.schedule,
        "framework": "megatron",
        "dp": made.num_replicas,
        "chunk_layers": tuple(stage.chunk_sizes for stage in made.stages) if made.num_stages > 1 else (),
    }


def read_back(file: PlanFile) -> tuple[Layout, dict[str, object], str | None]:
    """Return what the written arguments mean, on as many ranks as the plan has; no rule may be broken."""
    configuration = FORM.read(arguments(file), "arguments.txt")
    ranks = Setting(name="world size", value=file.plan.num_devices, spot=Spot("arguments.txt"))
    assert MEGATRON.program is not None
    environment = {
        name: Setting(name=name, value=value, spot=Spot("environment.env"))
        for name, value in MEGATRON.program(file).environment
    }
    configuration = replace(configuration, world=ranks, environment=environment)
    found = [one for one in broken(FORM, configuration) if one.severity != "note"]
    assert [one for one in found if (file.job.precision, one.code) != ("fp32", "MG709")] == []
    meaning = FORM.setup(configuration)
    return meaning.layout, dict(meaning.model or {}), meaning.precision


@few
@given(seed=seeds)
def test_what_is_written_is_accepted_and_means_the_plan(seed: int) -> None:
    """Import of export is the plan, its model and its precision, and none of Megatron-LM's rules is broken."""
    file = drawn(seed)
    layout, model, precision = read_back(file)
    assert {key: getattr(layout, key) for key in means(file.plan)} == means(file.plan)
    assert precision == file.job.precision
    spec = dict(file.model.spec)
    for key in (
        "hidden_size",
        "num_hidden_layers",
        "num_key_value_heads",
        "head_dim",
        "intermediate_size",
        "vocab_size",
    ):
        assert model[key] == spec[key]
    assert model["tie_word_embeddings"] == file.model.tied
    assert (model["attention_bias"], model["mlp_bias"]) == (spec["attention_bias"], spec["mlp_bias"])
    wanted = "llama" if file.model.family == "mistral" else file.model.family
    assert model["model_type"] == wanted


@few
@given(seed=seeds)
def test_what_is_written_survives_the_shell(seed: int) -> None:
    """As ``$(planner export ... --only arguments)`` without quotes: no blanks, quotes or patterns in any word."""
    text = arguments(drawn(seed))
    words = text.split()
    assert shlex.split(text) == words
    assert not re.search(r"[*?\[\]'\"\\~{}$`]", text)


def lines(file: PlanFile) -> list[str]:
    return arguments(file).splitlines()


def cut(*sizes: tuple[int, ...]) -> list[str]:
    """Return the lines that say how layers are cut."""
    flags = ("--decoder-", "--pipeline-model-parallel-layout", "--num-layers-per-virtual")
    return [line for line in lines(plan_file(plan(*sizes))) if line.startswith(flags)]


def test_stages_are_said_by_the_simplest_flags() -> None:
    """Even stages need none, uneven ends a count, chunks their size, and all else a layout."""
    assert cut((3,), (3,)) == []
    assert cut((3,), (3,), (3,), (2,)) == ["--decoder-last-pipeline-num-layers 2"]
    assert cut((1,), (3,), (3,), (3,)) == ["--decoder-first-pipeline-num-layers 1"]
    assert cut((1,), (3,), (3,), (2,)) == [
        "--decoder-first-pipeline-num-layers 1",
        "--decoder-last-pipeline-num-layers 2",
    ]
    assert cut((5,), (3,)) == ["--decoder-last-pipeline-num-layers 3"]
    assert cut((3,), (2,), (1,), (2,)) == ["--pipeline-model-parallel-layout Ettt|tt|t|ttL"]
    assert cut((2, 2), (2, 2)) == ["--num-layers-per-virtual-pipeline-stage 2"]
    assert cut((2, 1), (2, 2)) == ["--pipeline-model-parallel-layout Ett|tt|t|ttL"]


def test_groups_of_micro_batches_are_said() -> None:
    """Groups of more micro-batches than there are stages are written and read; by default nothing is."""
    made = plan((2, 2), (2, 2), microbatches=12)
    assert "--microbatch-group-size-per-virtual-pipeline-stage" not in arguments(plan_file(made))
    grouped = plan_file(replace(made, microbatch_group=4))
    assert "--microbatch-group-size-per-virtual-pipeline-stage 4" in lines(grouped)
    assert read_back(grouped)[0].vpp_group == 4


def test_layers_that_are_recomputed_are_counted_a_chunk() -> None:
    """Four of a stage's six layers in two chunks are two of each; three are nothing that Megatron-LM can say."""
    even = plan((3, 3), (3, 3), recomputed=4)
    assert "--recompute-num-layers 2" in lines(plan_file(even))
    with pytest.raises(CannotExpress, match=r"no number comes to 3 recomputed layers of a stage with 2 chunks"):
        arguments(plan_file(plan((3, 3), (3, 3), recomputed=3)))


def test_full_recompute_of_some_layers_excludes_selective() -> None:
    """One granularity holds for all layers."""
    with pytest.raises(CannotExpress, match="selective recompute beside full recompute"):
        arguments(plan_file(plan((3,), (3,), recomputed=1, recompute="selective")))


def test_sharded_weights_are_megatron_fsdp() -> None:
    """ZeRO 3 has its strategy and checkpoint format, and no single queue of kernels although tensor ranks want it."""
    file = plan_file(plan((4,), zero=3, degrees=(("tp", 2),), dp=4))
    assert {"--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads_params"} < set(lines(file))
    assert "--ckpt-format fsdp_dtensor" in lines(file)
    assert MEGATRON.program is not None
    assert MEGATRON.program(file).environment == ()
    sharded = plan_file(plan((4,), zero=1, degrees=(("tp", 2),), dp=4))
    assert MEGATRON.program(sharded).environment == (("CUDA_DEVICE_MAX_CONNECTIONS", "1"),)


def test_the_program_is_what_a_launcher_starts() -> None:
    """The script, then the arguments word by word; it reads no files."""
    file = plan_file(plan((2,), (2,), degrees=(("tp", 2),)))
    started = startable("megatron")
    assert started.program is not None
    program = started.program(file)
    assert program.command == ("pretrain_gpt.py", *arguments(file).split())
    assert program.parts == ()
    written, variables = started.parts(file)
    assert (written.name, variables.name) == ("arguments.txt", "environment.env")
    assert variables.text.endswith("\nCUDA_DEVICE_MAX_CONNECTIONS=1\n")
    assert "tokenizer" in variables.text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"family": "gemma"}, "GeGLU"),
        ({"family": "gpt_neox"}, "side by side"),
        ({"family": "bert", "type_vocab_size": 2}, "pretrain_bert.py"),
        ({"hidden_act": "relu"}, "activation function relu"),
        ({"attention_bias": True, "mlp_bias": False}, "biases"),
        ({"rope_theta": 10000.5}, "whole number"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}, r"rope_scaling says \(yarn\)"),
        ({"vocab_size_padded": 32001}, "cannot be cut into 2 parts"),
    ],
)
def test_models_that_it_cannot_build_are_refused(changes: dict[str, object], reason: str) -> None:
    """Nothing is rounded; the reason is named."""
    model = model_of(str(changes.pop("family", "llama")), 4, random.Random(1), **{"vocab_size": 32000, **changes})
    with pytest.raises(CannotExpress, match=reason):
        arguments(plan_file(plan((2,), (2,), degrees=(("tp", 2),)), model))


def test_models_with_long_positions() -> None:
    """Llama 3.1 stretches rotary positions as --use-rope-scaling does; a window is said by what it looks back."""
    stretched = {
        "rope_theta": 500000.0,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
    }
    model = model_of("llama", 4, random.Random(1), **stretched)
    found = lines(plan_file(plan((2,), (2,)), model))
    assert {"--rotary-base 500000", "--use-rope-scaling", "--rope-scaling-factor 8"} < set(found)
    read = FORM.setup(FORM.read("\n".join(found), "arguments.txt")).model
    assert read is not None
    assert read["rope_scaling"] == stretched["rope_scaling"]
    windowed = model_of("mistral", 4, random.Random(1), sliding_window=1024)
    assert "--window-size 1023,0" in lines(plan_file(plan((2,), (2,)), windowed))


def test_a_padded_vocabulary_keeps_its_rows() -> None:
    """Megatron-LM pads to multiples of 128 tp by itself; other rows are asked for."""
    usual = model_of("llama", 4, random.Random(1), vocab_size=50257, vocab_size_padded=50432)
    file = plan_file(plan((2,), (2,), degrees=(("tp", 2),)), usual)
    assert not [line for line in lines(file) if line.startswith("--make-vocab")]
    other = model_of("llama", 4, random.Random(1), vocab_size=50257, vocab_size_padded=51200)
    file = plan_file(plan((2,), (2,), degrees=(("tp", 2),)), other)
    assert "--make-vocab-size-divisible-by 25600" in lines(file)
    assert read_back(file)[1]["vocab_size_padded"] == 51200


def test_errors_are_errors() -> None:
    """The rules that accept what is written would not accept anything."""
    text = arguments(plan_file(plan((2,), (2,)))).replace("--num-layers 4", "--num-layers 5")
    found = broken(FORM, FORM.read(text, "arguments.txt"))
    assert [one.code for one in found if one.severity == ERROR] == ["MG201"]


@pytest.mark.parametrize("launcher", ["torchrun", "slurm"])
@pytest.mark.parametrize("seed", range(12))
def test_launch_scripts_are_read_back_too(launcher: str, seed: int) -> None:
    """With the same settings, the number of ranks, and the variables, as somebody else would check them."""
    file = drawn(seed)
    script = parts(target(launcher), file, "megatron")[0].text
    found = FORM.read(script, "launch.sh")
    wanted = FORM.read(arguments(file), "arguments.txt")
    assert {key: one.value for key, one in found.settings.items()} == {
        key: one.value for key, one in wanted.settings.items()
    }
    assert found.world is not None
    assert found.world.value == file.plan.num_devices
    assert MEGATRON.program is not None
    assert [(name, one.value) for name, one in found.environment.items() if name.startswith("CUDA")] == list(
        MEGATRON.program(file).environment
    )


def test_pipelines_that_share_nodes_are_counted_first() -> None:
    """Two pipelines over a box with cards of two kinds each: only then do the ranks of a box follow one another."""
    lab = read_cluster(str(transcripts.ROOT / "cluster_specs" / "lab-3080-4090.yaml"))
    pair = Strategy(degrees=(("tp", 2),))
    stages = (
        Stage(group="rtx3080", first_layer=0, last_layer=1, strategy=pair),
        Stage(group="rtx4090", first_layer=2, last_layer=3, strategy=pair),
    )
    mixed = Plan(stages=stages, schedule="1f1b", num_replicas=2, micro_batch=1, num_microbatches=4, zero_stage=1)
    file = replace(plan_file(mixed, builders.model(4)), cluster=lab)
    assert {"--use-tp-pp-dp-mapping", "--expert-tensor-parallel-size 2"} < set(lines(file))
    context = Strategy(degrees=(("cp", 2),))
    ring = replace(mixed, stages=tuple(replace(stage, strategy=context) for stage in stages))
    found = lines(replace(file, plan=ring))
    # Context ranks count as tensor ranks of experts, of which there must be as many replicas as of everything else.
    assert {"--use-tp-pp-dp-mapping", "--tensor-model-parallel-size 1", "--expert-tensor-parallel-size 2"} < set(found)
    bridge = parts(target("megatron-bridge"), replace(file, plan=ring))[0].text.split()
    assert {"dist.use_tp_pp_dp_mapping=true", "model.expert_tensor_parallel_size=2"} < set(bridge)
    assert "--use-tp-pp-dp-mapping" not in lines(plan_file(plan((2,), (2,), degrees=(("tp", 2),))))
