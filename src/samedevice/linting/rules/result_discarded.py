"""SD105: `x.to(device)` returns the moved tensor, and nobody keeps it."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import MoveDiscarded
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: MoveDiscarded) -> bool:
    return True


def _message(fact: MoveDiscarded, source: Source) -> str:
    name = wording.text_of(fact.target, source)
    if fact.loop is not None:
        over = wording.text_of(fact.loop.iter, source)
        return say(
            "only the loop's variable `{name}` gets the moved tensor; what `{over}` holds stays where it is",
            name=name,
            over=over,
        )
    return say(
        "the result of `{code}` is dropped; `{name}` itself stays where it is",
        code=wording.text_of(fact.node.value, source),
        name=name,
    )


def _fix(fact: MoveDiscarded, source: Source) -> Fix | None:
    if fact.loop is not None:
        return _loop_fix(fact.loop, fact.node.value, source)
    if not isinstance(fact.target, ast.Name | ast.Attribute | ast.Subscript):
        return None
    if isinstance(fact.target, ast.Name) and not _is_own(fact.target.id, fact.where.node):
        return None
    text = f"{source.segment(fact.target)} = {source.segment(fact.node)}"
    return Fix(text, (edits.replace(source, fact.node, text),))


def _loop_fix(loop: ast.For | ast.AsyncFor, call: ast.expr, source: Source) -> Fix | None:
    """`a, b = (x.to(device) for x in (a, b))`, and for `for key, x in xs.items()` an entry each round."""
    move = source.segment(call)
    over, target = loop.iter, loop.target
    if isinstance(over, ast.Tuple | ast.List) and isinstance(target, ast.Name) and not loop.orelse:
        names = [part.id for part in over.elts if isinstance(part, ast.Name)]
        if len(names) != len(over.elts) or len(set(names)) != len(names) or len(names) < 2:
            return None
        joined = ", ".join(names)
        text = f"{joined} = ({move} for {target.id} in ({joined}))"
        return Fix(text, (edits.replace(source, loop, text),))
    if isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name) and isinstance(over, ast.Call):
        entries = over.func.value if isinstance(over.func, ast.Attribute) and over.func.attr == "items" else None
        if isinstance(entries, ast.Name | ast.Attribute):
            text = f"{source.segment(entries)}[{target.elts[0].id}] = {move}"
            return Fix(text, (edits.replace(source, loop.body[0], text),))
    return None


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
