"""Slurm by its own words: `sbatch --test-only` at a controller of the nodes asked for, or a real run on loopback.

A request: `text` (the batch script), `argv` (options beside it), `arguments` (of the script), `files` (name: text; laid
beside the script, executable), and `nodes` ([{"name": "h100-[1-2]", "cpus": 96, "gpus": "h100:8", "memory": 1000000,
"features": "ib", "partition": "main"}, ...]; all but the name optional, several kinds of GPUs by commas). With `run`
the script is run: every node is a slurmd on loopback, and facts have what it printed. Memory is in MB.

Nodes that are only asked about are CLOUD ones, which a controller takes for usable without having seen them.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import typing
from pathlib import Path

PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
if missing := [
    name for name in ("slurmctld", "slurmd", "sbatch", "scontrol", "setpriv") if not shutil.which(name, path=PATH)
]:
    raise ImportError(f"not installed: {', '.join(missing)}")

UP_WITHIN = 30
"""Seconds that a controller may take to answer."""

RUN_WITHIN = 120
"""Seconds that a job may take, if the request has no `seconds`."""

Node = dict[str, typing.Any]


class RefusedError(Exception):
    """sbatch says no."""


REFUSALS = (RefusedError,)

CONF = """
ClusterName=planner
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoInAddrAny
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
GresTypes=gpu
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=-1
"""


def answer(request: dict[str, typing.Any]) -> dict[str, object]:
    """The nodes that Slurm would take, or what the job printed on them."""
    cluster = _cluster(request["nodes"], running=bool(request.get("run")))
    script = cluster.folder / "job.sh"
    for name, text in {"job.sh": request["text"], **request.get("files", {})}.items():
        path = cluster.folder / name
        path.write_text(text.replace("{folder}", str(cluster.folder)), encoding="utf-8")
        path.chmod(0o755)
    if request.get("run"):
        return _run(cluster, script, request)
    tried = cluster.call("sbatch", "--test-only", *request.get("argv", []), str(script), *request.get("arguments", []))
    if tried.returncode:
        raise RefusedError(f"sbatch ended with {tried.returncode}: {tried.stderr.strip()}")
    return {"says": tried.stderr.strip(), "nodes": re.findall(r"processors on (?:nodes )?(\S+)", tried.stderr)}


def _run(cluster: Cluster, script: Path, request: dict[str, typing.Any]) -> dict[str, object]:
    printed = cluster.folder / "printed"
    printed.unlink(missing_ok=True)
    options = [f"--output={printed}", *request.get("argv", [])]
    words = [*options, str(script), *request.get("arguments", [])]
    submitted = cluster.call("sbatch", "--parsable", *words, cwd=cluster.folder)
    if submitted.returncode:
        raise RefusedError(f"sbatch ended with {submitted.returncode}: {submitted.stderr.strip()}")
    job = submitted.stdout.strip().partition(";")[0]
    until = time.monotonic() + request.get("seconds", RUN_WITHIN)
    while time.monotonic() < until:
        state = _state(cluster, job)
        if state not in {"PENDING", "CONFIGURING", "RUNNING", "COMPLETING"}:
            return {"state": state, "printed": printed.read_text(encoding="utf-8") if printed.exists() else ""}
        time.sleep(0.2)
    cluster.call("scancel", job)
    raise TimeoutError(f"the job is still {state}; the controller says: {cluster.log()[-2000:]}")


def _state(cluster: Cluster, job: str) -> str:
    """Of the first component, whose script is the job's."""
    shown = cluster.call("scontrol", "-o", "show", "job", job).stdout
    states = re.findall(r"JobState=(\S+)", shown)
    return states[0] if states else "UNKNOWN"


