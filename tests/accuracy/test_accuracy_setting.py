"""From a run's columns to a layout, with what frameworks do where a column is empty, or the reason why not."""

from __future__ import annotations

import pytest

from accuracy.judged_runs import run
from planner.accuracy.refusal import NotJudgedError
from planner.accuracy.run import Run
from planner.accuracy.setting import setting

SIZES = {"layers": 24, "hidden": 4096, "heads": 32, "seq": 2048, "vocab": 51200}
SPREAD = {"gpu": "a100-sxm-80gb", "gpus": 16, "gpus_per_node": 8, "tp": 2, "pp": 4, "mbs": 1, "gbs": 64}


def ran(**changes: object) -> Run:
    """Return a run of Megatron-LM on two nodes, with changes."""
    return run(**{"framework": "megatron", "precision": "bf16", **SIZES, **SPREAD, **changes})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"layers": None}, "no layers"),
        ({"gbs": None}, "no global batch"),
        ({"gbs": 65}, "the global batch is no multiple of micro-batch times replicas"),
        ({"dp": 3}, "tp x pp x cp x dp is not the number of devices"),
        ({"pp": 32, "gpus": 64}, "more stages than layers"),
        ({"heads": 3}, "heads do not divide hidden"),
        ({"schedule": "zb-h1"}, "unknown schedule zb-h1"),
        ({"recompute": "sometimes"}, "unknown recompute sometimes"),
        ({"attention_kernel": "flash9"}, "unknown attention_kernel flash9"),
        ({"norm_kernel": "slow"}, "unknown norm_kernel slow"),
        ({"precision": "fp8"}, "a100-sxm-80gb has no fp8"),
        ({"moe_experts": 8}, "experts are not modelled"),
        ({"model": "Llama LoRA"}, "adapters (LoRA) are not modelled"),
        ({"gpu": "tpu-v5"}, "device not in the catalogue: tpu-v5"),
        ({"gpu": "A100+V100"}, "unlike devices: how many there are of each is not in the columns"),
    ],
)
def test_a_run_that_cannot_be_judged_says_why(changes: dict[str, object], reason: str) -> None:
    """What decides its time is missing, contradicts itself, or is not modelled."""
    with pytest.raises(NotJudgedError) as caught:
        setting(ran(**changes))
    assert str(caught.value) == reason


@pytest.mark.parametrize("name", ["", "jax"])
def test_a_framework_without_a_profile_is_told_the_known_ones(name: str) -> None:
    """All of them, so that the next try is right."""
    with pytest.raises(NotJudgedError, match=r"framework.*known are megatron, .*torchtitan"):
        setting(ran(framework=name))


@pytest.mark.parametrize(
    ("changes", "chunks"),
    [({}, 1), ({"vpp": 6}, 6), ({"schedule": "1f1b"}, 1)]
    + [({"schedule": "interleaved", "layers": 4 * layers}, chunks) for layers, chunks in ((6, 2), (3, 3), (5, 5))],
)
def test_a_schedule_without_its_chunks_has_the_fewest(changes: dict[str, object], chunks: int) -> None:
    """Those into which the layers of a stage can be cut."""
    assert setting(ran(**changes)).layout.virtual_stages == chunks


@pytest.mark.parametrize(
    ("written", "layers"),
    [
        ("", (6, 6, 6, 1, 6)),
        ("4 8 8 4", (4, 8, 8, 1, 4)),
        ("5 6 9 6", (4, 6, 9, 2, 5)),  # the ends count embedding and head
        ("8 7 7 8", (6, 7, 7, 1, 4)),  # and transpositions, norm and cast: two before the layers, four behind
        ("9 7 7 8", (6, 7, 7, 1, 4)),  # and a cast in front of all
        ("8 7 7 7", (6, 6, 6, 1, 6)),  # counts that are nobody's
        ("2 9 9 10", (6, 6, 6, 1, 6)),  # a stage without layers
    ],
)
def test_layers_of_the_stages(written: str, layers: tuple[int, ...]) -> None:
    """As the run says, or as its framework cuts them: first, second, largest middle and its place, last."""
    found = setting(ran(stage_layers=written)).layout
    ends = (found.first_layers, found.second_layers, found.middle_layers, found.middle_place, found.last_layers)
    assert ends == layers


def test_empty_columns_take_what_is_usual() -> None:
    """Degrees are 1, replicas are what is left, ZeRO and the meaning of selective are the framework's."""
    found = setting(ran(pp=None, framework="torchtitan", recompute="selective", precision="bf16"))
    assert (found.layout.num_replicas, found.layout.num_microbatches, found.layout.num_stages) == (8, 8, 1)
    assert (found.kind.zero_stage, found.kind.policy, found.layout.job.precision) == (3, "op", "bf16")


@pytest.mark.parametrize(
    ("changes", "kernel"),
    [
        ({}, "cudnn"),
        ({"precision": "fp16"}, "fused-softmax"),
        ({"recompute": "selective", "recompute_modules": "core_attn"}, "fused-softmax"),
        ({"precision": "fp16", "attention_kernel": "flash2"}, "flash2"),
    ],
)
def test_kernels_are_those_of_their_time_unless_named(changes: dict[str, object], kernel: str) -> None:
    """Training in fp16, and recomputing the core of attention, are older than fused attention."""
    assert setting(ran(**changes)).layout.framework.attention_kernel == kernel


@pytest.mark.parametrize(
    ("changes", "size"),
    [({"precision": "bf16"}, 4), ({}, 2), ({"grad_bytes": 4}, 4), ({"framework": "torchtitan", "pp": 1}, 4)],
)
def test_gradients_of_megatron_in_fp8_are_narrow(changes: dict[str, object], size: int) -> None:
    """As in the performance recipes that such runs are published of, unless the run says otherwise."""
    found = setting(ran(**{"gpu": "h100-sxm-80gb", "precision": "fp8", **changes}))
    assert found.layout.framework.gradient_bytes == size
