"""The source line of a finding with the flagged part underlined. Reads values, opens no file."""

from __future__ import annotations

from samedevice.findings import Location
from samedevice.reports.columns import fitting, width
from samedevice.reports.wording import printable

__all__ = ["snippet"]

_BEFORE = 40
"""How many columns of a long line stay before the flagged part."""


def snippet(location: Location, columns: int) -> tuple[str, str] | None:
    """The line and, under it, carets; None where the line or the place in it is not known.

    Args:
        location: a place with `source`, `source_column` and `column`.
        columns: how wide the two may be; a longer line loses its ends, never the beginning of the flagged part.
    """
    source, first, column = location.source, location.source_column, location.column
    if not source or first is None or column is None or column < first:
        return None
    start = column - first
    ends_here = location.end_line in (None, location.line) and location.end_column is not None
    end = (location.end_column or 0) - first if ends_here else len(source)
    line = printable(source)
    before, flagged = width(printable(source[:start])), width(printable(source[:end]))
    if width(line) > columns and before > _BEFORE:
        line, dropped = _without_beginning(line, before - _BEFORE)
        before, flagged = before - dropped, flagged - dropped
    if width(line) > columns:
        line = fitting(line, columns - 1) + "…"
    carets = max(1, min(flagged, width(line)) - before)
    return line, " " * before + "^" * carets


def _without_beginning(line: str, columns: int) -> tuple[str, int]:
    """`line` with "…" for at least that much of its beginning, and how many columns narrower it is."""
    taken = 0
    for at, character in enumerate(line):
        if taken >= columns:
            return "…" + line[at:], taken - 1
        taken += width(character)
    return line, 0
