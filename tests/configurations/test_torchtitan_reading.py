"""How torchtitan's files are read: where each key stands, what Python says plainly, and what it does not."""

from __future__ import annotations

import ast

import pytest

from planner.configurations import FORMS
from planner.configurations.engine import recognise
from planner.configurations.forms.torchtitan import TORCHTITAN as FORM
from planner.configurations.forms.torchtitan.catalog import flavor, flavors, keys, recipes
from planner.configurations.forms.torchtitan.literals import UNSAID, value_of
from planner.configurations.forms.torchtitan.toml_text import key_places
from planner.errors import SpecError
from planner.specs.model import model_from_record

TOML = '''\
# comment
title = "x"
[model] # the model
name = "llama3"
"flavor" = "8B"

[training]
seq_len = 4096
  local_batch_size = 2
[parallelism]
module_fqns_per_model_part = [
    ["tok_embeddings", "layers.0"], # [ not a bracket
    ["seq_len = 3", "norm"],
]
tensor_parallel_degree = 2
[checkpoint]
folder = """
tensor_parallel_degree = 3
"""
exclude_from_loading = ["a#b", 'c]']
[training.dataloader]
num_workers = 1
'''

MODULE = '''\
"""A configuration."""

from torchtitan.distributed.activation_checkpoint import FullAC
from torchtitan.models.llama3 import model_registry
from torchtitan.models.llama3.config_registry import llama3_8b

LAYERS = 80


def helper():
    c = llama3_8b()
    c.training.seq_len = 2 * 1024
    return c


def plan():
    """Return it."""
    config = helper()
    p = config.parallelism
    p.tensor_parallel_degree: int = 4
    p.module_fqns_per_model_part = [
        ["tok_embeddings", *(f"layers.{i}" for i in range(LAYERS // 2))],
        [f"layers.{i}" for i in range(40, 80)] + ["norm", "lm_head"],
    ]
    config.model_spec = model_registry("70B")
    config.activation_checkpoint = FullAC.Config()
    config.optimizer = something()
    return config
'''


def test_keys_stand_where_they_stand() -> None:
    """Lists and texts over several lines, and what looks like a key in them, are passed over."""
    places = dict(key_places(TOML))
    assert places == {
        "title": (2, 1),
        "model.name": (4, 1),
        "model.flavor": (5, 1),
        "training.seq_len": (8, 1),
        "training.local_batch_size": (9, 3),
        "parallelism.module_fqns_per_model_part": (11, 1),
        "parallelism.tensor_parallel_degree": (15, 1),
        "checkpoint.folder": (17, 1),
        "checkpoint.exclude_from_loading": (20, 1),
        "training.dataloader.num_workers": (22, 1),
    }
    found = FORM.read(TOML, "a.toml")
    assert {key: (one.spot.line, one.spot.column) for key, one in found.settings.items()} == places
    assert [(one.code, one.key) for one in found.findings] == [("TT001", "title")]


def test_broken_toml_is_refused_with_its_place() -> None:
    """The place of the parser, and what it expected."""
    with pytest.raises(SpecError) as refused:
        FORM.read("[model]\nname = llama3\n", "a.toml")
    (problem,) = refused.value.problems
    assert problem.place == "a.toml:2:8"
    assert problem.message.startswith("is no TOML: ")


def test_keys_of_ones_own_are_left_alone() -> None:
    """Who names a module with further keys, as torchtitan's flux does, knows them; kinds of known ones still count."""
    text = '[job]\ncustom_config_module = "mine"\n[encoder]\nx = 1\n[training]\nseq_len = "long"\n'
    found = FORM.read(text, "a.toml")
    assert [(one.code, one.key) for one in found.findings] == [("TT002", "training.seq_len")]
    assert found.notes[0].startswith("job.custom_config_module adds keys of its own")


@pytest.mark.parametrize(
    ("text", "name", "mine"),
    [
        (TOML, "a.toml", True),
        (TOML, "-", True),
        (MODULE, "plan.py", True),
        (MODULE, "-", True),
        ("[tool.ruff]\nx = 1\n", "pyproject.toml", False),
        ("import os\n", "train.py", False),
        ("training:\n  seq_len: 1\n", "a.yaml", False),
    ],
)
def test_a_file_is_recognised(text: str, name: str, mine: bool) -> None:
    """By what is in it, and never because of its ending alone."""
    assert (recognise(FORMS, text, name) is FORM) == mine


