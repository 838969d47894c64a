"""DeepSpeed's JSON: read with its places, held to DeepSpeed's rules, understood."""

from __future__ import annotations

import json
from typing import Any

import pytest

from configurations import cases
from planner.configurations import FORMS
from planner.configurations.engine import recognise
from planner.configurations.forms.deepspeed import DEEPSPEED as FORM
from planner.configurations.forms.deepspeed.keys import TABLES
from planner.domain.configuration import Finding
from planner.errors import SpecError

GOOD: dict[str, Any] = {
    "train_batch_size": 256,
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 8,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2},
}
"""For eight GPUs."""


def made(**changes: Any) -> str:
    """Return a good configuration with other values; None removes a key, and ``__`` separates levels."""
    found: dict[str, Any] = json.loads(json.dumps(GOOD))
    for key, value in changes.items():
        *blocks, name = key.split("__")
        at = found
        for block in blocks:
            at = at.setdefault(block, {})
        if value is None:
            at.pop(name, None)
        else:
            at[name] = value
    return json.dumps(found, indent=2)


def found(text: str, world: int | None = 8, version: str = "") -> tuple[Finding, ...]:
    return cases.findings(FORM, text, "ds_config.json", world=world, version=version)


def test_a_good_configuration_breaks_no_rule() -> None:
    """Neither with the world nor without."""
    assert found(made()) == ()
    assert found(made(), world=None) == ()


@pytest.mark.parametrize("name", ["ds_config.json", "zero3.json", "<stdin>", "config"])
def test_it_is_recognised_by_its_keys(name: str) -> None:
    """Whatever its name; comments do not hide it."""
    assert recognise(FORMS, made(), name) is FORM
    assert recognise(FORMS, f"// ours\n{made()}", name) is FORM


@pytest.mark.parametrize(
    "text",
    ['{"model_type": "llama", "hidden_size": 8}', "zero_optimization: 1", "", "[1]", '{"format_version": "1.0"}', "{"],
)
def test_other_files_are_not_taken_for_it(text: str) -> None:
    """Models, plans and text that is no JSON."""
    assert recognise(FORMS, text, "x.json") is not FORM


def test_places_are_lines_of_the_text() -> None:
    """Of blocks and of what is in them; columns are not known."""
    configuration = FORM.read(made(), "ds_config.json")
    assert str(configuration.spot("zero_optimization.stage")) == "ds_config.json:9"
    assert str(configuration.spot("bf16")) == "ds_config.json:5"


def test_whole_numbers_may_be_written_with_an_exponent() -> None:
    """As DeepSpeed's documentation writes bucket sizes; as text they are refused."""
    text = made(zero_optimization__reduce_bucket_size=5e8)
    assert found(text) == ()
    assert FORM.read(text, "x.json").get("zero_optimization.reduce_bucket_size") == 500_000_000
    assert cases.errors(found(made(zero_optimization__reduce_bucket_size="5e8"))) == ["DS010"]


def test_keys_with_an_underscore_are_comments() -> None:
    """JSON has no others."""
    assert found(made(_comment="ours", _x=1)) == ()


def test_comments_and_loose_commas_are_read_and_told() -> None:
    """DeepSpeed reads them, Transformers do not; lines stay where they are."""
    text = '{\n  // the batch\n  "train_batch_size": 8, # of all\n  "bf16": {"enabled": true},\n  "note": "a://x",\n}'
    told = found(text)
    assert cases.of(told, "DS005").spot.line == 2
    assert cases.of(told, "DS002").spot.line == 5
    assert FORM.read(text, "x.json").get("note") == "a://x"


@pytest.mark.parametrize("text", ["[1]", '{"train_batch_size": }', "", "{"])
def test_what_is_no_mapping_cannot_be_read(text: str) -> None:
    """One message."""
    with pytest.raises(SpecError):
        FORM.read(text, "ds_config.json")


