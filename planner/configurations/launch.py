"""How many ranks launchers start, and which variables they are given: Slurm's batch lines, srun, torchrun."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from planner.configurations.shell import Script, Text
from planner.domain.configuration import Setting, Spot

VARIABLES = re.compile(
    r"(CUDA_DEVICE_MAX_CONNECTIONS|CUDA_GRAPHS_USE_NODE_PRIORITY|PYTORCH_(CUDA_|HIP_)?ALLOC_CONF|OMP_NUM_THREADS|"
    r"TORCH_NCCL_[A-Z_]+|NCCL_(?!.*(TOKEN|KEY|SECRET|PASS))[A-Z0-9_]+|NVTE_[A-Z0-9_]+|UCX_[A-Z_]+|"
    r"GPUS_PER_NODE|NPROC_PER_NODE|NNODES|NUM_NODES|WORLD_SIZE)\Z"
)
"""Names of variables that matter to how a run goes; no others are kept, for they may be secrets."""
_SBATCH = re.compile(r"^#SBATCH\s+(.*)$", re.MULTILINE)
_OPTION = re.compile(r"(?:--([a-z-]+)|-([NnG]))(?:[=\s]\s*|(?<=-[NnG]))([^\s#]+)")
_SHORT = {"N": "nodes", "n": "ntasks", "G": "gpus"}
_TORCHRUN = {"--nnodes": "nnodes", "--nproc-per-node": "nproc", "--nproc_per_node": "nproc"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """What a batch script asks of Slurm; None where it does not say."""

    nodes: int | None = None
    tasks: int | None = None
    """All nodes together."""
    tasks_per_node: int | None = None
    gpus_per_node: int | None = None
    line: int = 0

    @property
    def world(self) -> int | None:
        """Tasks, where they are known."""
        if self.tasks is not None:
            return self.tasks
        return self.nodes * self.tasks_per_node if self.nodes and self.tasks_per_node else None

    @property
    def variables(self) -> dict[str, str]:
        """What Slurm sets for the script."""
        known = {
            "SLURM_NNODES": self.nodes,
            "SLURM_JOB_NUM_NODES": self.nodes,
            "SLURM_NTASKS": self.world,
            "SLURM_NPROCS": self.world,
            "SLURM_NTASKS_PER_NODE": self.tasks_per_node,
            "SLURM_GPUS_PER_NODE": self.gpus_per_node,
            "SLURM_GPUS_ON_NODE": self.gpus_per_node,
        }
        return {name: str(value) for name, value in known.items() if value is not None}


def allocation(text: str) -> Allocation:
    """Return what the ``#SBATCH`` lines of a script say."""
    found: dict[str, int] = {}
    line = 0
    for match in _SBATCH.finditer(text):
        for option in _OPTION.finditer(match[1]):
            name = option[1] or _SHORT[option[2]]
            number = re.search(r"(?:^|:)([0-9]{1,7})$", option[3])
            if number:
                found[name] = int(number[1])
                line = line or text.count("\n", 0, match.start()) + 1
    return Allocation(
        nodes=found.get("nodes"),
        tasks=found.get("ntasks"),
        tasks_per_node=found.get("ntasks-per-node"),
        gpus_per_node=found.get("gpus-per-node", found.get("gres")),
        line=line,
    )


def ranks(words: Sequence[Text], given: Allocation) -> tuple[int, tuple[int, int]] | None:
    """Return (ranks, where they are said) of a launch command; None where that is not told.

    Args:
        words: of the command up to the program, ``srun``, ``torchrun`` or ``python -m torch.distributed.launch`` first.
        given: what Slurm allocates.
    """
    options = dict(_options(words))
    chars = [word.chars for word in words]
    if any(word.rpartition("/")[2] == "torchrun" for word in chars) or "torch.distributed" in " ".join(chars):
        nodes, nodes_at = options.get("nnodes", (1, words[0].spot))
        processes, at = options.get("nproc", (1, nodes_at))
        return (nodes * processes, at) if nodes and processes else None
    if chars and chars[0].rpartition("/")[2] == "srun":
        if tasks := options.get("ntasks"):
            return tasks if tasks[0] else None
        nodes, at = options.get("nodes", (given.nodes or 0, words[0].spot))
        each, _ = options.get("ntasks-per-node", (given.tasks_per_node or 0, at))
        total = nodes * each or given.tasks or 0
        return (total, at) if total else None
    return None


def _options(words: Sequence[Text]) -> Iterable[tuple[str, tuple[int, tuple[int, int]]]]:
    """Yield (option, (number, where)); the number is 0 where it is not known."""
    for word, after in zip_longest(words, words[1:], fillvalue=Text()):
        key, equals, value = word.chars.partition("=")
        name = _TORCHRUN.get(key) or (key[2:] if key in {"--nodes", "--ntasks", "--ntasks-per-node"} else None)
        name = name or (_SHORT.get(key[1:]) if len(key) == 2 and key[:1] == "-" else None)
        if name:
            written = value if equals else after.chars
            last = written.rpartition(":")[2]
            yield name, (int(last) if re.fullmatch(r"[0-9]{1,7}", last) else 0, word.spot)


def world(words: Sequence[Text], given: Allocation, script: Script, name: str) -> Setting | None:
    """Return the number of ranks, by the launcher, by Slurm or by the script's own variable.

    Args:
        words: of the command up to the program.
        given: what Slurm allocates.
        script: in which the command stands.
        name: of its file.
    """
    found = ranks(words, given)
    if found is None:
        outer = (ranks(command.words, given) for command in script.commands if command.words[0].chars == "srun")
        found = next((one for one in outer if one), None)
    if found is None and not any("torchrun" in word.chars for word in words) and given.world:
        found = given.world, (given.line, 1)
    value = script.variables.values.get("WORLD_SIZE")
    if found is None and value is not None and re.fullmatch(r"[0-9]{1,7}", value.chars):
        found = int(value.chars), value.spot
    if found is None or found[0] < 1:
        return None
    return Setting(name="world size", value=found[0], spot=Spot(name, *found[1]))


def environment(variables: Mapping[str, Text], name: str) -> dict[str, Setting]:
    """Return those variables that matter to how a run goes and are known, as settings of the file `name`."""
    found = {key: text for key, text in variables.items() if VARIABLES.match(key) and text.is_known}
    return {key: Setting(name=key, value=text.chars, spot=Spot(name, *text.spot)) for key, text in found.items()}
