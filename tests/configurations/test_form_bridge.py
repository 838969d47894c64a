"""Overrides of Megatron-Bridge: read under Megatron's inner names, held to rules, published mistakes among them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from configurations.megatron_examples import BASE, EXAMPLES, VERSIONS, merged
from planner.configurations import FORMS
from planner.configurations.engine import broken, recognise
from planner.configurations.forms.bridge import BRIDGE as FORM
from planner.configurations.forms.bridge.keys import INVERTED, KEYS
from planner.configurations.forms.bridge.rules import SHARED
from planner.configurations.forms.bridge.words import key_of
from planner.configurations.forms.megatron import MEGATRON
from planner.domain.configuration import Configuration, Finding
from planner.errors import SpecError

SOUND = """\
# Llama 3 70B on 64 devices
torchrun --nnodes=8 --nproc-per-node=8 scripts/training/run_recipe.py \\
  --recipe llama3_70b_pretrain_32gpu_h100_bf16_config --mode pretrain \\
  -cp 1 -gb 256 \\
  train.global_batch_size=512 model.recompute_granularity=full \\
  model.recompute_method=uniform model.recompute_num_layers=1
"""


def read(text: str, version: str = "") -> Configuration:
    return replace(FORM.read(text, "run.sh"), version=version)


def found(text: str, version: str = "") -> dict[str, Finding]:
    return {finding.code: finding for finding in broken(FORM, read(text, version))}


def command(*words: str, world: int = 16) -> str:
    return f"torchrun --nproc-per-node {world} run_recipe.py --recipe {' '.join(words)}\n"


def test_a_command_and_a_list_are_recognised() -> None:
    """By the script, or by keys of its sections."""
    assert recognise(FORMS, SOUND, "run.sh") is FORM
    assert recognise(FORMS, "model.num_layers=4\ntrain.micro_batch_size=1\n", "overrides.txt") is FORM
    assert recognise(FORMS, "torchrun pretrain_gpt.py --num-layers 4", "run.sh") is not FORM


def test_a_known_recipe_fills_in_what_is_not_written() -> None:
    """The tp 4 and pp 4 with 5 chunks are the recipe's, cp is the option's, the batch the override's, which wins."""
    configuration = read(SOUND)
    assert set(found(SOUND)) == {"MB003"}
    assert "-gb" not in configuration.name("global_batch_size")
    meant = FORM.setup(configuration)
    layout = meant.layout
    assert (layout.tp, layout.pp, layout.vpp, layout.cp, layout.dp) == (4, 4, 5, 1, 4)
    assert (layout.gbs, layout.mbs, layout.seq, layout.zero, layout.sp) == (512, 1, 8192, 1, True)
    assert (layout.recompute, meant.world, meant.assumed) == ("full", 64, ())
    assert meant.model is not None
    assert meant.model["num_hidden_layers"] == 80


def test_an_unknown_recipe_is_not_guessed_at() -> None:
    """What it may say is left out of rules; what a layout needs is assumed aloud."""
    text = command("my_own_config", "model.tensor_model_parallel_size=3")
    assert found(text) == {}
    assert any("pp is taken as 1" in line for line in FORM.setup(read(text)).assumed)


def test_variables_are_left_open() -> None:
    """Their rules are left out."""
    configuration = read(command("llama3_70b_pretrain_config", "-tp $TP"))
    assert configuration.get("tensor_model_parallel_size") is None
    assert any("-tp is left open, for $TP is not set in the script" in note for note in configuration.notes)


