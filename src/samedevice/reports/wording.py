"""The small phrases that several renderers share, so that text and HTML say the same thing in the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher

from samedevice.findings import Culprit, Finding, Location, Operand, Report

__all__ = [
    "changed_lines",
    "count",
    "culprit_place",
    "edits_by_file",
    "headline",
    "place",
    "placement_lines",
    "printable",
    "tensor",
]

MOST_DEVICES = 8


def count(number: int, noun: str) -> str:
    """E.g. "1 finding", "2 findings"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def headline(report: Report) -> str:
    """One line on the whole report."""
    script = printable(report.script or "")
    where = f" in {script}" if script else ""
    on = f" on simulated {_devices(report.simulated)}" if report.simulated else ""
    if report.findings:
        return count(len(report.findings), "device fault") + where + on
    if report.errors:
        return f"{count(len(report.errors), 'file')} could not be read; no device fault in the others"
    if report.outcome == "error":
        return f"{script or 'The script'} failed for a reason of its own; no device fault was found{on}"
    return f"No device fault found{where}{on}"


def _devices(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= MOST_DEVICES else f"{names[0]} … {names[-1]}"


def place(location: Location) -> str:
    """E.g. "train.py:31 in forward"."""
    cell = f" (cell {location.cell})" if location.cell is not None else ""
    function = f" in {location.function}" if location.function else ""
    return printable(f"{location.file}:{location.line}{cell}{function}")


def culprit_place(culprit: Culprit) -> str:
    """E.g. "train.py:12", or nothing where the line is not known."""
    return printable(f"{culprit.file}:{culprit.line}") if culprit.file and culprit.line else ""


def tensor(of: Culprit | Operand) -> str:
    """E.g. "cpu, float32[1, 512, 64]": what is known about a tensor, without its name."""
    dtype = (of.dtype or "").removeprefix("torch.")
    shape = "" if of.shape is None else f"[{', '.join(map(str, of.shape))}]"
    return ", ".join(part for part in (of.device or "", dtype + shape) if part)


def placement_lines(report: Report) -> list[str]:
    """What lives where, a line for each role and kind, e.g. "model: 12 parameters on cuda:0"."""
    counts = Counter((p.role, p.kind or "tensor", p.device) for p in report.placements)
    # "state" has no plural here: one entry of optimizer state is a state, and so are twenty.
    return [
        f"{role}: {number} {kind if number == 1 or kind.endswith('state') else kind + 's'} on {device}"
        for (role, kind, device), number in counts.items()
    ]


def printable(text: str) -> str:
    """`text` with control characters shown, not sent: a source line must not steer the reader's terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text.expandtabs(4))


def edits_by_file(finding: Finding) -> dict[str, list[tuple[int, str, str]]]:
    """The edits of `finding` as (line, old, new) under each file, from the top of the file down."""
    files: dict[str, list[tuple[int, str, str]]] = {}
    for edit in sorted(finding.fix.edits if finding.fix else (), key=lambda edit: (edit.file, edit.line)):
        files.setdefault(edit.file, []).append((edit.line, edit.old, edit.new))
    return files


def changed_lines(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The lines of an edit, each with what becomes of it: "-" goes, "+" comes, " " stays."""
    before, after = old.splitlines(), new.splitlines()
    for tag, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        yield from ((" " if tag == "equal" else "-", line) for line in before[start:end])
        if tag != "equal":
            yield from (("+", line) for line in after[new_start:new_end])
