"""SD304: a tensor that goes to the CPU and back in every round of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.linting import lines, wording
from samedevice.linting.smells.moves import is_move, is_to_cpu
from samedevice.linting.smells.scan import Scan, Seen, Smell
from samedevice.texts import say


def _check(scan: Scan) -> Iterator[Seen]:
    for call in scan.calls():
        loop = next(scan.loops_of(call), None)
        if loop is None or not is_move(call) or not isinstance(call.func, ast.Attribute):
            continue
        left = _to_cpu_in(scan, call.func.value, loop, call)
        if left is not None:
            yield call, _message(wording.text_of(call.func.value, scan.source), left, call), None


def _message(code: str, left: ast.Call, call: ast.Call) -> str:
    if left.lineno == call.lineno:
        return say("`{code}` goes back to the device in every round; stay there", code=code)
    return say(
        "`{code}` goes back to the device in every round, after {line} took it to the CPU; stay there",
        code=code,
        line=lines.line(left.lineno),
    )


def _to_cpu_in(scan: Scan, node: ast.expr, loop: ast.AST, use: ast.Call) -> ast.Call | None:
    """The move to the CPU that the value of `node` has gone through in the same round."""
    for part in _chain(scan, node):
        found = _assigned(scan, part.id, loop, use) if isinstance(part, ast.Name) else None
        if isinstance(part, ast.Call) and is_to_cpu(part):
            found = part
        if found is not None:
            return found
    return None


def _assigned(scan: Scan, name: str, loop: ast.AST, use: ast.Call) -> ast.Call | None:
    """The move to the CPU in what the loop has assigned to `name` before `use`."""
    for each in ast.walk(loop):
        if isinstance(each, ast.Assign) and each.lineno < use.lineno and loop is next(scan.loops_of(each), None):
            named = any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
            found = _to_cpu_by_chain(scan, each.value) if named else None
            if found is not None:
                return found
    return None


def _to_cpu_by_chain(scan: Scan, node: ast.expr) -> ast.Call | None:
    return next((part for part in _chain(scan, node) if isinstance(part, ast.Call) and is_to_cpu(part)), None)


def _chain(scan: Scan, node: ast.expr) -> Iterator[ast.expr]:
    """The value, what its methods were called on, what the functions around that were given, down to names."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        if isinstance(current, ast.Call):
            waiting += current.args if _is_function(scan, current.func) else [current.func]
        elif isinstance(current, ast.Attribute | ast.Subscript):
            waiting.append(current.value)


def _is_function(scan: Scan, node: ast.expr) -> bool:
    """Whether it is a function of a module or of the file, and no method."""
    return isinstance(node, ast.Name) or scan.qualified(node) != ""


SMELL = Smell("SD304", "round-trip-in-loop", _check)
