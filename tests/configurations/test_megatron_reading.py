"""Megatron-LM's launch scripts, lists of arguments and test files are read as its own parser would read them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.configurations import FORMS
from planner.configurations.engine import broken, recognise
from planner.configurations.forms.megatron import MEGATRON
from planner.configurations.forms.megatron.arguments import RENAMED
from planner.configurations.megatron.flags import defaults, flags, names
from planner.domain.configuration import ERROR, WARNING, Configuration
from planner.errors import SpecError

SIZES = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096"
SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=train --nodes=4
#SBATCH --gpus-per-node=8
export CUDA_DEVICE_MAX_CONNECTIONS=1 WANDB_API_KEY=not-to-be-kept
export NCCL_IB_HCA=mlx5
NNODES=$SLURM_NNODES
TP=4
ARGS=(
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32
    --tensor-model-parallel-size $TP
    --pipeline-model-parallel-layout 'Et*16|t*16L'   # two stages
    --pipeline-model-parallel-size 2
    --data-path $1
)
srun torchrun --nnodes $NNODES --nproc-per-node 8 --node-rank $R pretrain_gpt.py "${ARGS[@]}" --bf16 | tee log
"""


def read(text: str, name: str = "arguments.txt") -> Configuration:
    return MEGATRON.read(text, name)


def values(found: Configuration) -> dict[str, object]:
    return {key: setting.value for key, setting in found.settings.items()}


def complaints(text: str, name: str = "arguments.txt") -> list[tuple[str, str, str]]:
    """Return (code, severity, message) of what the reader finds."""
    return [(one.code, one.severity, one.message) for one in read(text, name).findings]


def test_the_table_of_flags() -> None:
    """All flags of core 0.19.2: switches, values and lists, with their defaults."""
    assert len(flags()) >= 833
    assert flags()["--tensor-model-parallel-size"].default == 1
    assert flags()["--disable-bias-linear"].dest == "add_bias_linear"
    assert defaults()["add_bias_linear"] is True
    assert defaults()["cp_comm_type"] == ["p2p"]
    assert flags()["--no-rl-partial-rollouts"].kind == "false"
    assert not set(RENAMED) & set(flags())
    assert names()["fp8"] == "--fp8-format"
    assert all(flag.default in flag.choices for flag in flags().values() if flag.choices and flag.default is not None)


def test_a_script() -> None:
    """Arguments with their places, the ranks, the variables that matter, and what is left open."""
    found = read(SCRIPT, "train.sh")
    assert values(found) == {
        "num_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "tensor_model_parallel_size": 4,
        "pipeline_model_parallel_layout": "Et*16|t*16L",
        "pipeline_model_parallel_size": 2,
        "data_path": None,
        "bf16": True,
    }
    assert str(found.settings["tensor_model_parallel_size"].spot) == "train.sh:10:5"
    assert found.world is not None
    assert (found.world.value, str(found.world.spot)) == (32, "train.sh:15:32")
    assert {key: one.value for key, one in found.environment.items()} == {
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "NCCL_IB_HCA": "mlx5",
    }
    assert found.notes == ("left open, for $1 is not set in the script: --data-path (line 13)",)
    assert found.findings == ()
    assert "not-to-be-kept" not in repr(found)


def test_ways_to_write_arguments() -> None:
    """In one line, one a line, as JSON, as YAML of Megatron-LM's tests, or in a script that others read."""
    wanted = {"num_layers": 32, "bf16": True, "cp_comm_type": ["p2p", "a2a"]}
    for text, name in (
        ("--num-layers 32 --bf16 --cp-comm-type p2p a2a", "-"),
        ("--num-layers\n32\n--bf16\n--cp-comm-type\np2p\na2a\n", "-"),
        ("# mine\n--num-layers=32 \\\n  --bf16  # yes\n--cp-comm-type 'p2p' a2a", "-"),
        ('["--num-layers", 32, "--bf16", "--cp-comm-type", "p2p", "a2a"]', "-"),
        ("MODEL_ARGS:\n  --num-layers: 32\n  --bf16: true\n  --swiglu: false\n  --cp-comm-type: p2p a2a\n", "m.yaml"),
        ("ARGS=(--num-layers 32 --bf16)\nARGS+=(--cp-comm-type p2p a2a)\n", "conf.sh"),
    ):
        assert values(read(text, name)) == wanted, text


