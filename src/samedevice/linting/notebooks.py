"""Jupyter notebooks as Python: the code of all cells in one text, and what is found there back in its cell.

Lines that are no Python (`%magic`, `!command`, `name?`) are looked past, as IPython would run them. An edit changes the
text of its cell and leaves every other character of the file as it is. Nothing here decides what is a fault.
"""

from __future__ import annotations

import ast
import bisect
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from samedevice.findings import Culprit, Edit, FileError, Finding, Fix, Location
from samedevice.linting.lines import in_cell
from samedevice.linting.source import SourceError, tree_of
from samedevice.texts import say

__all__ = ["FLAGS", "Notebook", "cell_sources", "read", "with_sources"]

FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
"""A cell may await outside of a function."""

_PYTHON_CELL = re.compile(r"%%(?:time|timeit|capture|prun|memit|mprun|heat)\b")
_ASSIGNED = re.compile(r"(?P<head>\s*[\w.,\[\]'\" ]+=\s*)[%!](?!=)")
_NO_PYTHON = re.compile(r"\s*(?:[%!]|\?+\w|[,;/]\w|[\w.*]+\?+\s*;?$)")


@dataclass(frozen=True, slots=True)
class _Cell:
    number: int
    """From 1, cells of text counted too."""
    first: int
    """The line of `Notebook.code` where it begins."""
    untouchable: frozenset[int]
    """Lines of the cell that are no Python."""


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code of a notebook as one text."""

    file: str
    code: str
    cells: tuple[_Cell, ...]
    errors: tuple[FileError, ...]
    """Cells that are no Python; they are empty in `code`."""

    def relocated(self, finding: Finding) -> Finding:
        """A finding in `code` as one in its cell."""
        return replace(
            finding,
            message=self._message(finding.message),
            location=self._location(finding.location) if finding.location else None,
            culprit=self._culprit(finding.culprit, finding.location) if finding.culprit else None,
            fix=self._fix(finding.fix) if finding.fix else None,
        )

    def _cell(self, line: int) -> tuple[_Cell, int]:
        """The cell of a line, and the line in it."""
        at = bisect.bisect_right([cell.first for cell in self.cells], line) - 1
        return self.cells[at], line - self.cells[at].first + 1

    def _location(self, location: Location) -> Location:
        cell, line = self._cell(location.line)
        end = None if location.end_line is None else line + location.end_line - location.line
        return replace(location, line=line, end_line=end, cell=cell.number)

    def _culprit(self, culprit: Culprit, location: Location | None) -> Culprit:
        """A culprit of another cell keeps no line: it would be read as one of the finding's cell."""
        if culprit.line is None or location is None:
            return culprit
        cell, line = self._cell(culprit.line)
        return replace(culprit, line=line if cell is self._cell(location.line)[0] else None)

    def _fix(self, fix: Fix) -> Fix:
        edits = [self._edit(edit) for edit in fix.edits]
        return replace(fix, edits=tuple(edit for edit in edits if edit) if all(edits) else ())

    def _edit(self, edit: Edit) -> Edit | None:
        (cell, first), (last_cell, last) = self._cell(edit.line), self._cell(edit.end_line)
        if cell is not last_cell or not cell.untouchable.isdisjoint(range(first, last + 1)):
            return None
        return replace(edit, line=first, end_line=last, cell=cell.number)

    def _message(self, message: str) -> str:
        def cell_of(line: int) -> tuple[int, int]:
            cell, number = self._cell(line)
            return cell.number, number

        return in_cell(message, cell_of)


def read(text: str, file: str) -> Notebook:
    """The code in the text of a notebook.

    Args:
        text: the notebook's JSON.
        file: its name.

    Returns:
        The code; none where the notebook is in another language.

    Raises:
        SourceError: the text is no notebook.
    """
    lines: list[str] = []
    cells: list[_Cell] = []
    errors: list[FileError] = []
    sources = cell_sources(text)
    for number, source in sources.items():
        try:
            code, untouchable = _python(source)
        except SyntaxError as error:
            errors.append(FileError(file, _wrong_syntax(number, error)))
            code, untouchable = "\n" * source.count("\n"), frozenset()
        except (ValueError, RecursionError, MemoryError) as error:
            told = say("cell {cell}: {error}", cell=number, error=str(error) or type(error).__name__)
            errors.append(FileError(file, told))
            code, untouchable = "\n" * source.count("\n"), frozenset()
        cells.append(_Cell(number, len(lines) + 1, untouchable))
        lines += code.split("\n")
    return Notebook(file, "\n".join(lines) + "\n", tuple(cells), tuple(errors))


def _wrong_syntax(cell: int, error: SyntaxError) -> str:
    if error.lineno:
        return say("cell {cell}, line {line}: {error}", cell=cell, line=error.lineno, error=error.msg)
    return say("cell {cell}: {error}", cell=cell, error=error.msg)