def test_starcoder_saw_a_world_of_one() -> None:
    """bigcode-project/starcoder issue 41: 256 != 4 * 8 * 1 on eight GPUs that did not see each other."""
    told = cases.of(found(made(), world=1), "DS301")
    assert told.key == "train_batch_size"
    assert told.message.startswith(
        "train_batch_size 256 is not 4 (train_micro_batch_size_per_gpu) x 8 (gradient_accumulation_steps) x 1"
        " (replicas) = 32; these three are right for 8 processes: start so many; a world of 1 is what is seen"
        " without a launcher"
    )


def test_seven_gpus_cannot_make_a_batch_of_256() -> None:
    """OpenRLHF issue 346: 256 != 2 * 18 * 7; 252 and 266 can be, or 256 on 4 or 8 GPUs."""
    text = made(train_micro_batch_size_per_gpu=2, gradient_accumulation_steps=18)
    message = cases.of(found(text, world=7), "DS301").message
    assert message.endswith(
        "= 252; write train_batch_size 252 or train_batch_size 266 with gradient_accumulation_steps 19; or keep 256 and"
        " start 4 processes with gradient_accumulation_steps 32 or 8 processes with gradient_accumulation_steps 16"
    )


def test_no_world_makes_a_product_that_is_no_divisor() -> None:
    """Told without a world, with the batches next to it."""
    told = cases.of(found(made(gradient_accumulation_steps=18), world=None), "DS301")
    assert told.message.endswith(
        "is no multiple of 4 (train_micro_batch_size_per_gpu) x 18 (gradient_accumulation_steps); write 216 or 288"
    )