def test_variables_of_test_files() -> None:
    """``ENV_VARS`` beside ``MODEL_ARGS``, those that matter."""
    text = "ENV_VARS:\n  CUDA_DEVICE_MAX_CONNECTIONS: 1\n  HF_TOKEN: x\nMODEL_ARGS:\n  --num-layers: 2\n"
    found = read(text, "model_config.yaml")
    assert {key: (one.value, one.spot.line) for key, one in found.environment.items()} == {
        "CUDA_DEVICE_MAX_CONNECTIONS": ("1", 2)
    }
    assert found.settings["num_layers"].spot.line == 5


@pytest.mark.parametrize(
    ("launch", "ranks"),
    [
        ("torchrun --nproc_per_node 8 --nnodes=4", 32),
        ("torchrun --nproc-per-node=8", 8),
        ("python -m torch.distributed.launch --nproc_per_node 4 --nnodes 2", 8),
        ("python3 -m torch.distributed.run --nproc-per-node 2", 2),
        ("torchrun --nnodes 2:4 --nproc-per-node 8", 32),
        ("torchrun --nproc-per-node gpu", None),
        ("srun -N 2 --ntasks-per-node=8 python", 16),
        ("srun -n 24 python -u", 24),
        ("python", None),
    ],
)
def test_ranks(launch: str, ranks: int | None) -> None:
    """As launchers say them; not known where the machine decides."""
    found = read(f"{launch} pretrain_gpt.py {SIZES}\n", "run.sh").world
    assert (found.value if found else None) == ranks


def test_ranks_of_slurm() -> None:
    """Tasks a node on all nodes, where srun starts Python itself; else the script's own WORLD_SIZE."""
    head = "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n"
    found = read(f"{head}srun python pretrain_gpt.py {SIZES}\n", "run.sh").world
    assert found is not None
    assert found.value == 32
    found = read(f'{head}srun bash -c "python pretrain_gpt.py {SIZES}"\n', "run.sh").world
    assert found is not None
    assert found.value == 32
    found = read(f"G=8\nN=2\nWORLD_SIZE=$((G*N))\npython pretrain_gpt.py {SIZES}\n", "run.sh").world
    assert found is not None
    assert (found.value, found.spot.line) == (16, 3)


@pytest.mark.parametrize(
    ("written", "severity", "message"),
    [
        ("--tensor-model-paralel-size 2", ERROR, "did you mean --tensor-model-parallel-size?"),
        ("--tensor_model_parallel_size 2", ERROR, "Megatron's flags have hyphens; write --tensor-model-parallel-size"),
        ("--tensor-model-parallel 2", ERROR, "accepts no abbreviations; write --tensor-model-parallel-size"),
        ("--align-param-gather", ERROR, "only --no-align-param-gather is a flag"),
        ("--my-own-thing 2", WARNING, "is no flag of Megatron-LM 0.19; if it is not one of your fork"),
        ("--use-custom-fsdp", WARNING, "is a flag of older versions; write --use-megatron-fsdp"),
        ("--out-seq-length 7", ERROR, "did you mean --seq-length?"),
    ],
)
def test_unknown_flags(written: str, severity: str, message: str) -> None:
    """A slip is an error, what may be somebody's own is a warning; the rest is read."""
    ((code, found, text),) = complaints(f"--num-layers 32 {written} --bf16")
    assert (code, found) == ("MG001", severity)
    assert message in text
    assert values(read(f"--num-layers 32 {written} --bf16")) == {"num_layers": 32, "bf16": True}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("--num-layers many", "--num-layers should be a whole number, not 'many'"),
        ("--num-layers 3.5", "--num-layers should be a whole number, not '3.5'"),
        ("--lr fast", "--lr should be a number, not 'fast'"),
        ("--recompute-granularity all", "--recompute-granularity should be full or selective, not 'all'"),
        ("--num-layers", "--num-layers needs a value, and none follows"),
        ("--rampup-batch-size 1 2", "--rampup-batch-size needs 3 values, and 2 follow"),
        ("--bf16=1", "--bf16 is a switch and takes no value; remove it"),
        ("--megatron-fsdp-version 3", "--megatron-fsdp-version should be 1 or 2, not '3'"),
    ],
)
def test_bad_values(written: str, message: str) -> None:
    """Told with what would be right; the setting is left open, so that no rule judges it."""
    ((code, severity, text),) = complaints(f"--seq-length 8 {written}")
    assert (code, severity, text) == ("MG002", ERROR, message)
    assert None in values(read(f"--seq-length 8 {written}")).values()


