"""Why stages of one pipeline need unlike memory, by the public cases A28 and A29 of memory_cases.yaml."""

from __future__ import annotations

from itertools import pairwise

import pytest

from accuracy.memory_cases import Held, held, runs

HIDDEN, VOCABULARY, POSITIONS, REPLICAS = 9216, 50304, 1024, 16
"""Of A28's model, and what its optimizer is sharded over."""
MIDDLE = "first stage over a middle one (10,824 / 8,041 MiB)"
FULL = "first stage over the last, all activations recomputed"


def stages(case: str, name: str) -> list[Held]:
    """Return what every stage of a run is predicted to hold."""
    (run,) = (one for one in runs() if one.name == f"{case}: {name}")
    return list(held(run))


def test_ends_hold_embedding_and_head_beside_their_layers() -> None:
    """DeepSpeed issue 1378: one layer a stage, and both ends a third heavier than a middle one.

    What the first stage has more of is h (V + positions) parameters, the last one h V and a norm of 2 h: 2 bytes of
    weight and 2 of gradient each, 12 of optimizer over 16 replicas; and the last one alone holds logits.
    """
    found = stages("A28", MIDDLE)
    middle = found[3].memory
    for stage in found[1:-1]:
        assert {part: stage.memory[part] for part in ("weights", "gradients", "optimizer")} == {
            part: middle[part] for part in ("weights", "gradients", "optimizer")
        }
    for end, parameters in ((0, HIDDEN * (VOCABULARY + POSITIONS)), (-1, HIDDEN * VOCABULARY + 2 * HIDDEN)):
        more = {part: size - middle[part] for part, size in found[end].memory.items()}
        assert more["weights"] == pytest.approx(2 * parameters)
        assert more["gradients"] == pytest.approx(2 * parameters)
        assert more["optimizer"] == pytest.approx(12 * parameters / REPLICAS)
    assert [stage.memory["logits"] > 0 for stage in found] == [False] * 7 + [True]


def test_earlier_stages_hold_more_micro_batches() -> None:
    """The same run: stage i of 8 holds 8 - i micro-batches, each of one layer's input: 1,024 x 9,216 x 2 bytes."""
    activations = [stage.memory["activations"] for stage in stages("A28", MIDDLE)]
    assert [before - after for before, after in pairwise(activations)] == [pytest.approx(1024 * HIDDEN * 2)] * 7


def test_recompute_takes_the_difference_away() -> None:
    """Megatron-LM issue 307: of two stages the first holds two micro-batches and the last one.

    With selective recompute one micro-batch on 20 layers lies between them: of each token and hidden value 34 bytes,
    24 of which tp 2 halves (Korthikanti et al. 2022, section 4.1), and 2 more that norms keep. With full recompute it
    is one input a layer, 2 bytes each: a 12th.
    """
    selective, full = stages("A29", "first stage"), stages("A29", FULL)
    token = 20 * 4 * 2048 * 5120
    between = [first.memory["activations"] - last.memory["activations"] for first, last in (selective, full)]
    assert between == [pytest.approx((10 + 24 / 2 + 2) * token, rel=0.01), pytest.approx(2 * token)]
    assert between[0] > 0.2 * selective[0].device_memory > 10 * between[1] / 2
