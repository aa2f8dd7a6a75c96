"""SD105: `x.to(device)` returns the moved tensor, and nobody keeps it."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import MoveDiscarded
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: MoveDiscarded) -> bool:
    return True


def _message(fact: MoveDiscarded, source: Source) -> str:
    name = wording.text_of(fact.target, source)
    return f"the result of `{wording.text_of(fact.node.value, source)}` is dropped; `{name}` itself stays where it is"


def _fix(fact: MoveDiscarded, source: Source) -> Fix | None:
    if not isinstance(fact.target, ast.Name | ast.Attribute | ast.Subscript):
        return None
    if isinstance(fact.target, ast.Name) and not _is_own(fact.target.id, fact.where.node):
        return None
    text = f"{source.segment(fact.target)} = {source.segment(fact.node)}"
    return Fix(text, (edits.replace(source, fact.node, text),))


def _is_own(name: str, function: ast.AST | None) -> bool:
    """Whether assigning to `name` there does not make a new variable of what is one of an outer function."""
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    inside = (part for part in ast.walk(function) if isinstance(part, ast.arg | ast.Name))
    return any(
        part.arg == name if isinstance(part, ast.arg) else part.id == name and isinstance(part.ctx, ast.Store)
        for part in inside
    )


RULE = Rule("SD105", "result-discarded", MoveDiscarded, _claims, _message, fix=_fix)
