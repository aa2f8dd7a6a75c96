"""Report -> JSON, schema 1 (docs/reports.md). Keys are only ever added; a changed meaning is a new schema number.

One form serves every command. A key that does not apply to the tool that wrote the report is null or left out as
`docs/reports.md` says: `script` and `simulated` are there for `run`, `placements` for `check`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import samedevice
from samedevice.findings import Culprit, Edit, Finding, Fix, Location, Operand, Report

__all__ = ["to_json"]

SCHEMA = 1


def to_json(report: Report) -> str:
    """`report` as JSON text, indented by one, ending in a line break.

    Args:
        report: what a tool found.

    Returns:
        JSON in ASCII, so that it survives any console encoding.
    """
    import json

    return json.dumps(_report(report), indent=1) + "\n"


def _report(report: Report) -> dict[str, Any]:
    data: dict[str, Any] = {
        "schema": SCHEMA,
        "tool": {"name": "samedevice", "version": samedevice.__version__},
    }
    if report.script is not None:
        data["script"] = report.script
    data["outcome"] = report.outcome
    if report.script is not None or report.simulated is not None:
        data["simulated"] = list(report.simulated) if report.simulated is not None else None
    data["findings"] = [_finding(finding) for finding in report.findings]
    data["errors"] = [{"file": error.file, "message": error.message} for error in report.errors]
    for key in ("placements", "transfers", "notes"):
        if values := getattr(report, key):
            data[key] = [value if isinstance(value, str) else asdict(value) for value in values]
    return data


def _finding(finding: Finding) -> dict[str, Any]:
    raised = finding.raised
    return {
        "code": finding.code,
        "cause": finding.cause,
        "severity": finding.severity,
        "message": finding.message,
        "raised": {"type": raised.type, "message": raised.message} if raised else None,
        "operation": finding.operation,
        "location": _location(finding.location) if finding.location else None,
        "culprit": _culprit(finding.culprit) if finding.culprit else None,
        "expected_device": finding.expected_device,
        "operands": [_operand(operand) for operand in finding.operands],
        "reasons": list(finding.reasons),
        "fix": _fix(finding.fix) if finding.fix else None,
    }


def _location(location: Location) -> dict[str, Any]:
    data: dict[str, Any] = {"file": location.file, "line": location.line, "function": location.function}
    optional = ("column", "end_line", "end_column", "source", "cell")
    return data | {key: value for key in optional if (value := getattr(location, key)) is not None}


def _culprit(culprit: Culprit) -> dict[str, Any]:
    data: dict[str, Any] = {"name": culprit.name, "file": culprit.file, "line": culprit.line}
    data |= {"device": culprit.device, "shape": _shape(culprit.shape), "dtype": culprit.dtype}
    return data if culprit.source is None else data | {"source": culprit.source}


def _operand(operand: Operand) -> dict[str, Any]:
    data: dict[str, Any] = {"name": operand.name, "device": operand.device}
    data |= {"shape": _shape(operand.shape), "dtype": operand.dtype}
    return data if operand.argument is None else data | {"argument": operand.argument}


def _shape(shape: tuple[int, ...] | None) -> list[int] | None:
    return None if shape is None else [int(size) for size in shape]


def _fix(fix: Fix) -> dict[str, Any]:
    return {"summary": fix.summary, "safe": fix.safe, "edits": [_edit(edit) for edit in fix.edits]}


def _edit(edit: Edit) -> dict[str, Any]:
    data = {"file": edit.file, "line": edit.line, "end_line": edit.end_line, "old": edit.old, "new": edit.new}
    return data if edit.cell is None else data | {"cell": edit.cell}
