"""Asks a framework, in its own environment, what it makes of a configuration."""

from __future__ import annotations

import json
import os
import select
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = Path(__file__).parent / "drivers" / "shared" / "serve.py"

PATIENCE = 300
"""Seconds that an answer may take: the first one waits for the imports of the framework."""

OWN = ("PYTHONPATH", "PYTHONHOME", "PYTHONWARNINGS", "VIRTUAL_ENV")
"""Variables of this Python that the other one must not see."""


class BrokenError(Exception):
    """A driver or a framework broke: it has judged nothing."""


@dataclass(frozen=True)
class Answer:
    """What a framework says of one configuration."""

    accepted: bool
    message: str
    """Why not, in the framework's own words; empty if accepted."""
    facts: dict[str, Any]
    """What the framework makes of it; its driver says which. Empty if not accepted."""


class Validator:
    """One process of a framework, to which any number of configurations are put, one after the other."""

    def __init__(self, name: str, environment: Path, folder: Path) -> None:
        """Starts it; `folder` is where it runs and where its log goes."""
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [environment / "bin" / "python", SERVER, name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=folder,
                env={key: value for key, value in os.environ.items() if key not in OWN},
            )

    def ask(self, **request: object) -> Answer:
        """Puts one configuration to it; the driver of the framework says what a request has.

        Raises:
            BrokenError: It did not answer, or broke over the request.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"id": 0, **request}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise BrokenError(self._last_words()) from error
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            raise BrokenError(self._last_words())
        answer = json.loads(line)
        if "error" in answer:
            raise BrokenError(answer["error"])
        return Answer(accepted=answer["accepted"], message=answer["message"], facts=answer["facts"])

    def close(self) -> None:
        """Ends the process, and with it what it started."""
        self.process.communicate()

    def _last_words(self) -> str:
        return f"no answer (exit code {self.process.poll()}):\n{self.log.read_text(errors='replace')[-4000:]}"