def test_values_that_look_like_flags() -> None:
    """Negative numbers are values, as in argparse."""
    assert values(read("--num-layers 8 --eval-iters -1 --lr -1e-3".replace("-1e-3", "-0.001"))) == {
        "num_layers": 8,
        "eval_iters": -1,
        "lr": -0.001,
    }


def test_repeated_flags() -> None:
    """The last one counts; only another value is worth telling, and never that of a secret."""
    found = read("--num-layers 8 --num-layers 9 --bf16 --bf16")
    assert values(found)["num_layers"] == 9
    ((code, severity, text),) = complaints("--num-layers 8 --num-layers 9 --bf16 --bf16")
    assert (code, severity) == ("MG003", WARNING)
    assert (
        text
        == "--num-layers is 9 here, and --num-layers is 8 at arguments.txt:1:1; the last one counts, so keep only one"
    )


def test_words_that_belong_to_nothing() -> None:
    """Told once a place, and not shown, for they may be secret."""
    ((code, severity, text),) = complaints("--num-layers 8 --bf16 true hush-hush yes")
    assert (code, severity) == ("MG004", ERROR)
    assert "hush" not in text
    assert '"${ARGS[@]}"' in text
    ((_, _, text),) = complaints("--num-layers 8 \u2013-bf16")
    assert text.endswith("write --bf16")


def test_an_unquoted_layout_in_a_script() -> None:
    """The shell makes a pipe of it: what comes behind is lost."""
    flags = f"{SIZES} --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Et|tL --bf16"
    text = f"torchrun pretrain_gpt.py {flags}\n"
    found = [(one.code, one.spot.line) for one in read(text, "run.sh").findings]
    assert found == [("MG005", 1)]
    assert read(text.replace("Et|tL", "'Et|tL'"), "run.sh").findings == ()
    assert read(text.replace("Et|tL --bf16", "'Et|tL' 2>&1 | tee log"), "run.sh").findings == ()


def test_conditions_leave_settings_open() -> None:
    """A flag that is there perhaps is neither on nor off, and no rule says anything of it."""
    text = (
        "ARGS=(--num-layers 32 --micro-batch-size 1 --global-batch-size 8 --tensor-model-parallel-size 2)\n"
        "if [ -f x ]; then ARGS+=(--sequence-parallel); fi\n"
        "torchrun --nproc-per-node 8 pretrain_gpt.py ${ARGS[@]} --num-experts 8\n"
    )
    found = read(text, "run.sh")
    assert found.settings["sequence_parallel"].value is None
    codes = {one.code for one in broken(MEGATRON, found)}
    assert "MG504" not in codes
    assert any("under a condition that was not evaluated: --sequence-parallel (line 2)" in note for note in found.notes)


def test_other_texts_are_refused() -> None:
    """With a sentence that says what would do."""
    for text, name in (("echo hi\n", "a.sh"), ("[]", "a.json"), ("a: 1\n", "a.yaml"), ("{}", "-")):
        with pytest.raises(SpecError, match=r"arguments of Megatron-LM|arguments alone"):
            read(text, name)
    with pytest.raises(SpecError, match="is not text"):
        read("--num-layers 8 \x00", "-")
    with pytest.raises(SpecError, match="is larger than 512 KiB"):
        read("--num-layers 8 " + "x" * 600_000, "-")


def test_megatron_is_recognised() -> None:
    """By its flags, and by its programs; other kinds and plain scripts are not taken for it."""
    assert recognise(FORMS, SCRIPT, "train.sh") is MEGATRON
    assert recognise(FORMS, SIZES, "-") is MEGATRON
    assert MEGATRON.recognises("python pretrain_gpt.py --num-layers 2", "x.sh")
    assert not MEGATRON.recognises("torchrun train.py --batch 3", "x.sh")
    assert not MEGATRON.recognises('{"zero_optimization": {"stage": 1}}', "ds.json")


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(words=st.lists(st.sampled_from([*sorted(flags())[::40], "8", "-1", "full", "x", "2"]), max_size=8))
def test_any_list_of_arguments_is_judged(words: list[str]) -> None:
    """No combination makes reader or rules fail; what is refused is a SpecError."""
    with suppress(SpecError):
        found = read("\n".join(words), "arguments.txt")
        assert broken(MEGATRON, found) == broken(MEGATRON, found)
        assert MEGATRON.setup(found).layout.tp >= 1
