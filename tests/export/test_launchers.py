"""Launchers write what they wrote before, scripts that bash can read, and refuse what they cannot start."""

from __future__ import annotations

import ast
import dataclasses
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import builders
import transcripts
from export import launches
from planner.errors import CannotExpress
from planner.export import LAUNCHERS, Launch, Launcher, Program
from planner.export.machines import runs
from planner.loader import load

GOLDEN = Path(__file__).parent / "golden"
CANNOT = {("jobset", "boxes"), *((name, plan) for name in ("trainjob", "skypilot") for plan in ("unlike", "boxes"))}
"""(launcher, plan) that is refused."""
CASES = [pytest.param(one, name, id=f"{one.name}-{name}") for one in LAUNCHERS for name in launches.files()]


@pytest.mark.parametrize(("launcher", "name"), CASES)
def test_a_launch_is_written_as_before(launcher: Launcher, name: str, update_golden: bool) -> None:
    """Of each plan; what is refused is refused with the reason in the file."""
    path = GOLDEN / f"{launcher.name}-{name}.txt"
    try:
        got = launches.text(launcher, name)
    except CannotExpress as refused:
        got = "".join(f"refused: {reason}\n" for reason in refused.reasons)
    if update_golden:
        transcripts.rewrite(path, got)
    assert path.exists(), f"{path} is missing: --update-golden writes it"
    assert got == path.read_text(encoding="utf-8")
    assert got.startswith("refused: ") == ((launcher.name, name) in CANNOT)


@pytest.mark.parametrize(("launcher", "name"), CASES)
def test_bash_reads_every_script(launcher: Launcher, name: str) -> None:
    """Whole, without running it; and shellcheck, where there is one, finds nothing but quotes meant as they are."""
    if (launcher.name, name) in CANNOT:
        return
    scripts = [part.text for part in launcher.parts(launches.launch(name)) if part.text.startswith("#!")]
    for script in scripts:
        judged = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
        assert (judged.returncode, judged.stderr) == (0, "")
        if shutil.which("shellcheck"):
            judged = subprocess.run(
                ["shellcheck", "--exclude=SC2016", "-"], input=script, capture_output=True, text=True, check=False
            )
            assert judged.stdout == ""


EVIL = "x\ntouch ran\n'''\"\"\"$(touch ran)`touch ran`\\\n#SBATCH --evil"
"""A name from a file that ends texts, begins lines and asks for a command."""
STUBS = {
    "torchrun": 'printf "%s\\0" "$NOTE" "$@" >said',
    "scontrol": "echo host",
    "srun": 'while [ "${1#-}" != "$1" ]; do shift; done; exec "$@"',
}
SURROUNDINGS = {
    "NODE_RANK": "0",
    "JOB_COMPLETION_INDEX": "0",
    "MASTER_ADDR": "host",
    "NOTE": EVIL,
    "SKYPILOT_NODE_IPS": "host",
    "SKYPILOT_NODE_RANK": "0",
    "SKYPILOT_NUM_NODES": "2",
    "SLURM_JOB_ID": "1",
    "SLURM_JOB_NODELIST": "host",
    "SLURM_NNODES": "2",
    "SLURM_NODEID": "0",
    "SLURM_SUBMIT_DIR": ".",
}


def evil_launch() -> Launch:
    """Return a launch on nodes, and of a program, with such names."""
    group = dataclasses.replace(builders.group(EVIL, nodes=2), device=builders.device(EVIL))
    other = dataclasses.replace(builders.group("other"), device=builders.device(f"{EVIL}2"))
    plan = launches.plan(launches.stage(EVIL, 0, 3, tp=4), dp=2)
    program = Program(command=("train.py", EVIL), environment=(("NOTE", EVIL),))
    return launches.of(launches.plan_file(plan, builders.cluster(group, other)), program)


def shell(launcher: Launcher, text: str) -> str:
    """Return the shell script of a launch, in whatever it stands."""
    if text.startswith("#!"):
        return text
    document = load(text, launcher.name).value
    if launcher.name == "skypilot":
        return str(document["run"])
    container = document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    return str(container["args"][0]).replace("$$", "$")


