"""Profiles of layers: the CSV, which rows are meant, what is refused, and plan files that hold all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.domain.cluster import Cluster
from planner.domain.profile import LayerTimes
from planner.errors import SpecError
from planner.loader import dump_yaml, load
from planner.specs.cluster import cluster_from_record, cluster_record, read_cluster

HEADER = "device,tp,micro_batch,layer,forward_s,backward_s,update_s\n"
ROWS = """\
H100 SXM,2,1,0,0.5,0.0,0.1
H100 SXM,2,1,1,1.0,2.0,0.2
H100 SXM,2,1,2,3.0,5.0,0.4
H100 SXM,2,1,3,0.25,0.5,0.1
other,1,1,0,nonsense,,
H100 SXM,1,4,3,1.25,1.5,0.1
H100 SXM,1,4,2,13.0,15.0,0.4
H100 SXM,1,4,1,11.0,12.0,0.2
H100 SXM,1,4,0,1.5,1.0,0.1
"""
BLOCK = "{file: times/layers.csv, device: h100 sxm, layers: 2, sequence: 128, precision: bf16}"


def read(tmp_path: Path, rows: str = ROWS, block: str = BLOCK, header: str = HEADER) -> Cluster:
    """Read a cluster file with a profile in a folder beside it."""
    (tmp_path / "times").mkdir(exist_ok=True)
    (tmp_path / "times" / "layers.csv").write_text(header + rows)
    path = tmp_path / "c.yaml"
    path.write_text(f"groups:\n- device: h100-sxm-80gb\n  devices_per_node: 8\n  profile: {block}\n")
    return read_cluster(str(path))


def test_rows_of_the_device_are_sorted_and_their_body_layers_averaged(tmp_path: Path) -> None:
    """Body of tp 2: forward (1 + 3) / 2, backward (2 + 5) / 2, update (0.2 + 0.4) / 2; the other device is left out."""
    profile = read(tmp_path).groups[0].profile
    assert profile is not None
    assert [(row.tp, row.micro_batch) for row in profile.rows] == [(1, 4), (2, 1)]
    row = profile.row(2, 1)
    assert row.embedding == LayerTimes(forward=0.5, backward=0.0, update=0.1)
    assert (row.body.forward, row.body.backward, row.body.update) == pytest.approx((2.0, 3.5, 0.3))
    assert row.head == LayerTimes(forward=0.25, backward=0.5, update=0.1)
    with pytest.raises(KeyError):
        profile.row(1, 1)


def test_a_device_is_found_under_its_own_names(tmp_path: Path) -> None:
    """Without `device` the rows are those of the device's name or an alias, compared loosely."""
    block = BLOCK.replace("device: h100 sxm, ", "")
    assert read(tmp_path, ROWS.replace("H100 SXM", "H100_SXM 80GB"), block).groups[0].profile is not None


def test_a_profile_makes_the_round_trip_without_its_file(tmp_path: Path) -> None:
    """The record holds the rows: it is read where there is no CSV, through YAML too, and nothing is lost."""
    cluster = read(tmp_path, block=BLOCK.replace("layers: 2", "layers: 2, hidden_size: 64"))
    record = cluster_record(cluster)
    (tmp_path / "times" / "layers.csv").unlink()
    assert "file" not in record["groups"][0]["profile"]
    assert cluster_from_record(record) == cluster
    assert cluster_from_record(load(dump_yaml(record), "c.yaml").value) == cluster


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("H100 SXM", "x", "has no rows of h100 sxm; it has other, x: say which one with `device`"),
        ("2,1,0,0.5", "2,1,0,-1", "layers.csv:2: forward_s should be seconds, not '-1'"),
        ("2,1,0,0.5", "2,1,0,nan", "layers.csv:2: forward_s should be seconds, not 'nan'"),
        ("2,1,0,0.5", "2,1,0,", "layers.csv:2: forward_s should be seconds, not ''"),
        ("SXM,2,1,0", "SXM,0,1,0", "layers.csv:2: tp should be a whole number, at least 1, not '0'"),
        ("SXM,2,1,0", "SXM,2,1.5,0", "micro_batch should be a whole number, at least 1, not '1.5'"),
        ("SXM,2,1,3", "SXM,2,1,2", "layers.csv:5: layer 2 of tp 2 and micro_batch 1 stands there twice"),
        ("H100 SXM,2,1,3,0.25,0.5,0.1\n", "", "should have layers 0 (embedding) to 3 (head), for the 2 of the profile"),
        ("11.0,12.0,0.2\nH100", "0,12.0,0.2\nH100", ""),
        ("2,1,1,1.0,2.0,0.2\nH100 SXM,2,1,2,3.0", "2,1,1,0,2.0,0.2\nH100 SXM,2,1,2,0", "take no time; leave out what"),
    ],
)  # fmt: skip
def test_wrong_rows_are_told_with_their_line(tmp_path: Path, old: str, new: str, words: str) -> None:
    """Numbers, layers and devices are judged; one body layer of no time among others is no problem."""
    assert old in ROWS
    if not words:
        assert read(tmp_path, ROWS.replace(old, new)).groups[0].profile is not None
        return
    with pytest.raises(SpecError) as caught:
        read(tmp_path, ROWS.replace(old, new))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (BLOCK.replace("times/", ""), "layers.csv: no such file"),
        (BLOCK.replace("file: times/layers.csv, ", ""), "should have either file (a CSV of measured layers) or rows"),
        (BLOCK.replace("sequence: 128, ", ""), "profile.sequence: is missing; add it"),
        (BLOCK.replace("bf16", "bf61"), "did you mean bf16?"),
        ("layers.csv", "should be a mapping"),
    ],
)
def test_wrong_blocks_are_told(tmp_path: Path, block: str, words: str) -> None:
    """A block names its file and what it is about."""
    with pytest.raises(SpecError) as caught:
        read(tmp_path, block=block)
    assert words in str(caught.value)


def test_a_missing_column_is_told(tmp_path: Path) -> None:
    """The header must have all columns."""
    with pytest.raises(SpecError, match=r"layers.csv:1: has no column update_s"):
        read(tmp_path, header=HEADER.replace(",update_s", ",update_ms"))


@pytest.mark.parametrize(
    ("header", "rows", "words"),
    [
        ("", "", "layers.csv:1: has no column device, tp"),
        (HEADER, "", "has no rows of h100 sxm; it has no rows"),
        (HEADER, f"H100 SXM,{'1' * 200_000}", "is broken CSV (field larger than field limit"),
    ],
)
def test_what_is_no_table_is_told(tmp_path: Path, header: str, rows: str, words: str) -> None:
    """An empty file, a lone header and a cell without end are problems, not bugs."""
    with pytest.raises(SpecError) as caught:
        read(tmp_path, rows, header=header)
    assert words in str(caught.value)
