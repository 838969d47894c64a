"""Findings as continuous integration reads them."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from planner.domain.configuration import ERROR, WARNING, Finding, Spot
from planner.report import ci

WRONG = Finding(
    code="XX101", severity=ERROR, spot=Spot("run: a,b.sh", 3, 7), key="--tp", message="3 does not divide\n16, 100% sure"
)
DOUBT = Finding(code="XX201", severity=WARNING, spot=Spot("b.toml"), key="", message="a | b")
FILES = [("run: a,b.sh", [WRONG]), ("b.toml", [DOUBT]), ("good.json", [])]


def test_github_commands_are_escaped() -> None:
    """Line ends and percent signs in messages, colons and commas in properties; without a line it is the first."""
    assert ci.github(FILES) == (
        "::error file=run%3A a%2Cb.sh,line=3,col=7,title=XX101::--tp: 3 does not divide%0A16, 100%25 sure\n"
        "::warning file=b.toml,line=1,title=XX201::a | b\n"
    )


def test_gitlab_tells_findings_apart_whatever_their_line() -> None:
    """The fingerprint is that of code, file, key and message."""
    first, second = json.loads(ci.gitlab(FILES))
    assert (first["severity"], first["location"]) == ("major", {"path": "run: a,b.sh", "lines": {"begin": 3}})
    assert (second["severity"], second["check_name"]) == ("minor", "XX201")
    moved = Finding(code="XX101", severity=ERROR, spot=Spot("run: a,b.sh", 9), key="--tp", message=WRONG.message)
    assert json.loads(ci.gitlab([("", [moved])]))[0]["fingerprint"] == first["fingerprint"]
    assert first["fingerprint"] != second["fingerprint"]


def test_sarif_has_a_rule_for_each_code() -> None:
    """Results point to places; a column that is not known is left out."""
    log = json.loads(ci.sarif(FILES, lambda code: (f"title of {code}", "text")))
    run = log["runs"][0]
    assert log["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["XX101", "XX201"]
    assert [result["level"] for result in run["results"]] == ["error", "warning"]
    regions = [result["locations"][0]["physicalLocation"]["region"] for result in run["results"]]
    assert regions == [{"startLine": 3, "startColumn": 7}, {"startLine": 1}]


def test_junit_fails_what_has_errors() -> None:
    """A case a file; warnings are output of a case that passes."""
    suite = ET.fromstring(ci.junit(FILES))[0]  # noqa: S314 - it was written here
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    assert [(case.get("name"), [inner.tag for inner in case]) for case in suite] == [
        ("run: a,b.sh", ["failure"]),
        ("b.toml", ["system-out"]),
        ("good.json", []),
    ]
    assert suite[0][0].text == "run: a,b.sh:3:7: XX101 --tp: 3 does not divide\n16, 100% sure"


def test_a_summary_is_a_table() -> None:
    """Bars in messages do not break it; a good file has a row."""
    assert ci.summary(FILES).splitlines()[4:] == [
        "| run: a,b.sh | 3 | XX101 | error: --tp: 3 does not divide 16, 100% sure |",
        "| b.toml |  | XX201 | warning: a \\| b |",
        "| good.json | | | good |",
    ]


def test_sarif_names_files_by_addresses() -> None:
    """What is no character of an address is written by its bytes."""
    one = Finding(code="MG001", severity=ERROR, spot=Spot("a b/c:%d#.sh", 3, 4), key="", message="x")
    place = json.loads(ci.sarif([("a b/c:%d#.sh", [one])], lambda code: (code, code)))["runs"][0]["results"][0]
    assert place["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/c%3A%25d%23.sh"},
        "region": {"startLine": 3, "startColumn": 4},
    }