CASES: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "DS001": [
        ("zero_optimisation", {"zero_optimisation": {"stage": 3}}, "did you mean zero_optimization?"),
        ("train_batchsize", {"train_batchsize": 8}, "did you mean train_batch_size"),
        (
            "activation_checkpointing.partition_activation",
            {"activation_checkpointing__partition_activation": True},
            "did you mean partition_activations?",
        ),
    ],
    "DS002": [("ours", {"ours": 1}, "ignores it without a word")],
    "DS003": [
        ("zero_optimization.offload_optimiser", {"zero_optimization__offload_optimiser": {}}, "offload_optimizer"),
        ("fp16.enable", {"fp16__enable": True}, "did you mean enabled?"),
        ("zero_optimization.offload_param.path", {"zero_optimization__offload_param": {"path": "/x"}}, "nvme_path"),
    ],
    "DS006": [("train_batch_size", {"train_batch_size": "auto"}, "only Transformers and Accelerate fill it in")],
    "DS007": [
        ("elasticity", {"elasticity": {"enabled": True}}, "0.19.7 and later refuse"),
        ("zero_optimization.mics_shard_size", {"zero_optimization__mics_shard_size": 8}, "remove the key"),
    ],
    "DS008": [
        (
            "zero_optimization.cpu_offload",
            {"zero_optimization__cpu_offload": True},
            'offload_optimizer: {"device": "cpu"}',
        ),
        ("zero_optimization", {"zero_optimization": True}, '{"stage": 1}'),
        ("bfloat16", {"bfloat16": {"enabled": True}}, "only bf16 is read"),
    ],
    "DS009": [
        (
            "zero_optimization.cpu_offload",
            {"zero_optimization__cpu_offload": True, "zero_optimization__offload_optimizer": {"device": "cpu"}},
            "both given",
        )
    ],
    "DS010": [
        ("zero_optimization.stage", {"zero_optimization__stage": 4}, "should be 0 or 1 or 2 or 3, not 4"),
        ("bf16.enabled", {"bf16__enabled": "maybe"}, "should be true or false"),
        ("zero_optimization", {"zero_optimization": 2}, "should be a block"),
        ("checkpoint.tag_validation", {"checkpoint__tag_validation": "FOO"}, "WARN or IGNORE or FAIL"),
    ],
    "DS011": [("zero_optimization.reduce_bucket_size", {"zero_optimization__reduce_bucket_size": 0}, "at least 1")],
    "DS101": [
        (
            "zero_optimization.stage",
            {"pipeline__stages": 2, "gradient_accumulation_steps": 16},
            "--no-pipeline-parallel",
        )
    ],
    "DS102": [("pipeline", {"pipeline__partition": "best"}, "GPTModelPipe")],
    "DS104": [
        (
            "tensor_parallel.autotp_size",
            {"tensor_parallel__autotp_size": 2, "pipeline__stages": 2, "zero_optimization__stage": 1},
            "does not go with a pipeline (2 stages)",
        )
    ],
    "DS105": [
        (
            "tensor_parallel.tensor_parallel.tp_size",
            {"tensor_parallel__tensor_parallel__tp_size": 2},
            "write tensor_parallel.autotp_size 2",
        ),
        ("tensor_parallel.tp.tp_size", {"tensor_parallel__tp__tp_size": 4}, "every rank trains a whole model"),
    ],
    "DS106": [("tensor_parallel.autotp_size", {"tensor_parallel__autotp_size": 3}, "start 6 or 9")],
    "DS107": [
        ("data_parallel_size", {"sequence_parallel_size": 4, "data_parallel_size": 4}, "write data_parallel_size 2")
    ],
    "DS108": [
        ("sequence_parallel_size", {"sequence_parallel_size": 2, "pipeline__stages": 2}, "leave one of the two out")
    ],
    "DS109": [
        ("sequence_parallel_size", {"sequence_parallel_size": 2, "tensor_parallel__autotp_size": 2}, "take no heed")
    ],
    "DS110": [
        (
            "sequence_parallel_size",
            {"sequence_parallel_size": 2, "train_batch_size": 128},
            "write data_parallel_size 4 beside it",
        )
    ],
    "DS111": [
        (
            "tensor_parallel.tp.tp_size",
            {"tensor_parallel__autotp_size": 2, "tensor_parallel__tp__tp_size": 4},
            "remove tensor_parallel.tp.tp_size",
        )
    ],
    "DS302": [
        (
            "train_batch_size",
            {"train_batch_size": 250, "gradient_accumulation_steps": None},
            "write train_batch_size 224 or 256",
        ),
        (
            "train_batch_size",
            {"train_batch_size": 250, "train_micro_batch_size_per_gpu": None},
            "no train_micro_batch_size_per_gpu makes it; write train_batch_size 192 or 256",
        ),
    ],
    "DS303": [
        (
            "gradient_accumulation_steps",
            {"train_batch_size": None, "train_micro_batch_size_per_gpu": None},
            "write train_micro_batch_size_per_gpu",
        )
    ],
    "DS304": [("train_batch_size", {"train_batch_size": 0}, "at least 1, not 0")],
    "DS305": [
        (
            "gradient_accumulation_steps",
            {"pipeline__stages": 4, "zero_optimization__stage": 1, "train_batch_size": 64},
            "8 micro-batches over 4 stages leave 27% of the step idle; 16 leave 16%, 32 9%",
        )
    ],
    "DS306": [
        (
            "managed_gradient_accumulation",
            {
                "managed_gradient_accumulation": False,
                "zero_optimization__stage": 1,
                "zero_optimization__overlap_comm": True,
            },
            "write overlap_comm false",
        )
    ],
    "DS307": [
        (
            "train_batch_size",
            {"tensor_parallel__autotp_size": 2, "train_batch_size": 128},
            "wants train_batch_size 256 for a batch of 128; leave train_batch_size out",
        )
    ],
    "DS601": [
        (
            "zero_optimization.offload_optimizer.device",
            {"zero_optimization__stage": 0, "zero_optimization__offload_optimizer": {"device": "cpu"}},
            "does nothing in ZeRO 0",
        ),
        (
            "zero_optimization.offload_optimizer.device",
            {"zero_optimization__offload_optimizer": {"device": "nvme", "nvme_path": "/x"}},
            "works in ZeRO 3 only, not 2",
        ),
    ],
    "DS602": [
        (
            "zero_optimization.offload_param.device",
            {"zero_optimization__offload_param": {"device": "cpu"}},
            "does nothing in ZeRO 2",
        )
    ],
    "DS603": [
        (
            "zero_optimization.offload_param.device",
            {"zero_optimization__stage": 3, "zero_optimization__offload_param": {"device": "nvme"}},
            "needs zero_optimization.offload_param.nvme_path",
        )
    ],
    "DS604": [
        (
            "zero_optimization.offload_optimizer.ratio",
            {"zero_optimization__offload_optimizer": {"device": "cpu", "ratio": 0.5}},
            "write ratio 1.0, or stage 3",
        ),
        (
            "zero_optimization.offload_optimizer.ratio",
            {"zero_optimization__offload_optimizer": {"device": "cpu", "ratio": 2}},
            "from 0 to 1",
        ),
    ],
    "DS605": [
        (
            "zero_optimization.offload_optimizer.super_offload",
            {"zero_optimization__offload_optimizer": {"device": "cpu", "super_offload": True}},
            "write stage 3 and device cpu",
        )
    ],
    "DS606": [
        (
            "bf16.bf16_master_weights_and_grads",
            {"bf16__bf16_master_weights_and_grads": True, "zero_optimization__stage": 0},
            "works in ZeRO 1, 2 and 3 only",
        ),
        ("bf16.bf16_optimizer_states", {"bf16__bf16_optimizer_states": True}, "write both, or neither"),
        (
            "fp16.fp16_master_weights_and_grads",
            {"bf16__enabled": False, "fp16__enabled": True, "fp16__fp16_master_weights_and_grads": True},
            "needs offload_optimizer to the cpu",
        ),
    ],
    "DS610": [
        (
            "zero_optimization.zero_hpz_partition_size",
            {"zero_optimization__stage": 3, "zero_optimization__zero_hpz_partition_size": 3},
            "does not divide 8 processes; write 2 or 4",
        )
    ],
    "DS611": [
        (
            "zero_optimization.zero_quantized_weights",
            {"zero_optimization__zero_quantized_weights": True},
            "does nothing in ZeRO 2",
        )
    ],
    "DS612": [
        (
            "zero_optimization.stage3_max_live_parameters",
            {"zero_optimization__stage3_max_live_parameters": 1e9},
            "of no effect in ZeRO 2",
        )
    ],
    "DS613": [
        ("gradient_allreduce_op", {"gradient_allreduce_op": "SUM", "zero_optimization__stage": 3}, "write mean"),
        ("gradient_allreduce_op", {"gradient_allreduce_op": "max"}, "should be mean or sum"),
    ],
    "DS614": [
        (
            "zero_optimization.compute_grad_norm",
            {"zero_optimization__compute_grad_norm": False, "gradient_clipping": 1.0},
            "leaves nothing to clip by",
        ),
        (
            "zero_optimization.compute_grad_norm",
            {"zero_optimization__compute_grad_norm": False, "zero_optimization__stage": 3},
            "works in ZeRO 1 and 2 only",
        ),
    ],
    "DS615": [("prescale_gradients", {"prescale_gradients": True}, "in ZeRO 2 with reduce_scatter")],
    "DS616": [("zero_optimization.legacy_stage1", {"zero_optimization__legacy_stage1": True}, "0.5.9")],
    "DS617": [
        (
            "zero_optimization.elastic_checkpoint",
            {"zero_optimization__stage": 3, "zero_optimization__elastic_checkpoint": True},
            "universal checkpoint",
        )
    ],
    "DS618": [
        (
            "zero_optimization.overlap_comm",
            {"zero_optimization__stage": 1, "zero_optimization__overlap_comm": True, "pipeline__stages": 2},
            "switched off in a pipeline",
        )
    ],
    "DS619": [("zero_optimization.stage", {"zero_optimization__stage": 3}, "save_16bit_model writes no weights")],
    "DS620": [
        (
            "activation_checkpointing.contiguous_memory_optimization",
            {
                "activation_checkpointing__contiguous_memory_optimization": True,
                "activation_checkpointing__partition_activations": True,
            },
            "number_checkpoints",
        )
    ],
    "DS621": [
        ("activation_checkpointing", {"activation_checkpointing__profile": True}, "recomputes nothing by itself")
    ],
    "DS622": [
        (
            "zero_optimization.zero_hpz_partition_size",
            {"zero_optimization__zero_hpz_partition_size": 8},
            "does nothing in ZeRO 2",
        )
    ],
    "DS701": [("fp16.enabled", {"fp16__enabled": True}, "both enabled")],
    "DS702": [("bf16.enabled", {"bf16__enabled": False}, "trains in fp32")],
    "DS703": [
        ("fp16.loss_scale", {"fp16__loss_scale": -1}, "not -1"),
        (
            "fp16.loss_scale_window",
            {"bf16__enabled": False, "fp16__enabled": True, "fp16__loss_scale_window": 0},
            "where the loss scale is dynamic",
        ),
    ],
    "DS704": [
        (
            "data_types.grad_accum_dtype",
            {"data_types__grad_accum_dtype": "fp32", "zero_optimization__stage": 0},
            "write zero_optimization.stage 1",
        )
    ],
    "DS705": [("data_types.param_dtype", {"data_types__param_dtype": "fp16"}, "is not the precision, bf16")],
    "DS706": [
        (
            "optimizer.params.max_grad_norm",
            {"optimizer": {"type": "AdamW", "params": {"max_grad_norm": 1.0}}},
            "write gradient_clipping 1.0",
        )
    ],
    "DS707": [("optimizer.type", {"optimizer": {"type": "Lamb"}}, "zero_allow_untested_optimizer")],
    "DS708": [("communication_data_type", {"communication_data_type": "fp8"}, "fp32, fp16 or bf16")],
}
"""Code -> (key, what is changed in the good configuration, what is said)."""


