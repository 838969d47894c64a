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
_NEXT = {"hetjob", "packjob"}
"""Lines that begin the next component of a heterogeneous job."""
_TYPED = {
    "gres": re.compile(r"[a-z]+:([A-Za-z][\w.-]*):[0-9]{1,7}"),
    "gpus-per-node": re.compile(r"([A-Za-z][\w.-]*):[0-9]{1,7}"),
}
"""Option -> how it says the type of the devices of a node."""
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
    kinds: tuple[tuple[str, int], ...] = ()
    """(type of devices, nodes) of every component; nothing where one does not say."""
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
    """Return what the ``#SBATCH`` lines of a script say, the components of a heterogeneous job together."""
    components: list[list[tuple[int, str]]] = [[]]
    for match in _SBATCH.finditer(text):
        if match[1].strip() in _NEXT:
            components.append([])
        components[-1].append((text.count("\n", 0, match.start()) + 1, match[1]))
    first, *others = map(_component, components)
    if not others:
        return first
    every = [first, *others]
    kinds = tuple(kind for one in every for kind in one.kinds)
    return Allocation(
        nodes=_sum([one.nodes for one in every]),
        tasks=_sum([one.world for one in every]),
        tasks_per_node=_same([one.tasks_per_node for one in every]),
        gpus_per_node=_same([one.gpus_per_node for one in every]),
        kinds=kinds if len(kinds) == len(every) else (),
        line=first.line,
    )


def _component(lines: Iterable[tuple[int, str]]) -> Allocation:
    """Return what (number, options) of lines say."""
    found: dict[str, int] = {}
    kind, line = "", 0
    for number, options in lines:
        for option in _OPTION.finditer(options):
            name = option[1] or _SHORT[option[2]]
            amount = re.search(r"(?:^|:)([0-9]{1,7})$", option[3])
            if amount:
                found[name] = int(amount[1])
                line = line or number
            if name in _TYPED and (typed := _TYPED[name].fullmatch(option[3])):
                kind = typed[1]
    return Allocation(
        nodes=found.get("nodes"),
        tasks=found.get("ntasks"),
        tasks_per_node=found.get("ntasks-per-node"),
        gpus_per_node=found.get("gpus-per-node", found.get("gres")),
        kinds=((kind, found["nodes"]),) if kind and found.get("nodes") else (),
        line=line,
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _same(numbers: Sequence[int | None]) -> int | None:
    return numbers[0] if len(set(numbers)) == 1 else None


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


def per_node(words: Sequence[Text], given: Allocation) -> int:
    """Return the ranks that a launch command starts on each node; 0 where that is not told."""
    options = dict(_options(words))
    if any(word.chars.rpartition("/")[2] == "torchrun" for word in words):
        return options.get("nproc", (1, ()))[0]
    return options.get("ntasks-per-node", (given.tasks_per_node or 0, ()))[0]


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

    It is not told where ``torchrun`` gets the number of nodes from the environment, and one is only the default.

    Args:
        words: of the command up to the program.
        given: what Slurm allocates.
        script: in which the command stands.
        name: of its file.
    """
    if _has_open_nodes(words, script):
        return None
    found = ranks(words, given)
    starts_several = any("torchrun" in word.chars or "torch.distributed" in word.chars for word in words)
    if found is None and not starts_several:
        outer = (ranks(command.words, given) for command in script.commands if command.words[0].chars == "srun")
        found = next((one for one in outer if one), (given.world, (given.line, 1)) if given.world else None)
    value = script.variables.values.get("WORLD_SIZE")
    if found is None and value is not None and re.fullmatch(r"[0-9]{1,7}", value.chars):
        found = int(value.chars), value.spot
    if found is None or found[0] < 1:
        return None
    return Setting(name="world size", value=found[0], spot=Spot(name, *found[1]))


def _has_open_nodes(words: Sequence[Text], script: Script) -> bool:
    """Return whether the number of nodes is a default of 1, as in ``--nnodes ${NNODES:-1}``."""
    for word, after in zip_longest(words, words[1:], fillvalue=Text()):
        if word.chars.partition("=")[0] == "--nnodes":
            value = word[len("--nnodes=") :] if "=" in word.chars else after
            return value.chars == "1" and value.spot in script.variables.ones
    return False


def environment(variables: Mapping[str, Text], name: str) -> dict[str, Setting]:
    """Return those variables that matter to how a run goes and are known, as settings of the file `name`."""
    found = {key: text for key, text in variables.items() if VARIABLES.match(key) and text.is_known}
    return {key: Setting(name=key, value=text.chars, spot=Spot(name, *text.spot)) for key, text in found.items()}
