"""A shell script that starts the ranks of one node by torchrun; it is run on every node."""

from __future__ import annotations

from planner.export.base import Launch, Launcher, Part
from planner.export.machines import runs
from planner.export.scripts import each_node, exports, module_path, quoted, torchrun, unlike_workers, wrapped

NAME = "launch.sh"
HERE = '"$here"'
"""The folder with the files of the program: that of the script."""
NODE = (
    "--nnodes {count}",
    '--node-rank "$NODE_RANK"',
    '--nproc-per-node "$NPROC"',
    '--master-addr "$MASTER_ADDR"',
    '--master-port "${{MASTER_PORT:-29500}}"',
)

ONE_NODE = """\
#!/usr/bin/env bash
# Starts {ranks}, each on the device that `planner export --to rank-table` names. Run it in the folder of the program;
# arguments of your own are passed on: {name} [ARGUMENT ...]. MASTER_PORT is the port to meet at, by default 29500.
set -euo pipefail

NODE_RANK=0
MASTER_ADDR=127.0.0.1
"""

NODES = """\
#!/usr/bin/env bash
# Starts {ranks} on {count} nodes, each where `planner export --to rank-table` has it. Run it on every node, in
# the folder of the program; arguments of your own are passed on:
#
#     {name} [--node-rank N] [ARGUMENT ...]
#
# N, or else the variable NODE_RANK, tells which of NODES this is, counted from 0; without either the name of this host
# is looked up there. The nodes meet at the first of them, or at MASTER_ADDR; at port 29500, or at MASTER_PORT.
set -euo pipefail

# In the order of their ranks: put the names of your hosts here.
NODES=(
{nodes}
)

if [ "${{1-}}" = --node-rank ]; then
    NODE_RANK=${{2:?is missing after --node-rank}}
    shift 2
fi
if [ -z "${{NODE_RANK-}}" ]; then
    host=$(uname -n)
    for rank in "${{!NODES[@]}}"; do
        case ${{NODES[rank]}} in "$host" | "${{host%%.*}}") NODE_RANK=$rank ;; esac
    done
fi
case ${{NODE_RANK-}} in
'' | *[!0-9]*)
    echo "$0: this host is not in NODES; put it there, or set NODE_RANK to its place, counted from 0" >&2
    exit 2
    ;;
esac
if [ "$NODE_RANK" -ge {count} ]; then
    echo "$0: NODE_RANK is $NODE_RANK, but the last of the {count} nodes is {last}" >&2
    exit 2
fi
MASTER_ADDR=${{MASTER_ADDR:-${{NODES[0]}}}}
"""


def _parts(launch: Launch) -> tuple[Part, ...]:
    """Return the script: which node this is, what is its own, and torchrun."""
    found, program = runs(launch), launch.program
    unlike = len(found) > 1
    lines = [
        *(["", "# What differs from node to node."] if unlike else []),
        *each_node(found),
        *unlike_workers(found),
        "",
        "# What all processes need.",
        'here=$(CDPATH="" cd -- "$(dirname -- "$0")" && pwd)',
        *module_path(program, HERE),
        *exports(program.environment),
        "",
        *torchrun(program, [option.format(count=len(launch.nodes)) for option in NODE], HERE),
    ]
    return (Part(name=NAME, text=_head(launch) + "\n".join(lines) + "\n", executable=True),)


def _head(launch: Launch) -> str:
    count, last = len(launch.nodes), launch.nodes[-1]
    ranks = f"ranks 0 to {last.first_rank + len(last.devices) - 1}"
    if count == 1:
        return ONE_NODE.format(ranks=ranks, name=NAME)
    nodes = "\n".join(wrapped((quoted(node.name) for node in launch.nodes), "    "))
    return NODES.format(ranks=ranks, count=count, last=count - 1, nodes=nodes, name=NAME)


TORCHRUN = Launcher(name="torchrun", summary="a script that starts the ranks of one node by torchrun", parts=_parts)
