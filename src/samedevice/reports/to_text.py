"""Report -> text for a person: what happened, where, why, how to mend it. At most 100 columns where words can wrap.

A fault that was run into takes some ten lines; one seen in source takes a line of its own, as compilers print them, so
that editors and `grep` can follow it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from samedevice.findings import Culprit, Finding, Fix, Location, Report
from samedevice.reports import wording

__all__ = ["to_text"]

WIDTH = 100
MOST_REASONS = 3
MOST_DIFF_LINES = 8
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_SIGNS: dict[str, str] = {"-": "red", "+": "green", " ": "dim"}


class _Painter:
    """Text in and text out, styled or not."""

    def __init__(self, colours: bool) -> None:
        self.colours = colours

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.colours and text else text


def to_text(report: Report, *, colours: bool = False) -> str:
    """`report` as text, ending in a line break.

    Args:
        report: what a tool found.
        colours: whether to add terminal colours; the words say everything without them.

    Returns:
        The faults, then what lives where, then notes and a closing line.
    """
    paint = _Painter(colours)
    lines: list[str] = []
    for finding in report.findings:
        lines += _in_source(finding, paint) if _is_static(finding) else [*_finding(finding, paint), ""]
    lines += [wording.printable(f"{error.file}: {error.message}") for error in report.errors]
    lines += wording.placement_lines(report)
    for note in report.notes:
        lines += _wrap("Note: ", note)
    lines.append(paint(wording.headline(report), "bold"))
    return "\n".join(lines) + "\n"


def _is_static(finding: Finding) -> bool:
    """Whether the fault was seen in source: only there is the column known."""
    return finding.location is not None and finding.location.column is not None


def _in_source(finding: Finding, paint: _Painter) -> Iterator[str]:
    location = finding.location
    assert location is not None  # `_is_static` saw to it
    at = wording.printable(f"{location.file}:{location.line}:{location.column}:")
    yield f"{paint(at, 'bold')} {paint(finding.code, 'cyan')} {wording.printable(finding.message)}"
    if finding.fix:
        unsafe = "" if finding.fix.safe else " (look twice: it may change more than the device)"
        yield from _wrap("    Mend: ", finding.fix.summary + unsafe)


def _finding(finding: Finding, paint: _Painter) -> Iterator[str]:
    for line in _wrap("", finding.message):
        yield paint(line, "bold")
    if finding.location:
        yield from _where(finding.location, paint)
    if finding.culprit:
        yield from _culprit(finding.culprit, finding.location, paint)
    elif finding.operands:
        # Nobody to blame: what is where is all that is known.
        yield from _wrap("  ", "; ".join(f"{o.name} is on {o.device}" for o in finding.operands))
    for reason in finding.reasons[:MOST_REASONS]:
        yield from _wrap("  ", reason)
    if finding.fix:
        yield from _mend(finding.fix, finding, paint)
    more = f"`samedevice causes {finding.code}` tells more"
    yield f"Cause {paint(f'{finding.code} {finding.cause}', 'cyan')}; {more}"


def _where(location: Location, paint: _Painter) -> Iterator[str]:
    yield from _code_line(f"  at {wording.place(location)}", location.source, paint)


def _culprit(culprit: Culprit, location: Location | None, paint: _Painter) -> Iterator[str]:
    place = wording.culprit_place(culprit)
    source = culprit.source
    if location and (culprit.file, culprit.line) == (location.file, location.line):
        place, source = "the same line", None
    facts = "; ".join(part for part in (wording.tensor(culprit), f"from {place}" if place else "") if part)
    if facts:
        yield from _code_line(f"  {wording.printable(culprit.name)}: {facts}", source, paint)


def _code_line(head: str, source: str | None, paint: _Painter) -> Iterator[str]:
    """`head: source`, the source on a line of its own where both do not fit."""
    if not source:
        yield head
        return
    source = textwrap.shorten(wording.printable(source), WIDTH - 6, placeholder=" …")
    if len(head) + 2 + len(source) <= WIDTH:
        yield f"{head}: {paint(source, 'yellow')}"
    else:
        yield f"{head}:"
        yield f"      {paint(source, 'yellow')}"


def _mend(fix: Fix, finding: Finding, paint: _Painter) -> Iterator[str]:
    diff = [line for file, edits in wording.edits_by_file(finding).items() for line in _diff(file, edits, paint)]
    # A summary that is a line of the edit would only be read twice.
    in_edit = any(line.strip() == fix.summary for edit in fix.edits for line in edit.new.splitlines())
    first, *rest = [f"Mend: {diff.pop(0).lstrip()}"] if in_edit else _wrap("Mend: ", fix.summary)
    yield paint("Mend:", "green") + first.removeprefix("Mend:")
    yield from rest
    yield from diff[:MOST_DIFF_LINES]
    if len(diff) > MOST_DIFF_LINES:
        yield f"  … and {wording.count(len(diff) - MOST_DIFF_LINES, 'more line')}"


def _diff(file: str, edits: list[tuple[int, str, str]], paint: _Painter) -> Iterator[str]:
    for line, old, new in edits:
        yield "  " + paint(wording.printable(f"{file}:{line}"), "dim")
        for sign, text in wording.changed_lines(old, new):
            yield paint(f"  {sign} {wording.printable(text)}", _SIGNS[sign])


def _wrap(lead: str, text: str) -> list[str]:
    """`text` in lines of at most 100 columns after `lead`, the later ones indented; code is never broken inside."""
    indent = lead if lead.isspace() else " " * (len(lead) - len(lead.lstrip()) + 2)
    return textwrap.wrap(
        wording.printable(text),
        WIDTH,
        initial_indent=lead,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [lead.rstrip()]