def test_a_module_is_followed() -> None:
    """Helpers, aliases, constants, arithmetic and lists of numbered names; never run."""
    found = FORM.read(MODULE, "plan.py")
    values = {key: one.value for key, one in found.settings.items()}
    assert values["parallelism.tensor_parallel_degree"] == 4
    assert values["training.seq_len"] == 2048
    assert values["activation_checkpoint.mode"] == "full"
    first, second = values["parallelism.module_fqns_per_model_part"]
    assert (len(first), first[-1], second[0], second[-1]) == (41, "layers.39", "layers.40", "lm_head")
    assert (found.get("model.name"), found.get("model.flavor")) == ("llama3", "70B")
    assert found.get("training.local_batch_size") == 1, "that of llama3_8b"
    assert found.findings == ()
    assert found.spot("parallelism.tensor_parallel_degree").line == 20
    assert found.notes == ("plan.py has several configurations; plan was read, not helper",)


def test_what_is_decided_at_run_time_is_noted() -> None:
    """The rest is read all the same, and what may have been changed is not taken for known."""
    text = MODULE.replace(
        "    return config\n", "    if LAYERS > 3:\n        p.tensor_parallel_degree = 8\n    return config\n"
    )
    text = text.replace("c.training.seq_len = 2 * 1024", 'c.training.seq_len = int(os.environ["SEQ"])')
    found = FORM.read(text, "plan.py")
    assert "parallelism.tensor_parallel_degree" not in found
    assert found.get("training.seq_len") == 8192, "that of llama3_8b"
    assert [note.partition(": ")[2] for note in found.notes[1:]] == [
        "training.seq_len is found out by running it, and was not read",
        "this statement decides while it runs, and was not read",
    ]


def test_a_configuration_may_be_built_by_its_class() -> None:
    """`Trainer.Config(parallelism=ParallelismConfig(...))`, as torchtitan's own are; no checkpointing is None."""
    text = """\
from torchtitan.config import ParallelismConfig, TrainingConfig
from torchtitan.models.qwen3 import model_registry
from torchtitan.trainer import Trainer


def plan() -> Trainer.Config:
    spec = model_registry("14B", attn_backend="flex")
    return Trainer.Config(
        model_spec=spec,
        training=TrainingConfig(local_batch_size=4, seq_len=4096),
        parallelism=ParallelismConfig(data_parallel_shard_degree=8, tensor_parallel=2),
        activation_checkpoint=None,
    )
"""
    found = FORM.read(text, "plan.py")
    assert [(one.code, one.spot.line) for one in found.findings] == [("TT001", 11)]
    layout = FORM.setup(found).layout
    assert (layout.dp, layout.tp, layout.mbs, layout.seq, layout.recompute) == (8, 1, 4, 4096, "none")
    assert (FORM.setup(found).model or {})["hidden_size"] == 5120


SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
export NCCL_DEBUG=INFO HF_TOKEN=secret
TP=4
OPTIONS="--parallelism.tensor_parallel_degree $TP --training.local-batch-size=2"
torchrun --nnodes $SLURM_NNODES --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_70b \\
    $OPTIONS --training.disable_cuda_graphs --training.no-enable-cpu-offload --compile.components model,loss \\
    --parallelism.pipeline_parallel_degree two --training.seq-lenn 4096
