"""What people reported of a configuration, `planner check` tells them; what it does not tell yet is written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import transcripts
from accuracy.memory_cases import table
from planner.cli import app

DATA: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("public_cases.yaml").read_text(encoding="utf-8"))
SLOW = (1, 2, 4, 6, 9, 10, 11, 13, 14, 15, 16, 18, 19, 21, 22, 24, 25, 26)
"""Numbers of all cases of unexpected speed that were gathered; those of memory are listed in memory_cases.yaml."""
REFUSED = (1, 3, 4, 7, 8, 9, 11, 13, 14, 15, 17, 18, 20, 22, 23, 24, 26, 27, 29, 30, 32)
"""Numbers of all cases of refused configurations."""
ASKED = ("fits", "codes", "messages", "repairs", "says", "fuller")
KEYS = {"id", "name", "about", "source", "assumes", "file", "text", "model", "options", "cluster", "misses", *ASKED}
ALSO = {"AC117"}
"""What a refused configuration breaks on the way."""


def name(case: Mapping[str, Any]) -> str:
    """Return the name of a case, as comparisons write it."""
    return f"{case['id']}: {case['name']}" if "name" in case else str(case["id"])


CASES = {name(case): case for case in DATA["cases"]}
FORBIDDEN = {name(case): case for case in DATA["refused"]}


@cache
def judged(which: str) -> tuple[Mapping[str, Any], str, int]:
    """Return what `planner check` says of a case as data and as text, the text without line ends, and its exit code."""
    case = {**CASES, **FORBIDDEN}[which]
    with TemporaryDirectory() as folder:
        path = Path(folder) / case["file"]
        path.write_text(case["text"], encoding="utf-8")
        words = ["check", str(path), "--no-search", *_cluster(case, folder), *_model(case, folder)]
        words += case.get("options", [])
        data = CliRunner().invoke(app, [*words, "--format", "json"])
        text = CliRunner().invoke(app, words)
    (verdict,) = json.loads(data.stdout)["files"]
    return verdict, " ".join(text.stdout.split()), text.exit_code


def _cluster(case: Mapping[str, Any], folder: str) -> list[str]:
    if "cluster" not in case:
        return []
    if case["cluster"] not in DATA["clusters"]:
        return ["--cluster", case["cluster"]]
    path = Path(folder) / "cluster.yaml"
    path.write_text(yaml.safe_dump(DATA["clusters"][case["cluster"]]), encoding="utf-8")
    return ["--cluster", str(path)]


def _model(case: Mapping[str, Any], folder: str) -> list[str]:
    if "model" not in case:
        return []
    if case["model"] not in DATA["models"]:
        return ["--model", str(transcripts.ROOT / "model_specs" / case["model"])]
    path = Path(folder) / "config.json"
    path.write_text(json.dumps(DATA["models"][case["model"]]), encoding="utf-8")
    return ["--model", str(path)]


def unmet(which: str, asked: Mapping[str, Any]) -> list[str]:
    """Return what of `asked` is not said of a case."""
    verdict, text, _ = judged(which)
    prediction = verdict["prediction"]
    found = ["fits"] if "fits" in asked and asked["fits"] != (prediction and prediction["fits"]) else []
    told = {
        "codes": [one["code"] for one in verdict["findings"]],
        "messages": [one["message"] for one in verdict["findings"]],
        "repairs": [one["change"] for one in verdict["repairs"]],
        "says": [text],
    }
    for key, texts in told.items():
        found += [f"{key}: {part}" for part in asked.get(key, ()) if not any(part in one for one in texts)]
    if "fuller" in asked:
        stage, other, least, largest = asked["fuller"]
        full, less = (prediction["stages"][index]["peak_memory_bytes"] for index in (stage, other))
        found += [] if least <= full / less <= largest else [f"fuller: {full / less:.2f}"]
    return found


def test_cases_are_whole() -> None:
    """Each has a source, something that is asked, and known keys; what is missed has a reason."""
    assert len(CASES) == len(DATA["cases"])
    assert len(FORBIDDEN) == len(DATA["refused"])
    for which, case in {**CASES, **FORBIDDEN}.items():
        assert case.keys() <= KEYS, which
        assert case["source"].startswith("https://"), which
        assert case["about"], which
        assert case.keys() & set(ASKED), which
        missed = case.get("misses", {"reason": "x", "wanted": {}})
        assert missed["reason"], which
        assert missed["wanted"].keys() <= set(ASKED), which


def test_no_case_is_forgotten() -> None:
    """Every public case of memory or speed is judged here, or left out with a reason."""
    memory = [case["id"] for kind in ("judged", "not_judged") for case in table()[kind]]
    every = {*memory, *(f"C{number:02}" for number in SLOW)}
    assert {case["id"] for case in CASES.values()} | DATA["left_out"].keys() == every
    assert not {case["id"] for case in CASES.values()} & DATA["left_out"].keys()
    assert all(DATA["left_out"].values())


def test_every_refused_configuration_is_a_test() -> None:
    """Here, or in the tests of its form, where its source is named."""
    here = {case["id"] for case in FORBIDDEN.values()}
    assert here | DATA["elsewhere"].keys() == {f"B{number:02}" for number in REFUSED}
    for case, (file, words) in DATA["elsewhere"].items():
        assert words in Path(__file__).with_name(file).read_text(encoding="utf-8"), case


@pytest.mark.parametrize("which", FORBIDDEN)
def test_a_refused_configuration_is_told(which: str) -> None:
    """With just its codes, and what is legal."""
    case = FORBIDDEN[which]
    assert unmet(which, case) == []
    verdict, _, code = judged(which)
    notes = {one["code"] for one in verdict["findings"] if one["severity"] == "note"}
    wrong = {one["code"] for one in verdict["findings"]} - notes
    assert wrong - set(case["codes"]) <= ALSO
    assert code == 1


@pytest.mark.parametrize("which", CASES)
def test_a_case_is_told(which: str) -> None:
    """Whether it fits, by the exit code too, and all else that the case asks for."""
    case = CASES[which]
    assert unmet(which, case) == []
    verdict, text, code = judged(which)
    assert (code == 0) == verdict["good"] == text.split(": ", 1)[1].startswith("good")
    if case.get("fits") is not None:
        assert ("PL108" in {one["code"] for one in verdict["findings"]}) == (not case["fits"])


@pytest.mark.parametrize("which", [which for which, case in CASES.items() if "misses" in case])
def test_a_miss_is_still_one(which: str) -> None:
    """Else it is mended, and its `misses` should go."""
    assert unmet(which, CASES[which]["misses"]["wanted"])


@pytest.mark.parametrize("pair", DATA["comparisons"], ids=lambda pair: pair["slower"])
def test_one_is_slower_than_another(pair: Mapping[str, Any]) -> None:
    """By as much as was reported, roughly."""
    slow, fast = (judged(pair[key])[0]["prediction"] for key in ("slower", "than"))
    ratio = fast["samples_per_s"] / fast["num_devices"] / (slow["samples_per_s"] / slow["num_devices"])
    least, largest = pair["ratio"]
    assert least <= ratio <= largest
