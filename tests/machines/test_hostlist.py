"""Short forms of node names."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.machines._hostlist import hostlist


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node7", ["node7"]),
        ("node[01-03,07]", ["node01", "node02", "node03", "node07"]),
        ("gpu[1-2,5],cpu7", ["gpu1", "gpu2", "gpu5", "cpu7"]),
        ("a[1-2]b[08-09]", ["a1b08", "a1b09", "a2b08", "a2b09"]),
        ("n[098-101]-ib", ["n098-ib", "n099-ib", "n100-ib", "n101-ib"]),
        ("10.140.71.103,10.140.79.152", ["10.140.71.103", "10.140.79.152"]),
        ("", []),
    ],
)
def test_names_are_expanded(text: str, names: list[str]) -> None:
    """Ranges keep leading zeros, and several of them multiply."""
    assert list(hostlist(text, "x")) == names


@pytest.mark.parametrize(
    "text", ["n[1-", "n]1[", "n[[1]]", "n[a-b]", "n[]", "n[2-1]", "n[1-9999999999]", "n[1-99999]" * 9]
)
def test_what_is_no_list_is_refused(text: str) -> None:
    """Broken brackets, empty or huge ranges are problems."""
    with pytest.raises(SpecError):
        hostlist(text, "x")
