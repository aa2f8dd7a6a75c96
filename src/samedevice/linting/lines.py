"""Lines of a file: how a sentence names one, also in a notebook's cell, and the order in which findings stand.

Needs no rule and no interpreter, so that what is in the cache is shown without them.
"""

from __future__ import annotations

from collections.abc import Callable

from samedevice.findings import Finding
from samedevice.texts import Text, say, with_parts

__all__ = ["in_cell", "line", "position"]


def line(number: int) -> Text:
    """A line of the file, for a sentence. `in_cell` finds it there."""
    return say("line {line}", line=number)


_LINE = line(0).template


def in_cell(text: str, cell_of: Callable[[int], tuple[int, int]]) -> str:
    """`text` with each line of the file named by its cell in a notebook.

    Args:
        text: a sentence of a rule.
        cell_of: the number of the cell that a line is in, and its number there.
    """

    def named(part: Text) -> Text:
        if part.template != _LINE:
            return part
        cell, number = cell_of(int(part.values["line"]))
        return say("line {line} of cell {cell}", line=number, cell=cell)

    return with_parts(text, named)


def position(finding: Finding) -> tuple[int, int, str]:
    """What findings of one file are sorted by: line, column, code."""
    location = finding.location
    return (location.line, location.column or 0, finding.code) if location else (0, 0, finding.code)
