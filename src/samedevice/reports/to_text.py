"""Report -> text for a person: what happened, where, why, how to mend it. At most 100 columns where words can wrap.

A fault that was run into takes some ten lines; one seen in source begins with a line of its own, as compilers print
them, so that editors and `grep` can follow it, and shows the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from samedevice.findings import Culprit, Finding, Fix, Location, Operand, Report
from samedevice.reports import wording
from samedevice.reports.columns import cut, width, wrap
from samedevice.reports.snippet import snippet
from samedevice.texts import say, say_number, shown

__all__ = ["to_text"]

WIDTH = 100
MOST_REASONS = 3
MOST_OPERANDS = 6
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
    lines += [wording.printable(f"{error.file}: {shown(error.message)}") for error in report.errors]
    lines += wording.placement_lines(report)
    for note in report.notes:
        lines += _wrap(shown(say("Note: ")), note)
    lines.append(paint(wording.headline(report), "bold"))
    return "\n".join(lines) + "\n"


def _is_static(finding: Finding) -> bool:
    """Whether the fault was seen in source: only there is the column known."""
    return finding.location is not None and finding.location.column is not None


def _in_source(finding: Finding, paint: _Painter) -> Iterator[str]:
    location = finding.location
    assert location is not None  # `_is_static` saw to it
    cell = f"cell {location.cell}:" if location.cell is not None else ""
    at = wording.printable(f"{location.file}:{cell}{location.line}:{location.column}:")
    yield f"{paint(at, 'bold')} {paint(finding.code, 'cyan')} {wording.readable(finding.message)}"
    if seen := snippet(location, WIDTH - 4):
        line, carets = seen
        yield f"    {paint(line, 'yellow')}"
        yield f"    {' ' * carets.count(' ')}{paint(carets.lstrip(), 'red')}"
    if finding.fix:
        yield from _wrap(f"    {shown(_MEND)}", wording.mend(finding.fix))


_MEND = say("Mend: ")


def _finding(finding: Finding, paint: _Painter) -> Iterator[str]:
    for line in _wrap("", finding.message):
        yield paint(line, "bold")
    if finding.location:
        yield from _where(finding.location, paint)
    if finding.culprit:
        yield from _culprit(finding.culprit, finding.location, paint)
    elif finding.operands:
        # Nobody to blame: what is where is all that is known.
        yield from _wrap("  ", _whereabouts(finding.operands))
    for reason in finding.reasons[:MOST_REASONS]:
        yield from _wrap("  ", reason)
    if finding.fix:
        yield from _mend(finding.fix, finding, paint)
    cause = paint(f"{finding.code} {finding.cause}", "cyan")
    yield shown(say("Cause {cause}; `samedevice causes {code}` tells more", cause=cause, code=finding.code))


def _whereabouts(operands: tuple[Operand, ...]) -> str:
    there = [shown(say("{name} is on {device}", name=o.name, device=o.device)) for o in operands[:MOST_OPERANDS]]
    if (more := len(operands) - MOST_OPERANDS) > 0:
        there.append(shown(say("and {number} more", number=more)))
    return shown(say("; ")).join(there)


def _where(location: Location, paint: _Painter) -> Iterator[str]:
    yield from _code_line(f"  {shown(say('at {place}', place=wording.place(location)))}", location.source, paint)


def _culprit(culprit: Culprit, location: Location | None, paint: _Painter) -> Iterator[str]:
    place, source = wording.culprit_place(culprit), culprit.source
    made = shown(say("from {place}", place=place)) if place else ""
    if location and (culprit.file, culprit.line) == (location.file, location.line):
        made, source = shown(say("from the same line")), None
    facts = _colon() + shown(say("; ")).join(part for part in (wording.tensor(culprit), made) if part)
    if facts != _colon():
        name = cut(wording.printable(culprit.name), max(WIDTH - 3 - width(facts), WIDTH // 3))
        yield from _code_line(f"  {name}{facts}", source, paint)


def _colon() -> str:
    return shown(say(": "))


def _code_line(head: str, source: str | None, paint: _Painter) -> Iterator[str]:
    """`head: source`, the source on a line of its own where both do not fit."""
    if not source:
        yield head
        return
    source = cut(" ".join(wording.printable(source).split()), WIDTH - 6)
    if width(head) + width(_colon()) + width(source) <= WIDTH:
        yield f"{head}{_colon()}{paint(source, 'yellow')}"
    else:
        yield head + _colon().rstrip()
        yield f"      {paint(source, 'yellow')}"


def _mend(fix: Fix, finding: Finding, paint: _Painter) -> Iterator[str]:
    lead = shown(_MEND)
    diff = [line for file, edits in wording.edits_by_file(finding).items() for line in _diff(file, edits, paint)]
    # A summary that is a line of the edit, or says where that line goes, would only be read twice.
    written = [line.strip() for edit in fix.edits for line in edit.new.splitlines() if line.strip()]
    in_edit = any(re.fullmatch(re.escape(line) + r"( +\(.*\))?", fix.summary) for line in written)
    first, *rest = [lead + diff.pop(0).lstrip()] if in_edit else _wrap(lead, fix.summary)
    yield paint(lead.rstrip(), "green") + first.removeprefix(lead.rstrip())
    yield from rest
    yield from diff[:MOST_DIFF_LINES]
    if (more := len(diff) - MOST_DIFF_LINES) > 0:
        yield "  " + shown(say_number("… and {number} more line", "… and {number} more lines", more))


def _diff(file: str, edits: list[tuple[int, str, str]], paint: _Painter) -> Iterator[str]:
    for line, old, new in edits:
        yield "  " + paint(wording.printable(f"{file}:{line}"), "dim")
        changed = [(sign, wording.printable(text)) for sign, text in wording.changed_lines(old, new)]
        if any(width(text) > WIDTH - 4 for _, text in changed):
            indent = min((len(text) - len(text.lstrip()) for _, text in changed if text.strip()), default=0)
            changed = [(sign, text[indent:]) for sign, text in changed]
        for sign, text in changed:
            # What is to be written is there to be copied: it alone is never cut.
            yield paint(f"  {sign} {text if sign == '+' else cut(text, WIDTH - 4)}".rstrip(), _SIGNS[sign])


def _wrap(lead: str, text: str) -> list[str]:
    """`text` in lines of at most 100 columns after `lead`, the later ones indented; code is never broken inside."""
    indent = lead if lead.isspace() else " " * (len(lead) - len(lead.lstrip()) + 2)
    return wrap(wording.readable(text), WIDTH, first=lead, later=indent)
