"""What a configuration of Megatron-LM means: layout, model, precision, and what no plan can say yet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.configurations import Setup
from planner.configurations.forms.megatron import MEGATRON
from planner.configurations.layout_text import text_of, written_out
from planner.configurations.megatron.facts import Facts
from planner.configurations.megatron.rules.remedies import with_smaller_last
from planner.domain.configuration import Setting, Spot
from planner.errors import SpecError
from planner.importers.huggingface import from_config

SIZES = (
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 4096"
    " --micro-batch-size 2 --global-batch-size 64 --bf16 --vocab-size 50257"
)
ENDS = "--decoder-first-pipeline-num-layers 4 --decoder-last-pipeline-num-layers 6"
LLAMA = "--normalization RMSNorm --swiglu --position-embedding-type rope --disable-bias-linear"


def meaning(text: str, ranks: int | None = None) -> Setup:
    found = MEGATRON.read(f"{SIZES} {text}", "arguments.txt")
    world = Setting(name="world size", value=ranks, spot=Spot("arguments.txt")) if ranks else None
    return MEGATRON.setup(replace(found, world=world))


def chunks(text: str) -> tuple[tuple[int, ...], ...]:
    return meaning(text).layout.chunk_layers


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("Et*3|(tt|)*2,tL", ("Ettt", "tt", "tt", "tL")),
        ("E(t*4|)*2L", ("Etttt", "tttt", "L")),
        ("E|(tt|)*3L", ("E", "tt", "tt", "tt", "L")),
        ("Ett,(|tt)*2,mL", ("Ett", "tt", "ttmL")),
        ("EttL", ("EttL",)),
        ("Ett||tL", ("Ett", "", "tL")),
    ],
)
def test_layouts(text: str, stages: tuple[str, ...]) -> None:
    """Repeats of groups are written out first, then those of layers; commas are for the eye."""
    assert written_out(text) == stages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ExL", "has the character 'x'"),
        ("E((t)*2|)*2L", "no brackets inside of brackets"),
        ("E(tt|L", "a bracket that does not repeat"),
        ("Et*999999|(t*999999)*999999L", "repeats to more than 100,000 characters"),
    ],
)
def test_layouts_that_cannot_be_read(text: str, message: str) -> None:
    """Told, and bounded."""
    found = written_out(text)
    assert isinstance(found, str)
    assert message in found


def test_layouts_are_written_as_they_are_read() -> None:
    """Chunk 0 of every stage, then chunk 1."""
    assert text_of(((1, 2), (3, 4))) == "Et|ttt|tt|ttttL"
    layout = (
        f"--pipeline-model-parallel-size 2 --num-layers 10 --pipeline-model-parallel-layout {text_of(((1, 2), (3, 4)))}"
    )
    assert chunks(layout) == ((1, 2), (3, 4))


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ("--pipeline-model-parallel-size 2", ((12,), (12,))),
        ("--pipeline-model-parallel-size 4 --decoder-last-pipeline-num-layers 3", ((7,), (7,), (7,), (3,))),
        (
            f"--pipeline-model-parallel-size 4 {ENDS}",
            ((4,), (7,), (7,), (6,)),
        ),
        ("--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3", ((3, 3, 3, 3), (3, 3, 3, 3))),
        ("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 3", ((4, 4, 4), (4, 4, 4))),
        (
            "--num-layers 23 --pipeline-model-parallel-size 2 --account-for-loss-in-pipeline-split",
            ((12,), (11,)),
        ),
        (
            (
                "--num-layers 22 --pipeline-model-parallel-size 2 --account-for-loss-in-pipeline-split"
                " --account-for-embedding-in-pipeline-split --num-virtual-stages-per-pipeline-rank 2"
            ),
            ((5, 6), (6, 5)),
        ),
        ("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et*4|t*6|t*7|t*7L", ((4, 7), (6, 7))),
    ],
)
def test_layers_of_every_chunk(flags: str, wanted: tuple[tuple[int, ...], ...]) -> None:
    """Every way to cut layers comes to numbers."""
    assert chunks(flags) == wanted


@pytest.mark.parametrize(
    ("flags", "policy", "layers"),
    [
        ("", "none", None),
        ("--recompute-activations", "selective", None),
        ("--recompute-granularity selective", "selective", None),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "full", None),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 5", "full", 5),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 12", "full", None),
        (
            (
                "--num-layers-per-virtual-pipeline-stage 4 --recompute-granularity full --recompute-method block"
                " --recompute-num-layers 2"
            ),
            "full",
            6,
        ),
    ],
)
def test_recompute(flags: str, policy: str, layers: int | None) -> None:
    """Block recompute counts layers of each chunk: two of four in three chunks are six of a stage."""
    found = meaning(f"--pipeline-model-parallel-size 2 {flags}").layout
    assert (found.recompute, found.recompute_layers) == (policy, layers)


@pytest.mark.parametrize(
    ("flags", "zero"),
    [
        ("", 0),
        ("--use-distributed-optimizer", 1),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy no_shard", 0),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim", 1),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", 2),
        ("--use-megatron-fsdp", 3),
        ("--use-torch-fsdp2", 3),
        ("--use-torch-fsdp2 --torch-fsdp2-no-reshard-after-forward", 2),
    ],
)
def test_sharding(flags: str, zero: int) -> None:
    """As ZeRO stages."""
    assert meaning(flags).layout.zero == zero


def test_degrees_and_batch() -> None:
    """What the ranks leave is the number of replicas, and a batch that is not given is one micro-batch of each."""
    found = meaning(
        "--tensor-model-parallel-size 2 --sequence-parallel --context-parallel-size 2 --cp-comm-type a2a", 16
    )
    layout = found.layout
    assert (layout.tp, layout.sp, layout.cp, layout.cp_comm_type, layout.dp) == (2, True, 2, "a2a", 4)
    assert (layout.mbs, layout.gbs, layout.seq, found.world) == (2, 64, 2048, 16)
    configuration = MEGATRON.read("--num-layers 2 --micro-batch-size 3", "-")
    world = Setting(name="world size", value=8, spot=Spot("-"))
    assert MEGATRON.setup(replace(configuration, world=world)).layout.gbs == 24
    assert not meaning("--sequence-parallel").layout.sp


@pytest.mark.parametrize(
    ("flags", "precision"),
    [
        ("", "bf16"),
        ("--fp8-format hybrid", "fp8"),
        ("--fp8-format e4m3 --fp8-recipe mxfp8", "mxfp8"),
        ("--fp4-format e2m1", "nvfp4"),
    ],
)
def test_precision(flags: str, precision: str) -> None:
    """By the narrowest products."""
    assert meaning(flags).precision == precision


@pytest.mark.parametrize(
    ("flags", "family"),
    [
        ("", "gpt2"),
        ("--position-embedding-type rope --untie-embeddings-and-output-weights", "gpt_neox"),
        (LLAMA, "llama"),
        (f"{LLAMA} --add-qkv-bias", "qwen2"),
        (f"{LLAMA} --qk-layernorm", "qwen3"),
    ],
)
def test_families(flags: str, family: str) -> None:
    """By norms, activation, positions and biases; the planner builds the model."""
    described = meaning(flags).model
    assert described is not None
    assert described["model_type"] == family
    assert from_config(described, "arguments.txt").family == family


def test_a_published_model() -> None:
    """Llama 3 8B in Megatron-LM's flags has 8,030,261,248 parameters, as published; its vocabulary needs no padding."""
    flags = (
        f"{LLAMA} --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32"
        " --group-query-attention --num-query-groups 8 --untie-embeddings-and-output-weights --vocab-size 128256"
        " --max-position-embeddings 8192 --rotary-base 500000"
    )
    described = meaning(flags).model
    assert described is not None
    assert from_config(described, "arguments.txt").parameters == 8_030_261_248