@pytest.mark.parametrize(
    ("code", "key", "changes", "said"),
    [(code, *case) for code, listed in CASES.items() for case in listed],
    ids=lambda value: value if isinstance(value, str) and len(value) < 6 else "",
)
def test_a_broken_rule_tells_key_and_remedy(code: str, key: str, changes: dict[str, Any], said: str) -> None:
    """With the place of the key."""
    told = [one for one in found(made(**changes)) if one.code == code]
    assert key in {one.key for one in told}
    assert any(said in one.message for one in told), [one.message for one in told]
    assert all(one.spot.line for one in told)


def test_every_rule_has_a_case() -> None:
    """Or a test of its own; codes are used once, and every rule tells its story and source."""
    codes = [rule.code for rule in FORM.rules]
    assert len(codes) == len(set(codes))
    assert set(codes) - set(CASES) == {"DS004", "DS005", "DS103", "DS301"}
    assert all(rule.why and rule.source and rule.summary for rule in FORM.rules)


@pytest.mark.parametrize(("version", "told"), [("0.16.4", True), ("0.17.0", True), ("0.19.4", False), ("", False)])
def test_autotp_with_zero_3_came_with_0_19_4(version: str, told: bool) -> None:
    """deepspeedai/DeepSpeed issue 7389; pull request 8168 allowed it."""
    text = made(zero_optimization__stage=3, tensor_parallel__autotp_size=2)
    assert ("DS103" in cases.errors(found(text, version=version))) == told


