"""What the tools of this machine print about its devices."""

from __future__ import annotations

import shutil
import subprocess

from planner.errors import SpecError

TOOLS: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("nvidia-smi", "topo", "-m"), ("nvidia-smi", "-q", "-x")),
    (("amd-smi", "static", "--json"), ("amd-smi", "topology", "--json")),
    (("rocm-smi", "--showtopo", "--showproductname"),),
)
"""Commands of each tool; those of the first tool that is there are run."""
TIME_LIMIT = 60
"""[s] for a command; a driver that hangs answers never."""


def local_dumps() -> list[tuple[str, str]]:
    """Return (text, command) of what each command of the machine's tool prints.

    Raises:
        SpecError: no tool is there, or it fails.

    """
    for commands in TOOLS:
        program = shutil.which(commands[0][0])
        if program:
            return [(_output(program, command), " ".join(command)) for command in commands]
    names = ", ".join(commands[0][0] for commands in TOOLS)
    raise SpecError.of(
        "--local", f"this machine has none of {names}; run it on one with devices, or name files with their output"
    )


def _output(program: str, command: tuple[str, ...]) -> str:
    name = " ".join(command)
    try:
        done = subprocess.run(  # noqa: S603 the arguments are those of TOOLS
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SpecError.of(
            "--local", f"`{name}` gave no answer in {TIME_LIMIT} s; run it by itself to see why"
        ) from None
    except OSError as error:
        raise SpecError.of("--local", f"`{name}` cannot be run ({error.strerror})") from None
    if done.returncode:
        raise SpecError.of("--local", f"`{name}` failed with code {done.returncode}; run it by itself to see why")
    return done.stdout