def test_sizes_that_are_not_given() -> None:
    """Feed-forward width 4 h, of SwiGLU two thirds in multiples of 64; rows in multiples of 128 tp."""
    described = meaning("--tensor-model-parallel-size 4").model
    assert described is not None
    assert (described["intermediate_size"], described["vocab_size_padded"], described["head_dim"]) == (4096, 50688, 64)
    described = meaning(LLAMA).model
    assert described is not None
    assert described["intermediate_size"] == 2688
    assert meaning("--make-vocab-size-divisible-by 1").model == {
        **(meaning("").model or {}),
        "vocab_size_padded": 50257,
    }


def test_a_vocabulary_of_the_tokenizer() -> None:
    """Is not known, and said so; without sizes there is no model at all."""
    found = MEGATRON.setup(MEGATRON.read(SIZES.replace("--vocab-size 50257", ""), "-"))
    assert found.model is not None
    assert "vocab_size" not in found.model
    assert any("the vocabulary is the tokenizer's" in sentence for sentence in found.assumed)
    assert MEGATRON.setup(MEGATRON.read("--micro-batch-size 1 --bf16", "-")).model is None


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ("--num-experts 8", "a mixture of experts"),
        ("--num-experts 8 --expert-model-parallel-size 2", "expert parallelism"),
        ("--multi-latent-attention", "multi-head latent attention"),
        ("--mtp-num-layers 1", "multi-token prediction"),
        ("--hybrid-layer-pattern M-M-", "state-space"),
        ("--squared-relu", "squared ReLU"),
        ("--swiglu", "a model of LayerNorm, SwiGLU and learned_absolute positions is of no known family"),
        ("--optimizer-cpu-offload", "an optimizer on the host"),
        ("--context-parallel-size 2 --cp-comm-type allgather", "--cp-comm-type allgather"),
        ("--recompute-granularity selective --recompute-modules mlp", "recompute of mlp"),
        ("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout E|t*24L", "stages without layers"),
    ],
)
def test_what_cannot_be_planned_yet(flags: str, what: str) -> None:
    """Named with its place; the rules hold all the same."""
    with pytest.raises(SpecError, match=r"cannot be planned yet") as caught:
        meaning(flags)
    assert what in str(caught.value)
    assert str(caught.value).startswith("arguments.txt:1:")


