"""FlagScale's YAML: read as its runner reads it, held to its checks and to what nothing checks, and understood."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from configurations.megatron_examples import BASE, EXAMPLES, WORLD, merged
from planner.configurations import FORMS
from planner.configurations.engine import broken, recognise
from planner.configurations.forms.flagscale import FLAGSCALE as FORM
from planner.configurations.forms.flagscale.plain import RULES as PLAIN_RULES
from planner.configurations.megatron.flags import flags
from planner.domain.configuration import Configuration, Setting, Spot
from planner.errors import SpecError

SOUND = """\
experiment:
  exp_name: lab
  runner: {hostfile: hosts, rdzv_backend: static, nnodes: 2, nproc_per_node: 8}
  envs:
    CUDA_VISIBLE_DEVICES: 0,1,2,3,4,5,6,7
    WANDB_API_KEY: secret
    device_type_specific:
      A100: {CUDA_DEVICE_MAX_CONNECTIONS: 1}
train:
  system:
    tensor_model_parallel_size: 2
    pipeline_model_parallel_size: 2
    sequence_parallel: true
    use_distributed_optimizer: true
    hetero:
      enable_hetero: true
      hetero_process_meshes: [2, 1, 1, 4, 1, 4, 1, 1, 2, 1]
      hetero_device_types: [A800, A100]
      hetero_current_device_type: A800
      hetero_pipeline_layer_split: [18, 14]
      standalone_embedding_stage: false
    recompute:
      recompute_granularity: full
      recompute_method: block
      recompute_num_layers: 2
      recompute_granularity_per_stage_micro_batch: [[1, 4, 0], [1, 3, 1, 1, 1]]
      recompute_num_layers_per_stage_micro_batch: [[1, 4, 0], [1, 4, 2]]
    precision: {bf16: true}
  model:
    num_layers: 32
    hidden_size: 4096
    ffn_hidden_size: 14336
    num_attention_heads: 32
    group_query_attention: true
    num_query_groups: 8
    seq_length: 4096
    max_position_embeddings: 8192
    swiglu: true
    normalization: RMSNorm
    position_embedding_type: rope
    untie_embeddings_and_output_weights: true
    disable_bias_linear: true
    micro_batch_size: 1
    global_batch_size: 16
  data:
    tokenizer: {vocab_size: 128256}
