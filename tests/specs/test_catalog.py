"""The catalogue: every row is usable, and found under all its names."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.specs import catalog

ROWS = catalog.device_rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.device.name)
def test_rows_name_links_that_exist(row: catalog.DeviceRow) -> None:
    """The usual links of a device are in the catalogue, and its figures are positive."""
    assert catalog.link(row.intra_node).rate > 0
    if row.inter_node:
        assert catalog.network(row.inter_node).rate(2) > 0
    assert row.device.memory > 2**30
    assert row.source


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.device.name)
def test_names_are_compared_loosely(row: catalog.DeviceRow) -> None:
    """Capital letters, spaces, underscores and hyphens make no difference."""
    for name in (row.device.name, *row.aliases):
        assert catalog.device(name.upper().replace("-", "_")) is row.device
        assert catalog.device(name.replace("-", " ")) is row.device


def test_names_are_unique() -> None:
    """No two devices share a name or an alias."""
    pairs = {(catalog.simple(name), row.device.name) for row in ROWS for name in (row.device.name, *row.aliases)}
    assert len({name for name, _ in pairs}) == len(pairs)


def test_units() -> None:
    """80 GiB are 80 x 2^30 bytes; launch floors are far below 10 ms; GiB outside the allocator are bytes inside."""
    assert catalog.device("h100-sxm-80gb").memory == 80 * 2**30
    assert catalog.framework("megatron").launch_floor < 0.01
    assert catalog.framework("megatron").outside_allocator > 2**29


def test_frameworks_have_distinct_names() -> None:
    """Every framework is found under its own name."""
    assert [catalog.framework(found.name) for found in catalog.frameworks()] == list(catalog.frameworks())


def test_unknown_names_are_answered_with_near_ones() -> None:
    """A misspelt name names its neighbours."""
    with pytest.raises(SpecError, match=r"did you mean .*h100-sxm-80gb"):
        catalog.device("h100-sxm-80g")
    with pytest.raises(SpecError, match=r"did you mean .*megatron"):
        catalog.framework("megatorn")
    with pytest.raises(SpecError, match=r"did you mean .*ib-ndr"):
        catalog.network("ib-nrd")
    with pytest.raises(SpecError, match=r"did you mean .*nvlink4"):
        catalog.link("nvlnk4")