@pytest.mark.parametrize("version", ["0.19.6", "0.14.0"])
def test_removed_features_are_refused_from_0_19_7_on(version: str) -> None:
    """Before they are known keys."""
    assert found(made(elasticity={"enabled": True}), version=version) == ()


def test_duplicate_keys_are_told_with_their_place() -> None:
    """DeepSpeed refuses them."""
    text = '{"train_batch_size": 8,\n "bf16": {"enabled": true},\n "train_batch_size": 16}'
    told = cases.of(found(text), "DS004")
    assert (told.spot.line, told.key) == (3, "train_batch_size")


@pytest.mark.parametrize("value", cases.NONSENSE, ids=str)
def test_no_rule_fails_on_nonsense(value: Any) -> None:
    """Whatever is written where."""
    for text in cases.with_nonsense(GOOD, TABLES, value):
        found(json.dumps(text))
        found(json.dumps(text), world=None)


def test_huge_numbers_are_no_work() -> None:
    """The remedies are looked for nearby only."""
    prime = 10**15 + 37
    text = made(train_batch_size=2 * prime, train_micro_batch_size_per_gpu=2, gradient_accumulation_steps=3)
    assert cases.of(found(text, world=10**12), "DS301").message.endswith("gradient_accumulation_steps 1001")
    text = made(zero_optimization__stage=3, zero_optimization__zero_hpz_partition_size=3)
    assert "write 2 or 4" in cases.of(found(text, world=10**12), "DS610").message


