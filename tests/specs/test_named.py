from __future__ import annotations

from pathlib import Path

import pytest

from planner.specs.named import cluster_files, model_file


def test_a_one_liner_has_no_file() -> None:
    """Neither has a cluster that would be one, were it not for a mistake in it."""
    assert cluster_files("8x8:h100-sxm-80gb+1x8:v100") == ()


def test_a_cluster_comes_with_its_profiles(tmp_path: Path) -> None:
    """Profiles are found beside the file that names them, each once; what else its groups hold is no file."""
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "groups:\n"
        "  - {profile: {file: profiles/a.csv}}\n"
        "  - {profile: {file: /data/b.csv}}\n"
        "  - {profile: {file: profiles/a.csv}}\n"
        "  - {profile: {rows: []}}\n"
        "  - {profile: a.csv}\n"
        "  - {profile: {file: 3}}\n"
        "  - a.csv\n",
        encoding="utf-8",
    )
    assert cluster_files(str(path)) == (str(path), str(tmp_path / "profiles" / "a.csv"), "/data/b.csv")


@pytest.mark.parametrize("text", ["", "groups: [\n", "groups: 3\n", "- a\n", "a: 1\na: 2\n", None])
def test_a_cluster_that_is_wrong_is_its_file_alone(text: str | None, tmp_path: Path) -> None:
    """What is broken, no cluster or not there is still the file to be mended."""
    path = tmp_path / "cluster.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert cluster_files(str(path)) == (str(path),)


def test_a_model_in_a_folder_is_its_configuration(tmp_path: Path) -> None:
    """A folder stands for the config.json in it, there or not; a file for itself."""
    assert model_file(str(tmp_path)) == str(tmp_path / "config.json")
    assert model_file(str(tmp_path / "model.yaml")) == str(tmp_path / "model.yaml")
