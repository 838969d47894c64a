"""What every test may ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import transcripts

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that rewrites expected outputs; the difference is for a person to review."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected outputs in place")


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether expected outputs are rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture
def golden(update_golden: bool, tmp_path: Path) -> Callable[[str, str], None]:
    """Return ``golden(name, command)``: exit code and output must be those of ``tests/golden/NAME.txt``."""
    directory = transcripts.scratch(tmp_path)

    def compare(name: str, command: str) -> None:
        path = GOLDEN / f"{name}.txt"
        got = transcripts.transcript(command, directory)
        if update_golden:
            transcripts.rewrite(path, got)
            return
        assert path.exists(), f"{path} is missing: --update-golden writes it"
        expected = path.read_text(encoding="utf-8")
        assert transcripts.steady(got) == transcripts.steady(expected), f"{command}: not as in {path}"

    return compare
