"""Whole-line edits made from syntax nodes. An edit that would leave a file that does not parse is not made."""

from __future__ import annotations

import ast
from typing import TypeAlias

from samedevice.explaining.sources import Source
from samedevice.explaining.spelling import place_for_argument
from samedevice.findings import Edit, Fix

__all__ = [
    "append",
    "as_fix",
    "enclosed",
    "indent_of",
    "insert_after",
    "insert_before",
    "lines_of",
    "replace_lines",
    "replace_node",
    "with_keyword",
]


_Splice: TypeAlias = "tuple[int, int, int, int, str]"
"""Line, column, end line and end column as in `ast`, and what is put there."""


def replace_node(source: Source, node: ast.expr | ast.stmt, text: str) -> Edit | None:
    """The edit that puts `text` where `node` stands."""
    if node.end_lineno is None or node.end_col_offset is None:
        return None
    return _spliced(source, (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, text))


def append(source: Source, node: ast.expr, text: str) -> Edit | None:
    """The edit that puts `text` right after `node`."""
    if node.end_lineno is None or node.end_col_offset is None:
        return None
    return _spliced(source, (node.end_lineno, node.end_col_offset, node.end_lineno, node.end_col_offset, text))


def with_keyword(source: Source, name: str, value: str, *calls: ast.Call) -> Edit | None:
    """The edit that gives each of `calls` the argument `name=value`, behind its last one."""
    splices = [_argument(source, call, f"{name}={value}") for call in calls]
    found = [splice for splice in splices if splice is not None]
    return _spliced(source, *found) if found and len(found) == len(splices) else None


def _argument(source: Source, call: ast.Call, text: str) -> _Splice | None:
    written = source.exact_text(call)
    place = place_for_argument(written)
    if place is None:
        return None
    row, column, follows = place
    offset = len(written.split("\n")[row][:column].encode()) + (call.col_offset if row == 0 else 0)
    return call.lineno + row, offset, call.lineno + row, offset, f", {text}" if follows else text


def insert_before(source: Source, statement: ast.stmt, text: str) -> Edit | None:
    """The edit that puts the line `text` before `statement`, as deep as it stands."""
    indent = indent_of(source, statement)
    if indent is None:
        return None
    line = statement.lineno
    return replace_lines(source, line, line, [f"{indent}{text}", *lines_of(source, line, line)])


def insert_after(source: Source, statement: ast.stmt, *texts: str) -> Edit | None:
    """The edit that puts the lines `texts` after `statement`, as deep as it stands."""
    indent, line = indent_of(source, statement), statement.end_lineno or 0
    if indent is None:
        return None
    return replace_lines(source, line, line, [*lines_of(source, line, line), *(f"{indent}{each}" for each in texts)])


def replace_lines(source: Source, line: int, end_line: int, new: list[str]) -> Edit | None:
    """The edit that puts the lines `new` in place of those from `line` to `end_line`.

    Returns:
        None where that changes nothing, or leaves a file that does not parse.
    """
    if not 0 < line <= end_line <= len(source.lines):
        return None
    old = lines_of(source, line, end_line)
    edit = Edit(source.file, line, end_line, "\n".join(old), "\n".join(new))
    return edit if edit.old != edit.new and _parses(source, edit) else None


def as_fix(edit: Edit | None, *, safe: bool = True, summary: str | None = None) -> Fix | None:
    """The mend that makes `edit`, summed up by the lines that it changes unless told otherwise; None for no edit."""
    if edit is None:
        return None
    old = edit.old.split("\n")
    changed = [line.strip() for line in edit.new.split("\n") if line not in old]
    return Fix(" ".join(changed) if summary is None else summary, (edit,), safe)


def enclosed(source: Source, node: ast.expr) -> str:
    """The text of `node`, in brackets where a method call after it would bind to a part of it only."""
    text = source.exact_text(node)
    plain = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    return text if plain else f"({text})"


def indent_of(source: Source, statement: ast.stmt) -> str | None:
    """What stands before `statement` on its line, where that is nothing but space."""
    if not 0 < statement.lineno <= len(source.lines):
        return None
    before = source.lines[statement.lineno - 1].encode()[: statement.col_offset].decode()
    return before if not before.strip() else None


def lines_of(source: Source, line: int, end_line: int) -> list[str]:
    """The lines from `line` to `end_line`, without their ends."""
    return [text.rstrip("\r\n") for text in source.lines[line - 1 : end_line]]


def _parses(source: Source, edit: Edit) -> bool:
    """Whether the file still parses with `edit` made."""
    lines = lines_of(source, 1, len(source.lines))
    lines[edit.line - 1 : edit.end_line] = edit.new.split("\n") if edit.new else []
    try:
        ast.parse("\n".join(lines) + "\n")
    except (SyntaxError, ValueError):
        return False
    return True


def _spliced(source: Source, *splices: _Splice) -> Edit | None:
    """The edit that makes all of `splices`; none reaches into another."""
    first, last = min(splice[0] for splice in splices), max(splice[2] for splice in splices)
    if not 0 < first <= last <= len(source.lines):
        return None
    lines = [line.encode() for line in lines_of(source, first, last)]
    for line, column, end_line, end_column, text in sorted(splices, reverse=True):
        joined = lines[line - first][:column] + text.encode() + lines[end_line - first][end_column:]
        lines[line - first : end_line - first + 1] = [joined]
    return replace_lines(source, first, last, b"\n".join(lines).decode().split("\n"))
