"""A Slurm of this machine alone: a controller and a daemon for each node, on ports of the loopback.

After Slurm's documentation, "Slurm Programmer's Guide": several daemons run on one host where each node has a port of
its own. It needs root, and no authentication: the controller listens on the loopback only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMANDS = ("slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo", "squeue")
START_LIMIT = 60
"""[s] daemons that have not registered by then never will."""

CONFIGURATION = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoInAddrAny
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu,npu,hpu
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A node, and its devices as (name, type, number)."""

    name: str
    devices: tuple[tuple[str, str, int], ...]


def is_there() -> bool:
    """Whether daemons can be started here."""
    return os.geteuid() == 0 and all(map(shutil.which, COMMANDS))


@contextmanager
def controller(folder: Path, machines: Sequence[Machine], *, running: bool = True) -> Iterator[dict[str, str]]:
    """Give the environment in which Slurm's commands speak to a cluster of `machines`.

    Args:
        folder: for its files.
        machines: its nodes.
        running: whether they run; else they can be asked about, as by ``sbatch --test-only``, and no more.
    """
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    _configure(folder, machines, running=running)
    with ExitStack() as stack:
        stack.enter_context(_daemon(["slurmctld", "-c", "-D"], environment))
        if running:
            for machine in machines:
                stack.enter_context(_daemon(["slurmd", "-D", "-N", machine.name], environment))
        _await(environment, len(machines) if running else 0, folder)
        try:
            yield environment
        finally:
            _empty(environment)


def _configure(folder: Path, machines: Sequence[Machine], *, running: bool) -> None:
    (folder / "state").mkdir(parents=True)
    ports = _free_ports(len(machines) + 1)
    host = socket.gethostname()
    nodes, devices = [], []
    if not running:
        nodes += ["SuspendProgram=/bin/true", "ResumeProgram=/bin/true", "SuspendTime=600"]
    for machine, port in zip(machines, ports[1:], strict=True):
        kinds = ",".join(f"{name}:{kind}:{count}" for name, kind, count in machine.devices)
        state = "UNKNOWN" if running else "CLOUD"
        nodes.append(
            f"NodeName={machine.name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=4000"
            f" Gres={kinds} State={state}"
        )
        first = 0
        for name, kind, count in machine.devices:
            line = f"NodeName={machine.name} Name={name} Type={kind} Count={count}"
            if running:
                files = [folder / f"device{index}" for index in range(first, first + count)]
                for file in files:
                    file.touch()
                line += f" File={folder}/device[{first}-{first + count - 1}]"
            devices.append(line)
            first += count
    text = CONFIGURATION.format(host=host, port=ports[0], folder=folder, nodes="\n".join(nodes))
    (folder / "slurm.conf").write_text(text, encoding="utf-8")
    (folder / "gres.conf").write_text("".join(f"{line}\n" for line in devices), encoding="utf-8")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


@contextmanager
def _daemon(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _empty(environment: dict[str, str]) -> None:
    """Cancel all jobs, and wait until none is left, whose processes would outlive the daemons."""
    end = time.monotonic() + START_LIMIT
    while time.monotonic() < end:
        subprocess.run(["scancel", "--user=root"], env=environment, timeout=20, capture_output=True, check=True)
        done = subprocess.run(
            ["squeue", "--noheader"], env=environment, timeout=20, capture_output=True, text=True, check=True
        )
        if not done.stdout.strip():
            return
        time.sleep(0.3)


def _await(environment: dict[str, str], idle: int, folder: Path) -> None:
    """Wait until the controller answers and so many nodes are idle.

    Raises:
        TimeoutError: they are not in time; with what the daemons wrote.
    """
    end = time.monotonic() + START_LIMIT
    while time.monotonic() < end:
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                ["sinfo", "--noheader", "--Node", "--format=%T"],
                env=environment,
                capture_output=True,
                text=True,
                timeout=10,
                check=False,
            )
            if done.returncode == 0 and done.stdout.split().count("idle") >= idle:
                return
        time.sleep(0.3)
    raise TimeoutError("\n".join(log.read_text(errors="replace")[-2000:] for log in folder.glob("*.log")))
