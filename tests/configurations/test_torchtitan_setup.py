"""What torchtitan's configurations mean: layouts, what is assumed on the way, and what no plan can say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from planner.configurations.base import Setup
from planner.configurations.forms.torchtitan import TORCHTITAN as FORM
from planner.configurations.forms.torchtitan.stages import generated
from planner.domain.configuration import Setting, Spot
from planner.errors import SpecError


def meaning(text: str, ranks: int | None = None) -> Setup:
    """Return what TOML for Llama 3 8B means on so many ranks."""
    found = FORM.read(f'[model]\nname = "llama3"\nflavor = "8B"\n{text}', "plan.toml")
    world = None if ranks is None else Setting(name="ranks", value=ranks, spot=Spot("launcher"))
    return FORM.setup(replace(found, world=world))


def test_a_bare_file_takes_what_is_left() -> None:
    """-1 is all ranks; where nobody says how many there are, the layout leaves dp open, and says so."""
    known = meaning("", ranks=16)
    assert (known.layout.dp, known.layout.gbs, known.world) == (16, 128, 16)
    assert known.assumed == ("every 2. layer is recomputed; the plan recomputes that share of each stage",)
    unknown = meaning("")
    assert (unknown.layout.dp, unknown.layout.gbs, unknown.world) == (None, None, None)
    assert [text.partition(":")[0] for text in unknown.assumed[:2]] == [
        "data_parallel_shard_degree is -1",
        "global_batch_size is not given, and depends on the number of devices",
    ]


@pytest.mark.parametrize(
    ("degrees", "policy", "zero"),
    [
        ((1, 8, 1), "default", 3),
        ((1, 8, 1), "never", 2),
        ((1, 8, 2), "default", 2),
        ((1, 8, 2), "always", 3),
        ((8, 1, 1), "default", 0),
        ((8, 1, 1), "always", 0),
        ((1, 1, 4), "default", 0),
        ((1, 1, 4), "never", 2),
        ((2, 4, 1), "default", 3),
    ],
)
def test_what_is_sharded(degrees: tuple[int, int, int], policy: str, zero: int) -> None:
    """Weights where they are dropped after the forward pass; nothing where they are only copied."""
    replicate, shard, pipeline = degrees
    text = f"""[parallelism]
data_parallel_replicate_degree = {replicate}
data_parallel_shard_degree = {shard}
pipeline_parallel_degree = {pipeline}
fsdp_reshard_after_forward = "{policy}"
"""
    assert meaning(text).layout.zero == zero


def test_hybrid_sharding_says_how_much_more_memory_it_takes() -> None:
    """The plan has one degree of sharding; the sentence holds both, and the factor."""
    text = "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"
    found = meaning(text)
    assert found.layout.dp == 8
    assert found.assumed[0].startswith("HSDP: weights are shared out over 4 ranks and copied 2 times; the plan shares")
    assert "up to 2 times the predicted memory" in found.assumed[0]


@pytest.mark.parametrize(
    ("mode", "option", "recompute", "layers"),
    [
        ("none", "2", "none", None),
        ("full", "2", "full", None),
        ("selective", "op", "op", None),
        ("selective", "2", "full", 16),
        ("selective", "3", "full", 10),
        ("selective", "1", "full", None),
    ],
)
def test_what_is_recomputed(mode: str, option: str, recompute: str, layers: int | None) -> None:
    """By operator, in full, or every n-th layer of a stage."""
    text = f'[activation_checkpoint]\nmode = "{mode}"\nselective_ac_option = "{option}"\n'
    layout = meaning(text).layout
    assert (layout.recompute, layout.recompute_layers) == (recompute, layers)


def test_accumulation_with_a_pipeline_drains_it() -> None:
    """Micro-batches of all passes count, and the sentence tells what is left out."""
    text = """[training]
local_batch_size = 8
global_batch_size = 64
[parallelism]
data_parallel_shard_degree = 2
pipeline_parallel_degree = 4
pipeline_parallel_microbatch_size = 2
"""
    found = meaning(text)
    assert (found.layout.mbs, found.layout.gbs, found.layout.dp) == (2, 64, 2)
    assert "accumulated over 4 passes of 4 micro-batches" in " ".join(found.assumed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[activation_checkpoint]\nmode = "memory_budget"\n', "write selective, full or none"),
        (
            '[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule = "2F2B"\n',
            "it knows 1F1B, GPipe, Interleaved1F1B, LoopedBFS, InterleavedZeroBubble, ZBVZeroBubble, DualPipeV",
        ),
        ("[training]\nlocal_batch_size = 0\n", "should be a whole number from 1 to 1,000,000,000, not 0"),
        (
            '[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_schedule_csv = "x"\n',
            "which is not read back; check the plan file",
        ),
        (
            (
                "[parallelism]\npipeline_parallel_degree = 2\nmodule_fqns_per_model_part = "
                '[["tok_embeddings"], ["layers.0", "norm", "output"]]\n'
            ),
            "give each stage a layer",
        ),
    ],
)
def test_what_no_plan_can_say_is_refused(text: str, message: str) -> None:
    """With the key, its place, and what to write."""
    with pytest.raises(SpecError) as refused:
        meaning(text)
    (problem,) = refused.value.problems
    assert message in problem.message
    assert problem.place.startswith("plan.toml:")


def test_precision_that_takes_no_effect() -> None:
    """Before 0.3 tensor ranks alone compute in fp32, whatever mixed precision says."""
    degrees = "data_parallel_shard_degree = 1\ntensor_parallel_degree = 2\n"
    assert meaning(f"[parallelism]\n{degrees}").precision == "fp32"
    assert meaning("").precision == "bf16"


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        ((4, 32, 1, 1), [8, 9, 8, 7]),
        ((4, 12, 1, 1), [3, 4, 3, 2]),
        ((2, 3, 2, 2), [2, 1]),
        ((1, 5, 1, 1), [5]),
        ((4, 32, 0, 0), [8, 8, 8, 8]),
    ],
)
def test_torchtitan_cuts_as_it_does(arguments: tuple[int, int, int, int], sizes: list[int]) -> None:
    """Embedding and head count as layers; the second case is torchtitan pull 2113's, the third its docstring's."""
    parts: tuple[Any, ...] = generated(*arguments, "output").parts
    assert [sum(name.startswith("layers.") for name in part) for part in parts] == sizes
    assert (parts[0][0], parts[-1][-2:]) == ("tok_embeddings", ("norm", "output"))


@pytest.mark.parametrize("policy", ["default", "never", "always"])
def test_looped_schedules_drop_weights_themselves(policy: str) -> None:
    """LoopedBFS gathers a chunk when its passes come up and frees it after them, whatever FSDP keeps."""
    text = f"""[parallelism]
data_parallel_shard_degree = 8
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "LoopedBFS"
fsdp_reshard_after_forward = "{policy}"
"""
    assert meaning(text).layout.zero == 3
