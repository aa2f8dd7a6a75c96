"""SD305: `.item()` in every step of a training loop, each of which waits for the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.smells.scan import Scan, Seen, Smell
from samedevice.texts import say


def _check(scan: Scan) -> Iterator[Seen]:
    for call in scan.calls():
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "item" or call.args or call.keywords:
            continue
        loop = next(scan.loops_of(call), None)
        if loop is not None and _trains(scan, loop) and not _is_conditional(scan, call, loop):
            name = wording.text_of(call.func.value, scan.source)
            message = say("`{name}.item()` waits for the device in every step", name=name)
            yield call, message, _fix(scan, call, call.func)


def _trains(scan: Scan, loop: ast.AST) -> bool:
    """Whether the loop itself, and not one inside it, makes training steps."""
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr == "backward"
        and next(scan.loops_of(each), None) is loop
        for each in ast.walk(loop)
    )


def _is_conditional(scan: Scan, node: ast.AST, loop: ast.AST) -> bool:
    """Whether an `if` decides about it: every hundredth step is no smell."""
    for each in scan.ancestors(node):
        if each is loop:
            return False
        if isinstance(each, ast.If | ast.IfExp | ast.Try):
            return True
    return False


def _fix(scan: Scan, call: ast.Call, function: ast.Attribute) -> Fix | None:
    """A sum may stay on the device; what else is done with the number is not known."""
    statement = scan.parents[call]
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add) and statement.value is call:
        text = f"{scan.source.segment(function.value)}.detach()"
        return Fix(
            say("+= {code}, and one .item() after the loop", code=text),
            (edits.replace(scan.source, call, text),),
            safe=False,
        )
    return None


SMELL = Smell("SD305", "item-per-step", _check)