"""


def test_a_script_changes_the_configuration_that_it_starts_from() -> None:
    """Options in both spellings, switches on and off, variables, ranks; what is no key or value stands where it is."""
    assert recognise(FORMS, SCRIPT, "launch.sh") is FORM
    found = FORM.read(SCRIPT, "launch.sh")
    assert {key: one.value for key, one in found.settings.items()} == {
        "model.flavor": "70B",
        "parallelism.tensor_parallel_degree": 4,
        "training.local_batch_size": 2,
        "training.disable_cuda_graphs": True,
        "training.enable_cpu_offload": False,
        "compile.components": ["model", "loss"],
        "parallelism.pipeline_parallel_degree": "two",
        "training.seq_lenn": "4096",
    }
    assert sorted((one.code, one.key, one.spot.line) for one in found.findings) == [
        ("TT001", "--training.seq-lenn", 9),
        ("TT002", "--parallelism.pipeline_parallel_degree", 9),
    ]
    assert found.world is not None
    assert found.world.value == 16
    assert found.get("activation_checkpoint.mode") == "full", "that of llama3_70b"
    assert set(found.environment) == {"NCCL_DEBUG"}
    assert (found.version, found.notes) == ("0.3", ())


def test_the_wrapper_takes_its_variables() -> None:
    """`NGPU=4 CONFIG_FILE=x.toml ./run_train.sh`; what is in the file is not in the script, and that is said."""
    found = FORM.read("NGPU=4 CONFIG_FILE=x.toml ./run_train.sh --parallelism.tensor_parallel_degree 2\n", "run.sh")
    assert (found.version, found.world.value if found.world else None) == ("0.2.2", 4)
    assert found.number("parallelism.tensor_parallel_degree") == 2
    assert found.notes == ("what x.toml sets is not in this script; check that file too",)
    found = FORM.read("MODULE=my_plan CONFIG=plan ./run_train.sh\n", "run.sh")
    assert (found.version, found.world.value if found.world else None) == ("0.3", 8)
    assert found.notes == ("what plan of my_plan sets is not in this script; check that module too",)
    with pytest.raises(SpecError, match="starts no training with torchtitan"):
        FORM.read("# torchtitan.train\necho\n", "run.sh")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def plan(:\n", "is no Python"),
        ("from torchtitan.trainer import Trainer\n", "has no function that makes a torchtitan configuration"),
        ("def plan():\n    return plan()\n", "has no function that makes a torchtitan configuration"),
    ],
)
def test_a_module_without_a_configuration_is_refused(text: str, message: str) -> None:
    """With what one looks like."""
    with pytest.raises(SpecError, match=message):
        FORM.read(text, "plan.py")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-3", -3),
        ("7 // 2 % 2", 1),
        ("[1] + [2]", [1, 2]),
        ("(1, 'a')", [1, "a"]),
        ("not True", False),
        ("f'{n}x'", "5x"),
        ("[i for i in range(2)]", [0, 1]),
        ("1 // 0", UNSAID),
        ("[0] * 3", UNSAID),
        ("f'{n:3}'", UNSAID),
        ("[i for i in range(10**11)]", UNSAID),
        ("[i for i in range(3) if i]", UNSAID),
        ("b'x'", UNSAID),
        ("open('x')", UNSAID),
        ("9 ** 9", UNSAID),
    ],
)
def test_an_expression_says_what_it_says(text: str, value: object) -> None:
    """Plain values and little arithmetic; anything more is left unsaid, and never computed."""
    assert value_of(ast.parse(text, mode="eval").body, {"n": 5}) == value


def test_the_catalog_holds_models_that_are_models() -> None:
    """Those of families that the planner knows are read; recipes name flavors and keys that exist."""
    for version in ("0.2", "0.3"):
        for one in flavors(version):
            assert one.config["num_attention_heads"] % one.config["num_key_value_heads"] == 0
            if one.config["model_type"] in {"llama", "qwen3"}:
                assert model_from_record(one.config, "x").num_layers == one.config["num_hidden_layers"]
    known = {(one.model, one.name) for one in flavors("0.3")}
    for recipe in recipes().values():
        assert (recipe.model, recipe.flavor) in known
        assert set(recipe.values) <= set(keys("0.3"))


@pytest.mark.parametrize(("name", "parameters"), [("8B", 8_030_261_248), ("70B", 70_553_706_496)])
def test_flavors_have_the_parameters_that_torchtitan_counts(name: str, parameters: int) -> None:
    """As its log says at the start of a run."""
    found = flavor("llama3", name, "0.3")
    assert found is not None
    assert model_from_record(found.config, "x").parameters == parameters