"""
"""As examples/llama3/conf/train/8b_hetero.yaml of FlagScale at da4935e, but for its recompute, all in one file."""
MESHES = "hetero_process_meshes: [2, 1, 1, 4, 1, 4, 1, 1, 2, 1]"


def read(text: str) -> Configuration:
    return FORM.read(text, "plan.yaml")


def codes(text: str) -> set[str]:
    return {finding.code for finding in broken(FORM, read(text))}


def changed(*changes: tuple[str, str]) -> str:
    """Return the sound text with changes, each of which must find its place."""
    text = SOUND
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def test_the_sound_one_is_recognised_and_sound() -> None:
    """By its blocks or its meshes, whatever it is called."""
    assert recognise(FORMS, SOUND, "train.yaml") is FORM
    assert recognise(FORMS, "name: mine\ngroups: []\n", "cluster.yaml") is not FORM
    assert broken(FORM, read(SOUND)) == ()


def test_it_means_one_pipeline_of_unlike_stages() -> None:
    """Data degrees 4 and 2 are two replicas, whose first stage divides micro-batches of 2."""
    meant = FORM.setup(read(SOUND))
    layout = meant.layout
    assert (meant.world, meant.precision) == (16, "bf16")
    assert (layout.pp, layout.dp, layout.mbs, layout.gbs, layout.seq) == (2, 2, 2, 16, 4096)
    assert (layout.stage_tp, layout.stage_split) == ((2, 4), (2, 1))
    assert layout.chunk_layers == ((18,), (14,))
    assert layout.stage_recompute == (0, 2)
    assert layout.stage_devices == ("A800", "A100")
    assert meant.model == {
        "model_type": "llama",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 14336,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": False,
        "vocab_size": 128256,
        "vocab_size_padded": 128256,
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.1,
        "hidden_dropout": 0.1,
        "norm_eps": 1e-05,
        "rope_theta": 10000,
    }


def test_the_train_part_alone_will_do() -> None:
    """As in a file of conf/train, which says no world."""
    part = SOUND.partition("train:\n")[2]
    text = "\n".join(line.removeprefix("  ") for line in part.splitlines())
    configuration = read(text)
    assert configuration.world is None
    assert broken(FORM, configuration) == ()
    assert FORM.setup(configuration).world == 16


def test_secrets_are_not_kept() -> None:
    """Only variables that matter are, those of one kind of device too."""
    environment = read(SOUND).environment
    assert set(environment) == {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_MAX_CONNECTIONS"}


BROKEN = (
    ("FS001", ("hetero_device_types", "hetero_devices_types")),
    ("FS002", ("num_layers: 32", "num_layers: many")),
    ("FS002", (MESHES, "hetero_process_meshes: 2 1 1 4 1")),
    ("FS003", ("    num_layers: 32", "    num_layers: 32\n    sequence_parallel: false")),
    ("FS101", (MESHES, "hetero_process_meshes: [2, 1, 4, 1, 4, 1, 2, 1]")),
    ("FS101", (MESHES, "hetero_process_meshes: [2, 1, 1, 0, 1, 4, 1, 1, 2, 1]")),
    ("FS101", (MESHES, "")),
    ("FS102", ("pipeline_model_parallel_size: 2", "pipeline_model_parallel_size: 3")),
    ("FS103", ("nnodes: 2", "nnodes: 3")),
    ("FS104", ("[A800, A100]", "[A800, A100, V100]")),
    ("FS104", ("current_device_type: A800", "current_device_type: H800")),
    ("FS104", ("hetero_device_types: [A800, A100]", "hetero_use_cpu_communication: false")),
    ("FS106", (MESHES, "hetero_process_meshes: [2, 2, 1, 2, 1, 4, 2, 1, 1, 1]")),
    ("FS107", ("sequence_parallel: true", "sequence_parallel: true\n    use_tp_pp_dp_mapping: true")),
    ("FS108", ("bf16: true", "bf16: true, num_distributed_optimizer_instances: 2")),
    ("FS201", ("[18, 14]", "[18, 15]")),
    ("FS201", ("[18, 14]", "[18, 7, 7]")),
    ("FS203", ("bf16: true", "bf16: true, num_layers_per_virtual_pipeline_stage: 2")),
    ("FS204", ("standalone_embedding_stage: false", "standalone_embedding_stage: true")),
    ("FS301", (MESHES, "hetero_process_meshes: [2, 1, 1, 4, 1, 1, 1, 1, 8, 1]")),
    ("FS302", ("global_batch_size: 16", "global_batch_size: 18")),
    ("FS401", ("untie_embeddings_and_output_weights: true", "untie_embeddings_and_output_weights: false")),
    ("FS403", ("sequence_parallel: true", "sequence_parallel: false")),
    ("FS404", ("num_query_groups: 8", "num_query_groups: 2")),
    ("FS405", ("seq_length: 4096", "seq_length: 4094")),
    ("FS501", (MESHES, "hetero_process_meshes: [2, 1, 1, 4, 1, 4, 1, 3, 2, 1]")),
    ("FS601", ("[[1, 4, 0], [1, 4, 2]]", "[[1, 4], [1, 4, 2]]")),
    ("FS602", ("[[1, 4, 0], [1, 4, 2]]", "[[1, 4, 0], [2, 4, 2]]")),
    ("FS602", ("[[1, 4, 0], [1, 4, 2]]", "[[1, 4, 0], [1, 5, 2]]")),
    ("FS603", ("[1, 3, 1, 1, 1]", "[1, 4, 2]")),
    ("FS604", ("recompute_granularity: full", "recompute_granularity: selective")),
    ("FS604", ("recompute_method: block", "distribute_saved_activations: false")),
    ("FS605", ("[1, 3, 1, 1, 1]", "[1, 3, 0, 1, 1]")),
    ("FS701", ("rdzv_backend: static", "rdzv_backend: c10d")),
    ("FS702", ("    CUDA_VISIBLE_DEVICES: 0,1,2,3,4,5,6,7\n", "")),
    ("FS703", ("      A100: {CUDA", "      a100: {CUDA")),
)


@pytest.mark.parametrize(("code", "change"), BROKEN, ids=lambda one: one if isinstance(one, str) else one[1][:40])
def test_each_rule_is_broken_by_what_it_is_about(code: str, change: tuple[str, str]) -> None:
    """And says so at the line of the setting, with what would be right."""
    findings = [one for one in broken(FORM, read(changed(change))) if one.code == code]
    assert findings
    for finding in findings:
        assert finding.spot.line > 0
        assert finding.message
        assert not finding.message.endswith(".")


def test_layers_without_a_split_are_lost() -> None:
    """Megatron's own check is skipped with meshes: 33 layers over 2 stages train as 32."""
    text = changed(("      hetero_pipeline_layer_split: [18, 14]\n", ""), ("num_layers: 32", "num_layers: 33"))
    (finding,) = broken(FORM, read(text))
    assert finding.code == "FS202"
    assert "write hetero_pipeline_layer_split: [16, 17]" in finding.message
    assert codes(changed(("      hetero_pipeline_layer_split: [18, 14]\n", ""))) == set()