def cell_sources(text: str) -> dict[int, str]:
    """The text of each code cell of a notebook in Python, by its number from 1.

    Raises:
        SourceError: the text is no notebook of format 4.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(say("no notebook: {error}", error=str(error))) from None
    if not isinstance(data, dict) or not isinstance(data.get("cells"), list):
        if isinstance(data, dict) and "worksheets" in data:
            raise SourceError(
                say(
                    "no notebook of format 4: it has no cells; it is of an older format, which "
                    "`jupyter nbconvert --to notebook` brings up to date"
                )
            )
        raise SourceError(say("no notebook of format 4: it has no cells"))
    if _language(data.get("metadata")) not in (None, "python"):
        return {}
    return {number: _joined(cell) for number, cell in enumerate(data["cells"], 1) if _is_code(cell)}


def _language(metadata: Any) -> str | None:
    for name, key in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(name) if isinstance(metadata, dict) else None
        if isinstance(part, dict) and isinstance(part.get(key), str):
            return str(part[key]).lower()
    return None


def _is_code(cell: Any) -> bool:
    return isinstance(cell, dict) and cell.get("cell_type") == "code"


def _joined(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    parts = source if isinstance(source, list) else [source]
    return "".join(part for part in parts if isinstance(part, str))


def _python(source: str) -> tuple[str, frozenset[int]]:
    """A cell as Python with as many lines, and the numbers of those that are none."""
    lines = source.split("\n")
    start = next((at for at, line in enumerate(lines) if line.strip()), 0)
    untouchable: set[int] = set()
    if lines[start].startswith("%%"):
        if not _PYTHON_CELL.match(lines[start]):
            return "\n" * (len(lines) - 1), frozenset(range(1, len(lines) + 1))
        lines[start] = "pass"
        untouchable.add(start + 1)
    if not _compiles("\n".join(lines)):
        untouchable |= _look_past(lines)
        tree_of("\n".join(lines), flags=FLAGS)
    return "\n".join(lines), frozenset(untouchable)


def _look_past(lines: list[str]) -> set[int]:
    """Put Python in the place of lines that are none; the numbers of these lines."""
    changed: set[int] = set()
    continued = False
    for at, line in enumerate(lines):
        assigned = _ASSIGNED.match(line)
        if continued:
            lines[at] = ""
        elif assigned:
            lines[at] = f"{assigned['head']}None"
        elif _NO_PYTHON.match(line):
            lines[at] = f"{line[: len(line) - len(line.lstrip())]}pass"
        else:
            continue
        changed.add(at + 1)
        continued = line.endswith("\\")
    return changed


def _compiles(code: str) -> bool:
    try:
        tree_of(code, flags=FLAGS)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def with_sources(text: str, sources: Mapping[int, str]) -> str:
    """The text of a notebook with new texts in some of its cells; all else stays as it is, to the character.

    Args:
        text: the notebook's JSON.
        sources: the new texts, by the cell's number.
    """
    plain = "\\u" not in text
    for start, end, number in reversed(list(_source_spans(text))):
        if number in sources:
            text = text[:start] + _written(text[start:end], sources[number], plain=plain) + text[end:]
    return text


def _source_spans(text: str) -> Iterator[tuple[int, int, int]]:
    """Where the value of "source" begins and ends in each cell, and the cell's number."""
    for key, start, _ in _members(text, _skip(text, 0)):
        if key == "cells":
            for number, (cell, _) in enumerate(_elements(text, start), 1):
                yield from ((at, end, number) for name, at, end in _members(text, cell) if name == "source")


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Key, start and end of each value of the object that begins at `at`."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        end = _end(text, start)
        yield key, start, end
        at = _after(text, end)


def _elements(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Start and end of each value of the list that begins at `at`."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        end = _end(text, at)
        yield at, end
        at = _after(text, end)


_DECODER = json.JSONDecoder()


def _end(text: str, start: int) -> int:
    return _DECODER.raw_decode(text, start)[1]


def _after(text: str, end: int) -> int:
    """Past the comma that may follow."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at] == "," else at


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _written(old: str, source: str, *, plain: bool) -> str:
    """`source` as JSON, laid out as `old` is: one string, or a list with a line each."""
    if not old.startswith("["):
        return json.dumps(source, ensure_ascii=not plain)
    spans = list(_elements(old, 0))
    if not spans:
        return json.dumps(source.splitlines(keepends=True), ensure_ascii=not plain)
    kept = {json.loads(old[start:end]): old[start:end] for start, end in spans}
    lead = old[: spans[0][0]]
    between = [old[end:start] for (_, end), (start, _) in itertools.pairwise(spans)]
    lines = re.findall(r"[^\n]*\n|[^\n]+", source)
    if len(lines) != len(spans):
        between = [between[0] if between else f",{lead[1:]}"] * (len(lines) - 1)
    written = [kept.get(line) or json.dumps(line, ensure_ascii=not plain) for line in lines]
    parts = (part for pair in itertools.zip_longest(written, between, fillvalue="") for part in pair)
    return lead + "".join(parts) + old[spans[-1][1] :]