QWEN = "qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config"
LLAMA = "llama3_8b_pretrain_2gpu_h100_bf16_config"
BROKEN = (
    ("MB001", command(LLAMA, "modl.num_layers=4")),
    ("MB001", command(LLAMA, "dataset.seq_len=4096")),
    ("MB002", command(LLAMA, "model.tensor_model_parallel_size=two")),
    ("MB002", command(LLAMA, "model.sequence_parallel=2")),
    ("MB002", command(LLAMA, "model.recompute_granularity=some")),
    ("MB003", command(LLAMA, "train.global_batch_size=512", "train.global_batch_size=1024")),
    ("MB004", command(LLAMA, "-pp 2", "model.pipeline_model_parallel_layout=Et*16|t*16L")),
    ("MG101", command(LLAMA, "-tp 8", "-pp 2", "-cp 2")),
    ("MG102", command(QWEN, "-pp 2", world=16)),
    ("MB102", command("my_own_config", "-pp 2", "-ep 16")),
    ("MB104", command(LLAMA, "model.sequence_parallel=true")),
    (
        "MB204",
        command("llama3_70b_pretrain_config", f"'model.pipeline_model_parallel_layout=Et*20|{'t*20|' * 2}t*20L'"),
    ),
    ("MG201", command(LLAMA, "-pp 3", "-cp 1", world=3)),
    ("MG203", command(LLAMA, "-pp 4", "-vp 3")),
    ("MG225", command(LLAMA, "-vp 2")),
    ("MG212", command(LLAMA, "-pp 2", "'model.pipeline_model_parallel_layout=Et*16|t*15L'")),
    ("MG211", command(LLAMA, "-pp 2", "'model.pipeline_model_parallel_layout=Et*16|t*8|t*8L'")),
    ("MG213", command(LLAMA, "-pp 2", "'model.pipeline_model_parallel_layout=t*16|t*16'")),
    ("MG210", command(LLAMA, "-pp 2", "'model.pipeline_model_parallel_layout=Et*16|x'")),
    ("MG214", command(LLAMA, "-pp 2", "model.mtp_num_layers=2 'model.pipeline_model_parallel_layout=Et*16|t*16mL'")),
    ("MB206", command(LLAMA, "-pp 4", "'model.pipeline_model_parallel_layout=Et*16|t*15|t|mL'")),
    (
        "MB207",
        command(
            "llama31_405b_pretrain_config",
            f"'model.pipeline_model_parallel_layout=Et*15|{'t*16|' * 6}t*15L'",
            "model.virtual_pipeline_model_parallel_size=1",
            world=256,
        ),
    ),
    ("MG206", command("llama31_405b_pretrain_config", "model.num_layers_in_first_pipeline_stage=15", world=256)),
    ("MG302", command(LLAMA, "-gb 500")),
    ("MB401", command(LLAMA, "model.seq_length=4096")),
    ("MG410", command(LLAMA, "-sl 8190")),
    ("MG411", command(LLAMA, "-sl 8196", "-tp 8", "model.sequence_parallel=true", "-cp 2")),
    ("MG401", command(LLAMA, "-tp 12", "-cp 1", world=12)),
    ("MG402", command(LLAMA, "-tp 12", "-cp 1", world=12)),
    ("MG501", command(QWEN, "-ep 12", world=12)),
    ("MG504", command(QWEN, "-tp 2")),
    ("MG641", command(LLAMA, "model.recompute_granularity=full")),
    ("MG642", command(LLAMA, "model.recompute_granularity=selective", "model.recompute_method=block")),
    ("MG641", command(LLAMA, "model.recompute_granularity=full", "model.recompute_method=block")),
)


@pytest.mark.parametrize(("code", "text"), BROKEN, ids=[f"{code}-{index}" for index, (code, _) in enumerate(BROKEN)])
def test_each_rule_is_broken_by_what_it_is_about(code: str, text: str) -> None:
    """And says where, and what would be right."""
    finding = found(text)[code]
    assert finding.spot.line == 1
    assert finding.message
    assert not finding.message.endswith(".")


def test_published_vpp_of_a_sibling() -> None:
    """Qwen3.5-VL 35B has 40 layers; its benchmark took vpp 12 over from 48 (Megatron-Bridge pull request 5893)."""
    recipe = "qwen35_vl_35b_a3b_pretrain_16gpu_h100_bf16_config"
    finding = found(command(recipe, "-pp 2", "-vp 12"))["MG203"]
    assert finding.key == "-vp"
    assert finding.message == (
        "stage 0 has 20 layers, which do not divide into 12 chunks; use"
        " model.virtual_pipeline_model_parallel_size of 1, 2, 4, 5, 10, 20, or a layout with chunks of unlike size"
    )
    assert "MG203" not in found(command(recipe, "-pp 2", "-vp 10"))


@pytest.mark.parametrize(
    ("words", "version", "refused"),
    [
        (("-tp 4", "-pp 1", "-cp 1", "-ep 4", "model.sequence_parallel=true"), "0.2", True),
        (
            (
                "-tp 4",
                "-pp 1",
                "-cp 1",
                "-ep 4",
                "model.sequence_parallel=true",
                "model.expert_tensor_parallel_size=1",
            ),
            "0.2",
            False,
        ),
        (("-tp 4", "-pp 1", "-cp 1", "-ep 4", "model.sequence_parallel=true"), "0.7", False),
    ],
)
def test_published_tensor_degree_of_experts(words: tuple[str, ...], version: str, refused: bool) -> None:
    """Qwen3 30B on 4 devices with tp 4 and ep 4: etp was silently tp (Megatron-Bridge issue 546); now it is 1."""
    text = command("qwen3_30b_a3b_pretrain_config", *words, world=4)
    codes = set(found(text, version)) & {"MG102", "MB102", "MB103"}
    assert codes == ({"MB103"} if refused else set())
    if refused:
        assert "write model.expert_tensor_parallel_size=1" in found(text, version)["MB103"].message


