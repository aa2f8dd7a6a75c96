"""Edits that a rule proposes: a change of one expression, as the whole lines that it stands in."""

from __future__ import annotations

import ast

from samedevice.findings import Edit
from samedevice.linting.source import Source

__all__ = ["add_keyword", "add_keywords", "append", "needs_parentheses", "replace", "replace_all"]


def replace(source: Source, node: ast.AST, text: str) -> Edit:
    """Put `text` in the place of a node."""
    return replace_all(source, [(node, text)])


def replace_all(source: Source, changes: list[tuple[ast.AST, str]]) -> Edit:
    """Put several texts in the places of several nodes that do not overlap, as one edit of the lines they span."""
    spans = sorted((*source.span(node), text) for node, text in changes)
    first, last = spans[0][0][0], max(end[0] for _, end, _ in spans)
    lines = [source.line(number) for number in range(first, last + 1)]
    old = "\n".join(lines)
    new = old
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for start, end, text in reversed(spans):
        new = new[: starts[start[0] - first] + start[1]] + text + new[starts[end[0] - first] + end[1] :]
    return Edit(source.file, first, last, old, new)


def append(source: Source, node: ast.AST, suffix: str) -> Edit:
    """Put `suffix` after an expression, in parentheses where it needs them: `x` becomes `x.cpu()`."""
    text = source.segment(node)
    return replace(source, node, (f"({text})" if needs_parentheses(node) else text) + suffix)


def needs_parentheses(node: ast.AST) -> bool:
    """Whether what follows an expression would bind to its last part only."""
    return not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)


def add_keyword(source: Source, call: ast.Call, keyword: str) -> Edit:
    """Add `device=x.device` and the like to a call: after what it gives by position and `dtype`, before the rest."""
    return add_keywords(source, [call], keyword)


def add_keywords(source: Source, calls: list[ast.Call], keyword: str) -> Edit:
    """Add the same keyword to several calls, none of which is inside another, as one edit."""
    return replace_all(source, [_with_keyword(source, call, keyword) for call in calls])


def _with_keyword(source: Source, call: ast.Call, keyword: str) -> tuple[ast.AST, str]:
    """The node to replace, and its new text."""
    before = [*call.args, *(part.value for part in call.keywords if part.arg == "dtype")]
    later = [part for part in call.keywords if part.arg != "dtype"]
    if not before and later:
        return later[0], f"{keyword}, {source.segment(later[0])}"
    if not before:
        return call, f"{source.segment(call.func)}({keyword})"
    last = max(before, key=lambda part: source.span(part)[1])
    return last, f"{source.segment(last)}, {keyword}"