class Cluster:
    """A controller, and where jobs are to run, a daemon a node; all on loopback, and all gone with this process."""

    def __init__(self, nodes: list[Node], *, running: bool) -> None:
        """Starts it."""
        self.folder = Path(tempfile.mkdtemp(prefix="planner-slurm-"))
        (self.folder / "state").mkdir()
        self.daemons: list[subprocess.Popen[bytes]] = []
        names = [name for node in nodes for name in _expand(node["name"])]
        ports = dict(zip(names, _free_ports(len(names)), strict=True)) if running else {}
        (self.folder / "gres.conf").write_text("".join(self._gres(node) for node in nodes), encoding="utf-8")
        lines = [_node(node, name, ports.get(name)) for node in nodes for name in _expand(node["name"])]
        head = CONF.format(host=socket.gethostname(), port=_free_ports(1)[0], folder=self.folder)
        (self.folder / "slurm.conf").write_text("\n".join([head, *lines, *_partitions(nodes)]) + "\n", encoding="utf-8")
        try:
            self._start(names if running else [])
        except BaseException:
            self.stop()
            raise

    def _gres(self, node: Node) -> str:
        """The GPUs of a node in gres.conf: a slurmd counts files, so that they have to be there."""
        lines, first = "", 0
        for kind, count in _gpus(node):
            for number in range(first, first + count):
                (self.folder / f"gpu{number}").touch()
            files = f"{self.folder}/gpu[{first}-{first + count - 1}]"
            lines += f"NodeName={node['name']} Name=gpu {f'Type={kind} ' if kind else ''}File={files}\n"
            first += count
        return lines

    def _start(self, names: list[str]) -> None:
        self._daemon("slurmctld", "-c", "-D")
        for name in names:
            self._daemon("slurmd", "-D", "-N", name)
        until = time.monotonic() + UP_WITHIN
        while time.monotonic() < until:
            shown = self.call("sinfo", "--noheader", "--Node", "--format=%N %t")
            states = dict(line.split() for line in shown.stdout.splitlines() if len(line.split()) == 2)
            if shown.returncode == 0 and all(states.get(name) == "idle" for name in names):
                return
            if any(daemon.poll() is not None for daemon in self.daemons):
                break
            time.sleep(0.2)
        raise OSError(f"Slurm does not come up: {self.log()[-2000:]}")

    def _daemon(self, *command: str) -> None:
        """Starts one that dies with this process, however that ends."""
        bound = ["setpriv", "--pdeathsig", "KILL", *command]
        with (self.folder / f"{command[0]}.out").open("ab") as log:
            daemon = subprocess.Popen(bound, env=self._environment(), stdout=log, stderr=log, start_new_session=True)
        self.daemons.append(daemon)

    def _environment(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH"))}
        return inherited | {"PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def call(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Calls a command of Slurm's at this cluster."""
        return subprocess.run(
            command, env=self._environment(), cwd=cwd, capture_output=True, text=True, check=False, timeout=60
        )

    def log(self) -> str:
        """What the daemons say."""
        return "".join(
            path.read_text(errors="replace") for path in [*self.folder.glob("*.log"), *self.folder.glob("*.out")]
        )

    def stop(self) -> None:
        """Ends the daemons, each by its id, and removes their files."""
        for daemon in self.daemons:
            daemon.terminate()
        for daemon in self.daemons:
            _end(daemon)
        self.daemons = []
        shutil.rmtree(self.folder, ignore_errors=True)


def _end(daemon: subprocess.Popen[bytes]) -> None:
    try:
        daemon.wait(timeout=5)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


_CLUSTERS: dict[str, Cluster] = {}


def _cluster(nodes: list[Node], *, running: bool) -> Cluster:
    """The cluster of the request before, if it is the same one."""
    key = repr((nodes, running))
    if key not in _CLUSTERS:
        _stop_all()
        _CLUSTERS[key] = Cluster(nodes, running=running)
    return _CLUSTERS[key]


@atexit.register
def _stop_all() -> None:
    while _CLUSTERS:
        _CLUSTERS.popitem()[1].stop()


def _expand(name: str) -> list[str]:
    """The names of `h100-[1-3,7]`."""
    match = re.fullmatch(r"(.*)\[(.*)\](.*)", name)
    if match is None:
        return [name]
    found = []
    for part in match[2].split(","):
        first, _, last = part.partition("-")
        found += [
            f"{match[1]}{number:0{len(first)}d}{match[3]}" for number in range(int(first), int(last or first) + 1)
        ]
    return found


def _gpus(node: Node) -> list[tuple[str, int]]:
    """The kinds of GPUs of a node, empty if they have no name, and how many there are of each."""
    parts = (one.rpartition(":") for one in node["gpus"].split(",")) if "gpus" in node else ()
    return [(kind, int(count)) for kind, _, count in parts]


def _node(node: Node, name: str, port: int | None) -> str:
    fields = {"NodeName": name, "CPUs": node.get("cpus", 64), "RealMemory": node.get("memory", 1_000_000)}
    if "gpus" in node:
        fields["Gres"] = ",".join(f"gpu:{one}" for one in node["gpus"].split(","))
    if "features" in node:
        fields["Feature"] = node["features"]
    if port is None:
        fields["State"] = "CLOUD"
    else:
        fields |= {"NodeHostname": socket.gethostname(), "NodeAddr": "127.0.0.1", "Port": port, "State": "UNKNOWN"}
    return " ".join(f"{key}={value}" for key, value in fields.items())


def _partitions(nodes: list[Node]) -> list[str]:
    of: dict[str, list[str]] = {}
    for node in nodes:
        of.setdefault(node.get("partition", "main"), []).append(node["name"])
    return [
        f"PartitionName={name} Nodes={','.join(of[name])} Default={'NO' if place else 'YES'} MaxTime=7-0 State=UP"
        for place, name in enumerate(of)
    ]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