def test_published_experts_beyond_the_ranks() -> None:
    """With tp 2, pp 2, ep 8, etp 1 on 8 devices: 16 > 8, and ep 4 works (THUDM/slime pull request 2077)."""
    words = ("-tp 2", "-pp 2", "-cp 1", "model.sequence_parallel=true", "model.expert_tensor_parallel_size=1")
    finding = found(command("qwen3_30b_a3b_pretrain_config", *words, "-ep 8", world=8))["MG102"]
    assert finding.message == (
        "expert tensor degree 1 x expert degree 8 x 2 stages = 16 does not divide the 8 ranks;"
        " with these, expert degrees 1, 2, 4 fit, or use a multiple of 16 ranks"
    )
    assert "MG102" not in found(command("qwen3_30b_a3b_pretrain_config", *words, "-ep 4", world=8))


def test_published_refusal_without_a_cause() -> None:
    """With tp 1, pp 2, ep 2, etp 1 on 4 devices NeMo computed 8 for 4 (NVIDIA-NeMo/Speech issue 14838): it divides."""
    words = ("-tp 1", "-pp 2", "-cp 1", "-ep 2", "-etp 1")
    assert found(command("qwen3_30b_a3b_pretrain_config", *words, world=4)) == {}


def test_published_stage_of_prediction_alone() -> None:
    """A layout with m alone in its last stage crashed another bridge (modelscope/ms-swift pull request 9827)."""
    text = command("my_own_config", "model.mtp_num_layers=1", "'model.pipeline_model_parallel_layout=E(|tt)*30,|mL'")
    finding = found(text)["MB206"]
    assert finding.severity == "warning"
    assert finding.message.startswith("gives stage 31 no layer (t) beside m")
    beside = text.replace("E(|tt)*30,|mL", "E(|tt)*30,|tmL")
    assert "MB206" not in found(beside)


def test_what_no_plan_can_say_is_refused_where_it_stands() -> None:
    """Exchanges of context that are not priced, and mixtures of experts, in the words of the file."""
    with pytest.raises(SpecError, match=r"run.sh:1:\d+: model.cp_comm_type allgather cannot be planned yet"):
        FORM.setup(read(command(LLAMA, "model.cp_comm_type=allgather")))
    with pytest.raises(SpecError, match="a mixture of experts cannot be planned yet"):
        FORM.setup(read(command(QWEN)))


@pytest.mark.parametrize("nonsense", ["[]", "text", "true", "{a:1}", "-1", "1.5", "null", "", "'|'", "99999999999999"])
def test_rules_never_fail_on_nonsense(nonsense: str) -> None:
    """Whatever stands at a key, findings come back."""
    for key in KEYS:
        broken(FORM, read(command(LLAMA, f"{key}={nonsense}")))


def test_a_quoted_layout_before_a_pipe_is_whole() -> None:
    """Only one that the shell has cut at its | is told of."""
    text = command(LLAMA, "-pp 2 -cp 1", "'model.pipeline_model_parallel_layout=Et*16|t*16L' 2>&1 | tee log")
    assert {one.code for one in broken(FORM, read(text)) if one.severity == "error"} == set()


def test_a_list_without_overrides_is_refused() -> None:
    """With what should stand there."""
    with pytest.raises(SpecError, match="has no override"):
        read("nothing here\n")


def test_rules_have_codes_of_their_own() -> None:
    """MB and three digits, or those of Megatron-Core, each with what a reader needs."""
    codes = [rule.code for rule in FORM.rules]
    assert len(set(codes)) == len(codes)
    for rule in FORM.rules:
        assert re.fullmatch(r"MB[0-7]\d\d|MG[1-7]\d\d", rule.code)
        assert rule.name
        assert rule.summary
        assert rule.why
        assert rule.source