@pytest.mark.parametrize(
    "launcher", [pytest.param(one, id=one.name) for one in LAUNCHERS if one.name not in {"trainjob", "ray"}]
)
def test_names_are_never_run(launcher: Launcher, tmp_path: Path) -> None:
    """What comes from a file reaches the program as it is, and no shell takes it for a command."""
    for name, line in STUBS.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{line}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    text = launcher.parts(evil_launch())[0].text
    assert "\n#SBATCH --evil" not in text.partition("set -eu")[0]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", shell(launcher, text), "bash"],
        cwd=tmp_path,
        env={**SURROUNDINGS, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    note, *words, _ = (tmp_path / "said").read_text(encoding="utf-8").split("\0")
    assert (note, words[-2:]) == (EVIL, ["train.py", EVIL])
    assert not (tmp_path / "ran").exists()


def test_names_are_data_of_a_job_for_ray() -> None:
    """Its text is Python that holds them as literals and in no comment."""
    job = next(one for one in LAUNCHERS if one.name == "ray").parts(evil_launch())[0].text
    found = {
        node.targets[0].id: node.value
        for node in ast.parse(job).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert ast.literal_eval(found["COMMAND"]) == ["train.py", EVIL]
    assert ast.literal_eval(found["ENVIRONMENT"]) == {"NOTE": EVIL}


@pytest.mark.parametrize(
    ("vendor", "variable"),
    [
        ("", "CUDA_VISIBLE_DEVICES"),
        ("nvidia", "CUDA_VISIBLE_DEVICES"),
        ("amd", "HIP_VISIBLE_DEVICES"),
        ("huawei", "ASCEND_RT_VISIBLE_DEVICES"),
        ("intel", "HABANA_VISIBLE_MODULES"),
    ],
)
def test_devices_are_chosen_as_their_vendor_has_it(vendor: str, variable: str) -> None:
    """The last two of the four devices of a box, whose first two are another kind."""
    boxes = tuple(
        dataclasses.replace(group, device=dataclasses.replace(group.device, vendor=vendor))
        for group in launches.LAB.groups
    )
    plan = launches.plan(launches.stage("rtx4090", 0, 3, tp=2), dp=1)
    (run,) = runs(launches.of(launches.plan_file(plan, dataclasses.replace(launches.LAB, groups=boxes))))
    assert run.visible == (2, 3)
    assert [(group.name, count) for group, count in run.asked] == [("rtx3080", 2), ("rtx4090", 2)]
    assert dict(run.environment)[variable] == "2,3"
    assert ("CUDA_DEVICE_ORDER" in dict(run.environment)) == (vendor in {"", "nvidia"})


def test_slurm_has_so_many_components_and_no_more() -> None:
    """Nodes of two kinds by turns: 128 can be written, 129 cannot."""
    slurm = next(one for one in LAUNCHERS if one.name == "slurm")
    start = launches.launch("unlike")
    kinds = [start.nodes[0], start.nodes[-1]]
    nodes = tuple(dataclasses.replace(kinds[at % 2], name=f"node-{at}") for at in range(129))
    assert slurm.parts(dataclasses.replace(start, nodes=nodes[:128]))[0].text.count("#SBATCH hetjob\n") == 127
    with pytest.raises(CannotExpress, match=r"change between kinds of nodes 128 times; a job has 128 parts at most"):
        slurm.parts(dataclasses.replace(start, nodes=nodes))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "this host is not in NODES; put it there, or set NODE_RANK"),
        (["--node-rank", "two"], "this host is not in NODES"),
        (["--node-rank", "4"], "NODE_RANK is 4, but the last of the 4 nodes is 3"),
        (["--node-rank"], "is missing after --node-rank"),
    ],
)
def test_a_node_that_has_no_place_says_so(words: list[str], told: str, tmp_path: Path) -> None:
    """In a sentence, and starts nothing."""
    launches.write("torchrun", launches.launch("unlike"), tmp_path)
    command = ["bash", str(tmp_path / "launch.sh"), *words]
    kept = {name: value for name, value in os.environ.items() if name != "NODE_RANK"}
    done = subprocess.run(command, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert told in done.stderr
