"""A fault is a value: the frozen records that every tool returns and every renderer reads.

Nothing here holds a tensor, a frame or a module, so a report can outlive the program it speaks of.
The shapes of the JSON forms are fixed by the report schema (docs/reports.md); `reports/to_json.py` writes them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

__all__ = [
    "Culprit",
    "Edit",
    "FileError",
    "Finding",
    "Fix",
    "Location",
    "Operand",
    "Placement",
    "Raised",
    "Report",
    "Transfer",
    "named_from",
]

Severity = Literal["error", "warning"]
Outcome = Literal["ok", "finding", "error"]


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a source file. Lines and columns count from 1; `end_*` are None where only the line is known."""

    file: str
    line: int
    function: str | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    source: str | None = None
    """The text of the line, stripped, where it could be read."""
    cell: int | None = None
    """The notebook cell, counted from 1; lines are counted in it."""
    source_column: int | None = None
    """The column where `source` begins."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor that took part in the failing operation, by the user's own name for it."""

    name: str
    device: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    argument: str | None = None
    """PyTorch's name for the argument, e.g. "mat1"."""


@dataclass(frozen=True, slots=True)
class Culprit:
    """The tensor or object in the wrong place, and the line where it was made or left behind."""

    name: str
    file: str | None = None
    line: int | None = None
    device: str | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    source: str | None = None
    """The text of that line, stripped."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception, as its type's name and its text."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Whole lines `line` to `end_line` (from 1, both included) hold `old`; they become `new`.

    `new` may be empty (the lines go) or hold more lines than `old`; neither ends in a line break.
    """

    file: str
    line: int
    end_line: int
    old: str
    new: str
    cell: int | None = None
    """The notebook cell whose lines they are, counted from 1."""


@dataclass(frozen=True, slots=True)
class Fix:
    """How to mend a fault: a sentence or a line of code, and the exact edits where they are known."""

    summary: str
    edits: tuple[Edit, ...] = ()
    safe: bool = True
    """False where the edit may change what the program computes or stores."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One device fault, whoever found it: a traceback, a trace, a simulation, the source or a check of live objects."""

    code: str
    cause: str
    message: str
    """One sentence: what is wrong, with names and devices filled in."""
    location: Location | None
    severity: Severity = "error"
    raised: Raised | None = None
    operation: str | None = None
    culprit: Culprit | None = None
    expected_device: str | None = None
    operands: tuple[Operand, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why this cause and this side, a sentence each."""
    fix: Fix | None = None

    def __str__(self) -> str:
        """The finding for a person, in the reader's language, without colours."""
        return Report((self,), "finding").to_text()

    def named_from(self, folder: str) -> Finding:
        """The same with its files named as a person who works in `folder` would name them.

        Args:
            folder: an absolute path; what lies inside is named from there, what does not by its whole path.
        """
        location, culprit, fix = self.location, self.culprit, self.fix
        if location:
            location = replace(location, file=named_from(folder, location.file))
        if culprit and culprit.file:
            culprit = replace(culprit, file=named_from(folder, culprit.file))
        if fix:
            fix = replace(fix, edits=tuple(replace(edit, file=named_from(folder, edit.file)) for edit in fix.edits))
        return replace(self, location=location, culprit=culprit, fix=fix)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one tensor lives: the raw material of `check`. `role` is model, criterion, batch or optimizer."""

    role: str
    path: str
    device: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    kind: str = ""
    """parameter, buffer, attribute, state, input …"""
    owner_device: str | None = None
    """Where it belongs: optimizer state beside its parameter or on the CPU, else where its module's parameters live."""
    holder: str | None = None
    """For what `.to()` passes by: the attribute that it is reached through, e.g. "model.layers"."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One copy between devices, where it was asked for in the source."""

    file: str
    line: int
    source: str
    target: str
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FileError:
    """A file that could not be read or parsed; the others were still looked at."""

    file: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a tool found. `print(report)` shows it to a person; `to_json()` and `to_mermaid()` to others."""

    findings: tuple[Finding, ...] = ()
    outcome: Outcome = "ok"
    script: str | None = None
    simulated: tuple[str, ...] | None = None
    placements: tuple[Placement, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    errors: tuple[FileError, ...] = ()
    notes: tuple[str, ...] = ()
    """What was done or left alone on purpose, a sentence each."""

    @property
    def ok(self) -> bool:
        """True where nothing was found and every file could be read."""
        return not self.findings and not self.errors

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """The report for a person, in the reader's language; files are named from the current folder."""
        from samedevice import reports

        try:
            here = str(Path.cwd())
        except OSError:  # the folder is gone
            return reports.to_text(self)
        return reports.to_text(replace(self, findings=tuple(finding.named_from(here) for finding in self.findings)))

    def to_json(self) -> str:
        """The report as JSON, in the schema of docs/reports.md."""
        from samedevice import reports

        return reports.to_json(self)

    def to_mermaid(self) -> str:
        """A Mermaid flowchart model -> inputs -> optimizer whose path shows which step failed."""
        from samedevice import reports

        return reports.to_mermaid(self)


def named_from(folder: str, file: str) -> str:
    """`file` as seen from `folder` where it lies inside, else as it is.

    Args:
        folder: an absolute path.
        file: a path, or any other name of a source, such as a notebook's cell.
    """
    for root in (folder, os.path.realpath(folder)):
        inside = root.rstrip(os.sep) + os.sep
        if file.startswith(inside):
            return file[len(inside) :]
    return file