def test_a_type_that_comes_back_moves_meshes() -> None:
    """The third mesh of [A800, A100, A800] would run on the second mesh's ranks."""
    text = changed(
        (MESHES, "hetero_process_meshes: [2, 1, 1, 4, 1, 2, 1, 1, 2, 1, 2, 1, 1, 2, 1]"),
        ("[A800, A100]", "[A800, A100, A800]"),
        ("[18, 14]", "[18, 7, 7]"),
        ("pipeline_model_parallel_size: 2", "pipeline_model_parallel_size: 3"),
        ("[[1, 4, 0], [1, 3, 1, 1, 1]]", "[[3, 4, 1]]"),
        ("[[1, 4, 0], [1, 4, 2]]", "[[3, 4, 2]]"),
    )
    (finding,) = broken(FORM, read(text))
    assert (finding.code, finding.key) == ("FS105", "train.system.hetero.hetero_device_types")
    assert "(A800-2)" in finding.message


@pytest.mark.parametrize(
    ("meshes", "partial", "wanted"),
    [
        ("[2, 1, 1, 4, 1, 2, 1, 1, 4, 1]", False, set()),
        ("[2, 1, 1, 4, 1, 2, 1, 1, 2, 1]", False, {"FS402"}),
        ("[2, 1, 1, 4, 1, 2, 1, 1, 2, 1]", True, set()),
        ("[2, 1, 1, 6, 1, 2, 1, 1, 4, 1]", True, {"FS402"}),
    ],
)
def test_tied_ends_need_data_degrees_that_divide(meshes: str, partial: bool, wanted: set[str]) -> None:
    """And the switch by which the smaller end reduces for several ranks of the other."""
    switch = "bf16: true" + ", use_partial_reduce_for_shared_embedding: true" * partial
    text = changed(
        (MESHES, f"hetero_process_meshes: {meshes}"),
        ("bf16: true", switch),
        ("untie_embeddings_and_output_weights: true", "untie_embeddings_and_output_weights: false"),
    )
    assert codes(text) & {"FS401", "FS402"} == wanted


def test_what_is_no_configuration_of_it_is_refused() -> None:
    """With what it lacks."""
    with pytest.raises(SpecError, match="has no blocks system and model"):
        read("experiment: {exp_name: x}\n")


def test_what_no_plan_can_say_is_refused_where_it_stands() -> None:
    """Recompute that changes within a step, and context or expert degrees."""
    with pytest.raises(SpecError, match=r"plan.yaml:\d+.*changes the recompute of stage 1"):
        FORM.setup(read(changed(("[1, 3, 1, 1, 1]", "[1, 3, 1, 1, 0]"))))
    with pytest.raises(SpecError, match="context or expert degrees"):
        FORM.setup(read(changed((MESHES, "hetero_process_meshes: [2, 1, 2, 4, 1, 4, 1, 2, 2, 1]"))))


PLAIN = """\
system:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 4
  num_layers_per_virtual_pipeline_stage: 3
  use_distributed_optimizer: true
  precision: {bf16: true}
model:
  num_layers: 46
  hidden_size: 4096
  num_attention_heads: 32
  num_experts: 8
  seq_length: 4096
  max_position_embeddings: 4096
  micro_batch_size: 1
  global_batch_size: 64
"""


