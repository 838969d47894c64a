"""The harness judges as Slurm does, and a heterogeneous job gets its ranks in the order of its components."""

from collections.abc import Callable

import pytest

from frameworks.asking import Answer, Validator

pytestmark = pytest.mark.frameworks

Ask = Callable[..., Answer]

NODES = [
    {"name": "h100-[1-4]", "cpus": 96, "gpus": "h100:8", "partition": "h100"},
    {"name": "a100-[1-2]", "cpus": 64, "gpus": "a100:8", "partition": "a100", "features": "ib"},
]
SMALL = [
    {"name": "h[1-2]", "cpus": 2, "gpus": "h100:2", "partition": "h100"},
    {"name": "a[1-2]", "cpus": 1, "gpus": "a100:1", "partition": "a100"},
]


def _script(options: str, body: str = "srun hostname") -> str:
    """A batch script of these options, where a `+` stands between two components."""
    lines = ["#SBATCH hetjob" if option == "+" else f"#SBATCH {option}" for option in options.split()]
    return "\n".join(["#!/bin/bash", *lines, body]) + "\n"


@pytest.fixture
def ask(validator: Callable[[str], Validator]) -> Ask:
    slurm = validator("slurm")

    def asked(options: str, body: str = "srun hostname", **rest: object) -> Answer:
        return slurm.ask(**{"text": _script(options, body), "nodes": NODES, **rest})

    return asked


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ("--nodes=2 --partition=h100 --gpus-per-node=h100:8 --ntasks-per-node=1 --cpus-per-task=96", ["h100-[1-2]"]),
        ("--nodes=4 --partition=h100 --gres=gpu:h100:8 --exclusive --time=1-00:00:00", ["h100-[1-4]"]),
        ("--nodes=1 --partition=a100 --constraint=ib --job-name=plan", ["a100-1"]),
        (
            "--nodes=2 --partition=h100 --gpus-per-node=h100:8 + --nodes=1 --partition=a100 --gpus-per-node=a100:8",
            ["a100-1,h100-[1-2]"],
        ),
    ],
)
def test_takes(ask: Ask, options: str, nodes: list[str]) -> None:
    answer = ask(options)
    assert answer.accepted, answer.message
    assert answer.facts["nodes"] == nodes


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--nodes=5 --partition=h100", "Requested node configuration is not available"),
        ("--partition=v100", "invalid partition specified: v100"),
        ("--nodes=1 --gpus-per-node=v100:8", "Requested node configuration is not available"),
        ("--nodes=1 --partition=h100 --gpus-per-node=h100:9", "Requested node configuration is not available"),
        ("--nodes=1 --constraint=nvlink", "Invalid feature specification"),
        ("--nodes=1 --partition=h100 --cpus-per-task=200", "Requested node configuration is not available"),
        ("--gpu-per-nodes=8", "unrecognized option"),
        ("--time=tomorrow", "Invalid --time specification"),
        ("--nodes=1 --partition=h100 + --nodes=3 --partition=a100", "Requested node configuration is not available"),
    ],
)
def test_refuses(ask: Ask, options: str, says: str) -> None:
    answer = ask(options)
    assert not answer.accepted
    assert says in answer.message


@pytest.mark.parametrize(
    "options",
    [
        "--nodes=1 --partition=h100 --gpus-per-nod=h100:8",  # a beginning of an option is one
        "--nodes=1 --partition=h100 --time=30-00:00:00",  # longer than the partition lets jobs run
    ],
)
def test_does_not_catch(ask: Ask, options: str) -> None:
    assert ask(options).accepted


def test_ranks_of_a_heterogeneous_job_follow_its_components(ask: Ask) -> None:
    options = "--nodes=2 --partition=h100 --gpus-per-node=h100:2 + --nodes=2 --partition=a100 --gpus-per-node=a100:1"
    body = "srun --het-group=0 {folder}/rank.sh 2 : --het-group=1 {folder}/rank.sh 1"
    rank = "#!/bin/bash\necho $SLURM_NODEID of $SLURM_NNODES on $SLURMD_NODENAME with $1\n"
    answer = ask(options, body, nodes=SMALL, run=True, files={"rank.sh": rank})
    assert answer.facts["state"] == "COMPLETED"
    assert sorted(answer.facts["printed"].splitlines()) == [
        "0 of 4 on h1 with 2",
        "1 of 4 on h2 with 2",
        "2 of 4 on a1 with 1",
        "3 of 4 on a2 with 1",
    ]


def test_a_script_that_fails_is_a_job_that_failed(ask: Ask) -> None:
    assert ask("--nodes=1 --partition=h100", "exit 3", nodes=SMALL, run=True).facts["state"] == "FAILED"
