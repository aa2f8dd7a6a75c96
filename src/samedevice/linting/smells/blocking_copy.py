"""SD307: pinned memory that is copied while the program waits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.smells.moves import is_move, keyword
from samedevice.linting.smells.scan import Scan, Seen, Smell
from samedevice.texts import say


def _check(scan: Scan) -> Iterator[Seen]:
    loaders = set(_pinned_loaders(scan))
    for call in scan.calls():
        if not is_move(call) or keyword(call, "non_blocking") is not None or not isinstance(call.func, ast.Attribute):
            continue
        if len(call.args) > 1 or any(each.arg is None for each in call.keywords):
            continue
        loader = _pinned(scan, call, loaders)
        if loader is not None:
            text = wording.text_of(call.func.value, scan.source)
            yield call, _message(text, loader), _fix(scan, call)


def _message(text: str, loader: str) -> str:
    if not loader:
        return say("`{code}` is in pinned memory, and this copy waits all the same", code=text)
    return say(
        "`{code}` is in pinned memory (`{loader}` pins it), and this copy waits all the same", code=text, loader=loader
    )


def _pinned_loaders(scan: Scan) -> Iterator[str]:
    """Names and attributes that hold a DataLoader with `pin_memory=True`."""
    for node in scan.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            pinned = keyword(node.value, "pin_memory")
            named = scan.qualified(node.value.func).rpartition(".")[2] == "DataLoader"
            if named and isinstance(pinned, ast.Constant) and pinned.value is True:
                yield from (ast.unparse(target) for target in node.targets)


def _pinned(scan: Scan, call: ast.Call, loaders: set[str]) -> str | None:
    """The loader whose tensors are in pinned memory, "" where the tensor says so itself, None where it is not."""
    assert isinstance(call.func, ast.Attribute)
    moved: ast.expr = call.func.value
    if isinstance(moved, ast.Call) and isinstance(moved.func, ast.Attribute) and moved.func.attr == "pin_memory":
        return ""
    while isinstance(moved, ast.Subscript | ast.Attribute):
        moved = moved.value
    if not isinstance(moved, ast.Name):
        return None
    for loop in scan.loops_of(call):
        if isinstance(loop, ast.For) and moved.id in _targets(loop):
            over = next((ast.unparse(each) for each in ast.walk(loop.iter) if _is_named(each, loaders)), None)
            return over if over and not _made_again(loop, moved.id, call) else None
    return None


def _is_named(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in names


def _targets(loop: ast.For) -> set[str]:
    return {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}


def _made_again(loop: ast.For, name: str, call: ast.Call) -> bool:
    """Whether the name gets another value in the loop before the move."""
    return any(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store) and each.lineno < call.lineno
        for statement in loop.body
        for each in ast.walk(statement)
    )


def _fix(scan: Scan, call: ast.Call) -> Fix:
    text = "non_blocking=True"
    return Fix(text, (edits.add_keyword(scan.source, call, text),))


SMELL = Smell("SD307", "blocking-copy", _check)