def test_unlike_numbers_of_recomputed_layers() -> None:
    """Four of each chunk are four of two and of twenty: no single number says it."""
    flags = (
        "--pipeline-model-parallel-size 3 --pipeline-model-parallel-layout Et*2|t*3|t*19L --recompute-granularity full"
        " --recompute-method block --recompute-num-layers 4"
    )
    assert meaning(flags).layout.recompute_layers == 4
    flags = flags.replace("size 3", "size 2").replace("Et*2|t*3|t*19L", "Et*2|t*6|t*8|t*8L")
    with pytest.raises(SpecError, match="stages recompute unlike numbers of layers"):
        meaning(flags)


def test_an_open_degree_is_no_plan() -> None:
    """A plan needs the degrees; which ones are open is said."""
    found = MEGATRON.read(f"torchrun pretrain_gpt.py {SIZES} --tensor-model-parallel-size $TP", "run.sh")
    with pytest.raises(SpecError, match="--tensor-model-parallel-size is not known; a plan needs it"):
        MEGATRON.setup(found)


def test_remedies_come_out() -> None:
    """46 layers on four stages are 12, 12, 12 and 10; all remedies hold every layer once."""
    assert with_smaller_last(46, 4, 1) == (12, 12, 12, 10)
    for layers in range(4, 130):
        for stages in range(2, min(layers, 20)):
            sizes = with_smaller_last(layers, stages, 1)
            assert sizes is not None
            assert (sum(sizes), len(sizes), min(sizes) > 0) == (layers, stages, True)


def test_facts_of_nothing() -> None:
    """Are unknown, not one."""
    facts = Facts(MEGATRON.read("--bf16", "-"))
    assert (facts.world, facts.dp, facts.layers, facts.microbatches, facts.chunks) == (0, 0, 0, 0, None)
    assert (facts.tp, facts.pp, facts.vpp) == (1, 1, 1)


def test_megatron_has_examples(tmp_path: Path) -> None:
    """A file is read as it is written: the name of the file is in every place."""
    path = tmp_path / "run.sh"
    path.write_text(f"torchrun --nproc-per-node 8 pretrain_gpt.py {SIZES}\n", encoding="utf-8")
    found = MEGATRON.read(path.read_text(encoding="utf-8"), "run.sh")
    assert {setting.spot.file for setting in found.settings.values()} == {"run.sh"}
