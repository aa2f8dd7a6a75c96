"""Whole-line edits made from syntax nodes. An edit that would leave a file that does not parse is not made."""

from __future__ import annotations

import ast

from samedevice.explaining.sources import Source
from samedevice.findings import Edit, Fix

__all__ = ["append", "as_fix", "enclosed", "insert_before", "parses", "replace_node"]


def replace_node(source: Source, node: ast.expr | ast.stmt, text: str) -> Edit | None:
    """The edit that puts `text` where `node` stands."""
    if node.end_lineno is None or node.end_col_offset is None:
        return None
    return _replace(source, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset, text)


def append(source: Source, node: ast.expr, text: str) -> Edit | None:
    """The edit that puts `text` right after `node`."""
    if node.end_lineno is None or node.end_col_offset is None:
        return None
    return _replace(source, node.end_lineno, node.end_col_offset, node.end_lineno, node.end_col_offset, text)


def insert_before(source: Source, statement: ast.stmt, text: str) -> Edit | None:
    """The edit that puts the line `text` before `statement`, as deep as it stands."""
    if not 0 < statement.lineno <= len(source.lines):
        return None
    old = source.lines[statement.lineno - 1].rstrip("\r\n")
    indent = old[: len(old) - len(old.lstrip())]
    if len(indent.encode()) != statement.col_offset:  # it does not begin its line
        return None
    return _checked(source, Edit(source.file, statement.lineno, statement.lineno, old, f"{indent}{text}\n{old}"))


def as_fix(edit: Edit | None, *, safe: bool = True) -> Fix | None:
    """The mend that makes `edit`, summed up by the lines that it changes; None for no edit."""
    if edit is None:
        return None
    old = edit.old.split("\n")
    changed = [line.strip() for line in edit.new.split("\n") if line not in old]
    return Fix(" ".join(changed), (edit,), safe)


def enclosed(source: Source, node: ast.expr) -> str:
    """The text of `node`, in brackets where a method call after it would bind to a part of it only."""
    text = source.text_of(node)
    plain = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    return text if plain else f"({text})"


def parses(source: Source, edit: Edit) -> bool:
    """Whether the file still parses with `edit` made."""
    lines = [line.rstrip("\r\n") for line in source.lines]
    lines[edit.line - 1 : edit.end_line] = edit.new.split("\n") if edit.new else []
    try:
        ast.parse("\n".join(lines) + "\n")
    except (SyntaxError, ValueError):
        return False
    return True


def _replace(source: Source, line: int, column: int, end_line: int, end_column: int, text: str) -> Edit | None:
    if not 0 < line <= end_line <= len(source.lines):
        return None
    old = "".join(source.lines[line - 1 : end_line]).rstrip("\r\n")
    first, last = source.lines[line - 1].encode(), source.lines[end_line - 1].encode()
    new = (first[:column] + text.encode() + last[end_column:]).decode().rstrip("\r\n")
    return _checked(source, Edit(source.file, line, end_line, old, new))


def _checked(source: Source, edit: Edit) -> Edit | None:
    return edit if edit.old != edit.new and parses(source, edit) else None