def setup(text: str, world: int | None = None) -> Any:
    return FORM.setup(cases.read(FORM, text, "ds_config.json", world=world))


def test_the_batch_tells_the_world() -> None:
    """Where all three parts of it are given; with the world two are enough."""
    meant = setup(made())
    assert (meant.world, meant.layout.dp, meant.layout.mbs, meant.layout.gbs) == (8, 8, 4, 256)
    assert (meant.layout.zero, meant.precision) == (2, "bf16")
    meant = setup(made(train_batch_size=None), world=16)
    assert (meant.world, meant.layout.dp, meant.layout.mbs, meant.layout.gbs) == (16, 16, 4, 512)
    meant = setup(made(train_micro_batch_size_per_gpu=None), world=16)
    assert (meant.layout.mbs, meant.layout.gbs) == (2, 256)
    meant = setup(made(gradient_accumulation_steps=None, train_batch_size=None), world=4)
    assert (meant.layout.mbs, meant.layout.gbs) == (4, 16)


def test_auto_is_not_guessed() -> None:
    """What Transformers fill in is unknown, and said so."""
    text = made(
        train_batch_size="auto",
        train_micro_batch_size_per_gpu="auto",
        gradient_accumulation_steps="auto",
        bf16__enabled="auto",
        fp16__enabled="auto",
    )
    meant = setup(text)
    assert (meant.world, meant.layout.gbs, meant.precision) == (None, None, None)
    assert "the micro-batch is not in the file: taken as 1 a GPU" in meant.assumed
    assert "5 values are auto: the script's arguments decide them" in meant.assumed


def test_degrees_are_understood() -> None:
    """Ulysses is the context axis by all-to-all; AutoTP the tensor axis without sequence parallelism."""
    meant = setup(made(sequence_parallel_size=2, data_parallel_size=8), world=16)
    assert (meant.layout.cp, meant.layout.cp_comm_type, meant.layout.dp, meant.world) == (2, "a2a", 8, 16)
    meant = setup(made(tensor_parallel__autotp_size=2, train_batch_size=None), world=16)
    assert (meant.layout.tp, meant.layout.sp, meant.layout.dp, meant.layout.gbs) == (2, False, 8, 256)
    assert meant.layout.framework == "megatron-deepspeed"
    meant = setup(made(pipeline__stages=4, zero_optimization__stage=1, train_batch_size=None), world=16)
    assert (meant.layout.pp, meant.layout.dp, meant.layout.gbs) == (4, 4, 128)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"zero_optimization__offload_optimizer": {"device": "cpu"}}, "offloads to cpu"),
        ({"zero_optimization__stage": 3, "zero_optimization__offload_param": {"device": "nvme"}}, "offloads to nvme"),
        ({"zero_optimization__stage": 3, "zero_optimization__zero_hpz_partition_size": 8}, "groups of 8"),
    ],
)
def test_what_no_plan_can_say_is_refused(changes: dict[str, Any], said: str) -> None:
    """Instead of predicting another run."""
    with pytest.raises(SpecError, match=said):
        setup(made(**changes))


def test_offload_that_does_nothing_is_no_reason_to_refuse() -> None:
    """Rules tell of it."""
    assert setup(made(zero_optimization__offload_param={"device": "cpu"})).layout.zero == 2


def test_checkpoints_are_taken_for_recompute() -> None:
    """Only where the file counts or places them."""
    assert setup(made(activation_checkpointing__number_checkpoints=32)).layout.recompute == "full"
    assert setup(made(activation_checkpointing__profile=True)).layout.recompute is None