def test_without_meshes_it_is_megatrons() -> None:
    """Its rules are told at the keys of the file, in YAML; with meshes they are left to FlagScale's own."""
    findings = {one.code: one for one in broken(FORM, read(PLAIN)) if one.severity == "error"}
    assert set(findings) == {"MG201", "MG504"}
    assert findings["MG201"].spot.line == 8
    assert findings["MG201"].key == "model.num_layers"
    assert findings["MG201"].message == (
        "46 layers do not divide over 4 stages;"
        " write decoder_last_pipeline_num_layers: 10 (12,12,12,10) or a layout string"
    )
    assert findings["MG504"].message.endswith("only with sequence_parallel; add it, or use a tensor degree of 1")
    assert codes(changed(("num_layers: 32", "num_layers: 46"), ("[18, 14]", "[23, 23]"))) == set()


def as_yaml(changes: str) -> str:
    """Return the block that says to FlagScale what an example says to Megatron-LM."""
    said: dict[str, list[str]] = {}
    for word in merged(BASE, changes)[0]:
        if word.startswith("--"):
            said[word] = []
        else:
            said[list(said)[-1]].append(word)
    lines = ["system:", "  tokens: 1", "model:"]
    for name, values in said.items():
        written = [f"'{one}'" if flags()[name].type == "text" else one for one in values]
        listed = f"[{', '.join(written)}]" if flags()[name].nargs is not None else "".join(written)
        lines.append(f"  {name[2:].replace('-', '_')}: {listed if values else 'true'}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("code", [rule.code for rule in PLAIN_RULES])
def test_shared_rules_speak_of_keys(code: str) -> None:
    """What breaks a rule in a script of Megatron-LM breaks it here, and no message names a flag."""
    ranks = Setting(name="ranks", value=WORLD, spot=Spot("plan.yaml"))
    wrong, right = (replace(read(as_yaml(changes)), world=ranks) for changes in EXAMPLES[code])
    findings = [one for one in broken(FORM, wrong) if one.code == code]
    assert findings
    assert code not in {one.code for one in broken(FORM, right)}
    assert not any("--" in one.message + one.key for one in findings)


def test_a_model_that_is_none_of_the_known_is_refused() -> None:
    """SwiGLU with layer norms is no family, and a width may be rounded up as FlagScale does."""
    with pytest.raises(SpecError, match=r"plan.yaml:\d+: .*LayerNorm, SwiGLU and rope.* no known family"):
        FORM.setup(read(changed(("normalization: RMSNorm", "normalization: LayerNorm"))))
    with pytest.raises(SpecError, match="a mixture of experts cannot be planned yet"):
        FORM.setup(read(changed(("swiglu: true", "swiglu: true\n    num_experts: 8"))))
    meant = FORM.setup(read(changed(("ffn_hidden_size: 14336", "multiple_of: 1024\n    hidden_dim_multiplier: 1.3"))))
    assert meant.model is not None
    assert meant.model["intermediate_size"] == 14336


def test_rules_have_codes_of_their_own() -> None:
    """FS and three digits, or those of Megatron-LM, each with what a reader needs."""
    found = [rule.code for rule in FORM.rules]
    assert len(set(found)) == len(found)
    for rule in FORM.rules:
        assert re.fullmatch(r"FS[0-7]\d\d|MG[1-7]\d\d", rule.code)
        assert rule.name
        assert rule.summary
        assert rule.why
        assert "da4935e" in rule.source or rule.code.startswith("MG")


@pytest.mark.parametrize(
    "nonsense",
    ["[]", "text", "true", "{a: 1}", "[1, [2]]", "-1", "1.5", "99999999999999", "[[99999, 99999, 1]]"],
)
def test_rules_never_fail_on_nonsense(nonsense: str) -> None:
    """Whatever stands at a key, findings come back."""
    for line in SOUND.splitlines():
        key, _, value = line.partition(": ")
        if value and not line.startswith(("experiment", "  exp")):
            broken(FORM, read(SOUND.replace(line, f"{key}: {nonsense}")))
