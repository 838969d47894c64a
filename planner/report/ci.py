"""Findings as machines of continuous integration read them: GitHub, GitLab, SARIF and JUnit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

import planner
from planner.domain.configuration import ERROR, NOTE, WARNING, Finding

Files = Sequence[tuple[str, Sequence[Finding]]]
"""(name of the file, what was found in it), also where that is nothing."""
_GITHUB = {ERROR: "error", WARNING: "warning", NOTE: "notice"}
_GITLAB = {ERROR: "major", WARNING: "minor", NOTE: "info"}
_SARIF = {ERROR: "error", WARNING: "warning", NOTE: "note"}


def github(files: Files) -> str:
    """Return workflow commands, one a finding (GitHub Actions, "Workflow commands": data and properties escaped)."""
    lines = []
    for _, findings in files:
        for one in findings:
            at = {"file": one.spot.file, "line": one.spot.line or 1, "col": one.spot.column, "title": one.code}
            properties = ",".join(f"{key}={_property(value)}" for key, value in at.items() if value)
            lines.append(f"::{_GITHUB[one.severity]} {properties}::{_data(_text(one))}\n")
    return "".join(lines)


def gitlab(files: Files) -> str:
    """Return a report of GitLab's code quality (GitLab, "Code Quality report format")."""
    return _json(
        [
            {
                "description": _text(one),
                "check_name": one.code,
                "fingerprint": _fingerprint(one),
                "severity": _GITLAB[one.severity],
                "location": {"path": one.spot.file, "lines": {"begin": max(1, one.spot.line)}},
            }
            for _, findings in files
            for one in findings
        ]
    )


def sarif(files: Files, story: Callable[[str], tuple[str, str]]) -> str:
    """Return a log of SARIF 2.1.0 (OASIS); `story` gives title and text of a rule by its code."""
    found = [one for _, findings in files for one in findings]
    rules = [
        {"id": code, "shortDescription": {"text": story(code)[0]}, "fullDescription": {"text": story(code)[1]}}
        for code in sorted({one.code for one in found})
    ]
    return _json(
        {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {"driver": {"name": "planner", "version": planner.__version__, "rules": rules}},
                    "results": [_result(one) for one in found],
                }
            ],
        }
    )


def junit(files: Files) -> str:
    """Return a JUnit report: a case a file, failed where it has errors."""
    failed = sum(any(one.severity == ERROR for one in findings) for _, findings in files)
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", name="planner check", tests=str(len(files)), failures=str(failed))
    for name, findings in files:
        case = ET.SubElement(suite, "testcase", classname="planner.check", name=_printable(name))
        errors = [one for one in findings if one.severity == ERROR]
        if errors:
            failure = ET.SubElement(
                case, "failure", message=_printable(f"{len(errors)} {'problem' if len(errors) == 1 else 'problems'}")
            )
            failure.text = _printable("\n".join(_line(one) for one in errors))
        if len(errors) < len(findings):
            others = (_line(one) for one in findings if one.severity != ERROR)
            ET.SubElement(case, "system-out").text = _printable("\n".join(others))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def summary(files: Files) -> str:
    """Return a page in Markdown for the summary of a job."""
    lines = ["### planner check", "", "| file | line | code | finding |", "|---|---|---|---|"]
    for name, findings in files:
        if not findings:
            lines.append(f"| {_cell(name)} | | | good |")
        lines += [
            f"| {_cell(one.spot.file)} | {one.spot.line or ''} | {one.code} | {one.severity}: {_cell(_text(one))} |"
            for one in findings
        ]
    return "\n".join(lines) + "\n"


def _result(one: Finding) -> dict[str, Any]:
    region = {"startLine": max(1, one.spot.line)} | ({"startColumn": one.spot.column} if one.spot.column else {})
    place = {"artifactLocation": {"uri": one.spot.file}, "region": region}
    return {
        "ruleId": one.code,
        "level": _SARIF[one.severity],
        "message": {"text": _text(one)},
        "locations": [{"physicalLocation": place}],
    }


def _line(one: Finding) -> str:
    return f"{one.spot}: {one.code} {_text(one)}"


def _text(one: Finding) -> str:
    return f"{one.key}: {one.message}" if one.key and not one.message.startswith(one.key) else one.message


def _fingerprint(one: Finding) -> str:
    """Return what tells a finding from others, whatever lines were added above it."""
    parts: Iterable[str] = (one.code, one.spot.file, one.key, one.message)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _json(value: list[Any] | Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _printable(text: str) -> str:
    """Return `text` without the characters that XML cannot hold."""
    return "".join(letter if letter in "\n\t" or letter >= " " else "?" for letter in text)
