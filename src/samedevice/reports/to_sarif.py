"""Report -> SARIF 2.1.0, the form that code-scanning services and editors read.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", sections 3.13 to 3.58.
"""

from __future__ import annotations

from pathlib import PurePath, PurePosixPath
from typing import Any

import samedevice
from samedevice.causes.catalogue import by_code
from samedevice.findings import Culprit, Edit, Finding, Location, Report

__all__ = ["to_sarif"]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(report: Report) -> str:
    """`report` as a SARIF log with one run, in ASCII JSON, ending in a line break."""
    codes = sorted({finding.code for finding in report.findings})
    driver = {
        "name": "samedevice",
        "version": samedevice.__version__,
        "rules": [_rule(code) for code in codes],
    }
    invocation: dict[str, Any] = {"executionSuccessful": not report.errors}
    if report.errors:
        invocation["toolExecutionNotifications"] = [
            {"level": "error", "message": {"text": e.message}, "locations": [_physical(e.file)]} for e in report.errors
        ]
    run = {
        "tool": {"driver": driver},
        # Lines and columns here count characters, as Python does; SARIF would take UTF-16 units for granted.
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(finding, codes.index(finding.code)) for finding in report.findings],
    }
    import json

    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _rule(code: str) -> dict[str, Any]:
    cause = by_code(code)
    return {
        "id": code,
        "name": cause.slug,
        "shortDescription": {"text": cause.summary},
        "fullDescription": {"text": cause.why},
        "help": {"text": f"{cause.why} `samedevice causes {code}` shows it wrong and right."},
    }


def _sentences(finding: Finding) -> str:
    """Several sentences as plain text, which viewers run together."""
    parts = [part.rstrip(".") for part in (finding.message, *finding.reasons)]
    return ". ".join(parts) + "." if len(parts) > 1 else finding.message


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule_index,
        "level": finding.severity,
        "message": {"text": _in_cell(finding.location) + _sentences(finding)},
    }
    if finding.location:
        result["locations"] = [_location(finding.location)]
    if finding.culprit and finding.culprit.file and finding.culprit.line:
        result["relatedLocations"] = [_culprit(finding.culprit)]
    if finding.fix and finding.fix.edits and all(edit.cell is None for edit in finding.fix.edits):
        result["fixes"] = [{"description": {"text": finding.fix.summary}, "artifactChanges": _changes(finding)}]
    return result


def _culprit(culprit: Culprit) -> dict[str, Any]:
    location = _physical(str(culprit.file), {"startLine": culprit.line})
    return location | {"message": {"text": f"{culprit.name} was made or left behind here"}}


def _location(location: Location) -> dict[str, Any]:
    """A place in a file; in a notebook a cell, for its lines are none of the file."""
    if location.cell is None:
        return _physical(location.file, _region(location))
    named = {"fullyQualifiedName": f"cell {location.cell}, line {location.line}", "kind": "cell"}
    return _physical(location.file) | {"logicalLocations": [named]}


def _in_cell(location: Location | None) -> str:
    return f"cell {location.cell}, line {location.line}: " if location and location.cell is not None else ""


def _physical(file: str, region: dict[str, Any] | None = None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(file)}}
    return {"physicalLocation": physical | ({"region": region} if region else {})}


def _uri(file: str) -> str:
    from urllib.parse import quote

    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(str(PurePosixPath(path.as_posix())), errors="surrogateescape")


def _region(location: Location) -> dict[str, Any]:
    known = {
        "startLine": location.line,
        "startColumn": location.column,
        "endLine": location.end_line,
        "endColumn": location.end_column,
    }
    region: dict[str, Any] = {key: value for key, value in known.items() if value is not None}
    snippet = _within(location)
    return region | ({"snippet": {"text": snippet}} if snippet else {})


def _within(location: Location) -> str | None:
    """The text of the region itself, as the standard wants it; the line where no column is known."""
    if location.column is None or location.source is None:
        return location.source
    first, end = location.source_column, location.end_column
    if first is None or end is None or location.end_line not in (None, location.line):
        return None
    return location.source[max(location.column - first, 0) : end - first]


def _changes(finding: Finding) -> list[dict[str, Any]]:
    files: dict[str, list[dict[str, Any]]] = {}
    for edit in finding.fix.edits if finding.fix else ():
        files.setdefault(edit.file, []).append(_replacement(edit))
    return [
        {"artifactLocation": {"uri": _uri(file)}, "replacements": replacements} for file, replacements in files.items()
    ]


def _replacement(edit: Edit) -> dict[str, Any]:
    """Whole lines as a region; lines that go take their line break with them."""
    if not edit.new:
        region = {"startLine": edit.line, "startColumn": 1, "endLine": edit.end_line + 1, "endColumn": 1}
        return {"deletedRegion": region}
    last = edit.old.split("\n")[-1]
    region = {"startLine": edit.line, "startColumn": 1, "endLine": edit.end_line, "endColumn": len(last) + 1}
    return {"deletedRegion": region, "insertedContent": {"text": edit.new}}
