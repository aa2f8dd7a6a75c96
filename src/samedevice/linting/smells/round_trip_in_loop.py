"""SD304: a tensor that goes to the CPU and back in every round of a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.linting.smells.moves import is_move, is_to_cpu
from samedevice.linting.smells.scan import Scan, Seen, Smell

_FROM_NUMPY = ("torch.from_numpy", "torch.tensor", "torch.as_tensor")


def _check(scan: Scan) -> Iterator[Seen]:
    for call in scan.calls():
        loop = next(scan.loops_of(call), None)
        if loop is None or not is_move(call) or not isinstance(call.func, ast.Attribute):
            continue
        left = _to_cpu_in(scan, call.func.value, loop, call)
        if left is not None:
            where = "" if left.lineno == call.lineno else f", after line {left.lineno} took it to the CPU"
            what = " ".join(scan.source.segment(call.func.value).split())
            yield call, f"`{_short(what)}` goes back to the device in every round{where}; stay there", None


def _short(text: str) -> str:
    return text if len(text) <= 50 else f"{text[:49]}…"


def _to_cpu_in(scan: Scan, node: ast.expr, loop: ast.AST, use: ast.Call) -> ast.Call | None:
    """The move to the CPU that the value of `node` has gone through in the same round."""
    for part in _chain(scan, node):
        if isinstance(part, ast.Call) and is_to_cpu(part):
            return part
        if isinstance(part, ast.Name):
            return next(
                (
                    found
                    for each in ast.walk(loop)
                    if isinstance(each, ast.Assign)
                    and each.lineno < use.lineno
                    and loop is next(scan.loops_of(each), None)
                    and any(isinstance(target, ast.Name) and target.id == part.id for target in each.targets)
                    and (found := _to_cpu_by_chain(scan, each.value))
                ),
                None,
            )
    return None


def _to_cpu_by_chain(scan: Scan, node: ast.expr) -> ast.Call | None:
    return next((part for part in _chain(scan, node) if isinstance(part, ast.Call) and is_to_cpu(part)), None)


def _chain(scan: Scan, node: ast.expr) -> Iterator[ast.expr]:
    """The value, what its method was called on, what `torch.from_numpy` was given, and so on down to a name."""
    current: ast.expr | None = node
    while current is not None:
        yield current
        if isinstance(current, ast.Call):
            made = scan.qualified(current.func) in _FROM_NUMPY and current.args
            current = current.args[0] if made else current.func
        elif isinstance(current, ast.Attribute | ast.Subscript):
            current = current.value
        else:
            current = None


SMELL = Smell("SD304", "round-trip-in-loop", _check)
