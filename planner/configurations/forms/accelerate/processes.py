"""Rules of processes and machines."""

from __future__ import annotations

from collections.abc import Iterator

from planner.configurations.base import Complaint, Rule
from planner.configurations.forms.accelerate.keys import VERSION
from planner.configurations.forms.accelerate.values import (
    DEEPSPEED,
    count,
    is_sagemaker,
    kind,
    nearest_legal,
    world,
)
from planner.domain.configuration import NOTE, WARNING, Configuration

LAUNCH = f"accelerate {VERSION}, commands/launch.py"
PREPARE = f"accelerate {VERSION}, utils/launch.py"
_HOSTLESS = ("standard", "nossh")
"""Launchers of DeepSpeed that start the processes of their own machine only."""


def _machines(configuration: Configuration) -> int:
    return count(configuration, "num_machines") or 1


def _given(configuration: Configuration) -> Iterator[Complaint]:
    size = configuration.get("num_processes")
    if is_sagemaker(configuration) or kind(configuration) in ("NO", "XLA", ""):
        return
    if size is None or size == -1:
        message = "num_processes is missing: accelerate launch refuses to start without --num_processes"
        yield "num_processes", f"{message}; write the GPUs of all machines"


def _some(configuration: Configuration) -> Iterator[Complaint]:
    size = configuration.get("num_processes")
    if isinstance(size, int) and not isinstance(size, bool) and size < 1 and size != -1:
        yield "num_processes", f"num_processes should be at least 1, not {size}"


def _even(configuration: Configuration) -> Iterator[Complaint]:
    size, machines = world(configuration), _machines(configuration)
    if size and size % machines:
        effect = f"{size} processes do not divide over {machines} machines: each starts {size // machines}"
        lost = f"{size - size // machines * machines} are never started"
        yield "num_processes", f"{effect}, and {lost}; write {nearest_legal(size, machines)}"


def _rank(configuration: Configuration) -> Iterator[Complaint]:
    rank, machines = configuration.get("machine_rank"), _machines(configuration)
    if isinstance(rank, int) and not isinstance(rank, bool) and not 0 <= rank < machines:
        yield "machine_rank", f"machine_rank should be from 0 to {machines - 1}, not {rank}"


def _meeting(configuration: Configuration) -> Iterator[Complaint]:
    by_host = kind(configuration) == DEEPSPEED and _launcher(configuration) not in _HOSTLESS
    if _machines(configuration) < 2 or is_sagemaker(configuration) or by_host:
        return
    missing = [key for key in ("main_process_ip", "main_process_port") if configuration.get(key) is None]
    if "main_process_ip" in missing:
        message = "several machines need main_process_ip, else each waits for a host called None; write the first node"
        yield "num_machines", message
    elif missing:
        yield "num_machines", "main_process_port is not given: 29500 is taken, which must be free; write it"


def _order(configuration: Configuration) -> Iterator[Complaint]:
    if _machines(configuration) > 1 and configuration.get("rdzv_backend") == "c10d":
        message = "rdzv_backend c10d counts machines by their addresses, whatever machine_rank says; write static"
        yield "rdzv_backend", f"{message} where ranks must stay where they are planned"


def _launcher(configuration: Configuration) -> str:
    return str(configuration.get("deepspeed_config.deepspeed_multinode_launcher"))


def _hosts(configuration: Configuration) -> Iterator[Complaint]:
    if kind(configuration) != DEEPSPEED or _machines(configuration) < 2:
        return
    launcher = _launcher(configuration)
    if launcher not in _HOSTLESS and not configuration.get("deepspeed_config.deepspeed_hostfile"):
        message = f"launcher {launcher} over {_machines(configuration)} machines needs deepspeed_hostfile; write it"
        key = "deepspeed_config.deepspeed_multinode_launcher"
        yield (key if key in configuration else "num_machines"), f"{message}, or deepspeed_multinode_launcher: standard"


def _alone(configuration: Configuration) -> Iterator[Complaint]:
    size = world(configuration)
    if kind(configuration) == "NO" and size and size > 1:
        message = f"distributed_type NO starts one process, not {size}; write MULTI_GPU, FSDP or DEEPSPEED"
        yield "distributed_type", message


def _ids(configuration: Configuration) -> Iterator[Complaint]:
    ids, size = configuration.get("gpu_ids"), world(configuration)
    if ids is None or str(ids) == "all" or not size:
        return
    listed = [one for one in str(ids).split(",") if one.strip()]
    each = size // _machines(configuration)
    if len(listed) < each:
        yield "gpu_ids", f"gpu_ids names {len(listed)} GPUs for {each} processes a machine; name {each}, or write all"


RULES = (
    Rule(
        code="AC101",
        name="The number of processes is given",
        summary="num_processes is there, in the file or as --num_processes",
        why="accelerate launch raises a ValueError where file and command line leave it at -1.",
        source=f"{LAUNCH} _validate_launch_command",
        check=_given,
        severity=WARNING,
    ),
    Rule(
        code="AC102",
        name="Processes divide over machines",
        summary="num_processes % num_machines = 0",
        why="Each machine starts num_processes // num_machines, so that the rest is missing without a word.",
        source=f"{PREPARE} prepare_multi_gpu_env",
        check=_even,
        caught=False,
    ),
    Rule(
        code="AC103",
        name="The rank of the machine exists",
        summary="0 <= machine_rank < num_machines",
        why="torchrun refuses it, or the other machines wait for one that never comes.",
        source=f"{PREPARE} prepare_multi_gpu_env (node_rank)",
        check=_rank,
    ),
    Rule(
        code="AC104",
        name="Machines know where to meet",
        summary="num_machines > 1 => main_process_ip, main_process_port",
        why="The rendezvous is written as f'{main_process_ip}:{main_process_port}', None or not.",
        source=f"{PREPARE} prepare_multi_gpu_env",
        check=_meeting,
        caught=False,
    ),
    Rule(
        code="AC105",
        name="Machines are counted as they are planned",
        summary="num_machines > 1 => rdzv_backend static",
        why="The dynamic rendezvous of torchrun sorts nodes by address: a plan for unlike nodes would be misplaced.",
        source="pytorch torch/distributed/elastic/rendezvous/dynamic_rendezvous.py; pytorch/pytorch issue 137402",
        check=_order,
        severity=NOTE,
        caught=False,
    ),
    Rule(
        code="AC106",
        name="DeepSpeed's launcher has its hosts",
        summary="DEEPSPEED, num_machines > 1, launcher not standard or nossh => deepspeed_hostfile",
        why="The default launcher is pdsh, which is called with --hostfile None.",
        source=f"{PREPARE} prepare_deepspeed_cmd_env",
        check=_hosts,
    ),
    Rule(
        code="AC107",
        name="Several processes have a distributed type",
        summary="num_processes > 1 => distributed_type is not NO",
        why="accelerate launch starts one process with distributed_type NO.",
        source=f"{LAUNCH} simple_launcher",
        check=_alone,
        severity=WARNING,
        caught=False,
    ),
    Rule(
        code="AC108",
        name="There is a GPU for every process",
        summary="gpu_ids names at least num_processes / num_machines GPUs",
        why="Processes beyond the visible GPUs fail with an invalid device ordinal.",
        source=f"{LAUNCH} _validate_launch_command; {PREPARE} prepare_multi_gpu_env",
        check=_ids,
        caught=False,
    ),
    Rule(
        code="AC109",
        name="There are processes",
        summary="num_processes >= 1",
        why="torchrun cannot start fewer.",
        source=f"{PREPARE} prepare_multi_gpu_env (nproc_per_node)",
        check=_some,
    ),
)