def as_overrides(changes: str) -> str:
    """Return the command that says to Bridge what an example says to Megatron-LM."""
    words, _ = merged(BASE, changes)
    settings = {key: one.value for key, one in MEGATRON.read("\n".join(words), "arguments.txt").settings.items()}
    each = settings.pop("num_layers_per_virtual_pipeline_stage", None)
    if each:
        stages = settings.get("pipeline_model_parallel_size", 1)
        settings["num_virtual_stages_per_pipeline_rank"] = settings["num_layers"] // stages // each
    found = []
    for inner, value in settings.items():
        key = key_of(inner)
        said = not value if key in INVERTED else value
        if "." in key:
            found.append(f"'{key}={said}'".replace(", ", ",").replace("True", "true").replace("False", "false"))
    return command("vanilla_gpt_pretrain_config", *found)


OTHERWISE = {
    "MG103": "the reader tells of a 0",
    "MG506": "experts are whole by default",
    "MG510": "the recipe's dispatcher is not known",
    "MG511": "the recipe's dispatcher is not known",
    "MG512": "the recipe's dispatcher is not known",
    "MG601": "what the recipe shards is known only in part",
    "MG603": "what the recipe overlaps is not known",
    "MG604": "the recipe's optimizer is not known",
    "MG620": "what Megatron-FSDP shards by default is not known",
}
"""Rules whose example for Megatron-LM needs a default of its parser -> why it says nothing here."""


@pytest.mark.parametrize("code", [f"MG{number}" for number in SHARED])
def test_shared_rules_speak_of_overrides(code: str) -> None:
    """What breaks a rule in a script of Megatron-LM breaks it here, and no message names a flag or an inner name."""
    version = "0.2" if code in VERSIONS else ""
    wrong, right = (read(as_overrides(changes), version) for changes in EXAMPLES[code])
    assert wrong.findings == () or code in OTHERWISE
    findings = [one for one in broken(FORM, wrong) if one.code == code]
    assert bool(findings) == (code not in OTHERWISE)
    assert code not in {one.code for one in broken(FORM, right)}
    for one in findings:
        assert one.key in {*wrong.settings["recipe"].name.split(), *(kept.name for kept in wrong.settings.values())}
        assert "--" not in one.message
        assert not set(re.findall(r"(?<![\w.])[a-z]+_[a-z]+_[a-z]+", one.message)) - {"mla_up_proj", "gdn_norm_out"}


def test_nothing_is_guessed_of_a_recipe_that_is_not_known() -> None:
    """Of an example with a recipe of one's own no rule says more than with one that is known."""
    for code in (f"MG{number}" for number in SHARED):
        known = as_overrides(EXAMPLES[code][0])
        own = known.replace("vanilla_gpt_pretrain_config", "my_own_config")
        assert set(found(own)) <= set(found(known)) | {"MB102"}


def test_the_recipe_is_blamed_for_what_it_says() -> None:
    """Its degrees do not fit the ranks, and nothing else is written."""
    finding = found(command("llama3_70b_pretrain_config"))["MG101"]
    assert (finding.key, finding.spot.column) == ("--recipe", 44)


def test_null_takes_back_what_the_recipe_says() -> None:
    """Chunks of the recipe beside a layout of one's own."""
    layout = f"'model.pipeline_model_parallel_layout=Et*20|{'t*20|' * 2}t*20L'"
    text = command("llama3_70b_pretrain_config", layout, world=32)
    assert found(text)["MB204"].message == (
        "the layout has 4 stages, and pp 4 x vpp 5 = 20; write"
        " model.virtual_pipeline_model_parallel_size=1, or null to take the layout's"
    )
    freed = text.replace("\n", " model.virtual_pipeline_model_parallel_size=null\n")
    assert found(freed) == {}
    assert FORM.setup(read(freed)).layout.vpp == 1


def test_scripts_are_read_as_the_shell_does() -> None:
    """Variables, arrays, Slurm's ranks, and what stands under a condition, which is left open."""
    text = (
        "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=8\nTP=4\nexport CUDA_DEVICE_MAX_CONNECTIONS=1 TOKEN=secret\n"
        'MORE=(model.sequence_parallel=true "$@")\nif [ -n "$LONG" ]; then CP=8; fi\n'
        f'srun python scripts/training/run_recipe.py --recipe {LLAMA} -tp $TP -cp $CP "${{MORE[@]}}" -gb=$((4 * 128))\n'
    )
    configuration = read(text)
    assert configuration.world is not None
    assert configuration.world.value == 16
    assert set(configuration.environment) == {"CUDA_DEVICE_MAX_CONNECTIONS"}
    assert configuration.get("tensor_model_parallel_size") == 4
    assert configuration.get("global_batch_size") == 512
    assert configuration.on("sequence_parallel")
    assert "context_parallel_size" in configuration
    assert configuration.get("context_parallel_size") is None
    assert found(text) == {}
