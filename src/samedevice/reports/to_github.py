"""Report -> workflow commands, which a CI run shows beside the lines of a pull request.

Source: "Workflow commands for GitHub Actions", the section on setting an error message.
"""

from __future__ import annotations

from samedevice.findings import Finding, Report
from samedevice.reports.wording import printable
from samedevice.texts import say, shown

__all__ = ["to_github"]


def to_github(report: Report) -> str:
    """`report` as one `::error` or `::warning` command a line."""
    lines = [_finding(finding) for finding in report.findings]
    lines += [f"::error file={_property(error.file)}::{_data(shown(error.message))}" for error in report.errors]
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding) -> str:
    properties = {"title": f"{finding.code} {finding.cause}"}
    if at := finding.location:
        properties["file"] = at.file.replace("\\", "/")
        known = {"line": at.line, "endLine": at.end_line, "col": at.column, "endColumn": at.end_column}
        if at.cell is not None:
            known.clear()  # lines of a notebook's cell are none of its file
        if at.end_line not in (None, at.line):
            # Columns are only understood where the annotation is on one line.
            known = {key: value for key, value in known.items() if not key.lower().startswith(("col", "endcol"))}
        properties |= {key: str(value) for key, value in known.items() if value is not None}
    message = finding.message
    if at and at.cell is not None:
        message = say("cell {cell}, line {line}: {error}", cell=at.cell, line=at.line, error=message)
    text = shown(message)
    if finding.fix:
        text += f"\n{shown(say('Mend: '))}{shown(finding.fix.summary)}"
    listed = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{finding.severity} {listed}::{_data(text)}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
