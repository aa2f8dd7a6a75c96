"""Mends by order: what copies a model's tensors, or holds them, comes after the line that moves the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from samedevice.explaining.diagnosing.evidence import Evidence
from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, is_module, is_optimizer, tensors_of_module
from samedevice.explaining.mending.edits import as_fix, insert_after, lines_of, replace_lines
from samedevice.explaining.routes import resolve, search
from samedevice.explaining.sources import Source
from samedevice.explaining.syntax import bindings_of, call_name, move_calls
from samedevice.findings import Fix
from samedevice.texts import say

__all__ = ["after_the_move", "block_of", "moved_after", "reloaded", "variables_of"]


def after_the_move(evidence: Evidence) -> Fix | None:
    """The statement that took copies of a model's tensors goes behind the one that moves the model.

    `ema = EMA(model); model.to(device)` becomes `model.to(device); ema = EMA(model)`; the same for an optimizer's
    `load_state_dict`, which brings the state to where the parameters are at that moment.
    """
    route = evidence.suspect.route if evidence.suspect is not None else None
    if route is None:
        return None
    start = route.steps[0].owner if route.steps else route.value
    for frame, name in variables_of(start, evidence):
        for copying in _copying(frame, name):
            moving = _moving_after(frame, copying, evidence.expected)
            fix = moved_after(frame.source, copying, moving) if moving is not None else None
            if fix is not None:
                return fix
    return None


def variables_of(wanted: Any, evidence: Evidence) -> Iterator[tuple[UserFrame, str]]:
    """The variables of the user's frames that hold `wanted`, innermost frame first; a method's own `self` is none."""
    for frame in reversed(evidence.frames):
        for name, value in list(frame.frame.f_locals.items()):
            if value is wanted and name not in ("self", "cls") and not name.startswith("__"):
                yield frame, name


def _copying(frame: UserFrame, name: str) -> Iterator[ast.stmt]:
    """Statements before the running line that construct what `name` holds, or load state into it; the last first."""
    scope = frame.definition or frame.source.tree
    for node in sorted(ast.walk(scope), key=lambda node: -getattr(node, "lineno", 0)):
        if isinstance(node, ast.Expr) and node.lineno < frame.line and call_name(node.value) == "load_state_dict":
            callee = node.value.func if isinstance(node.value, ast.Call) else None
            owner = callee.value if isinstance(callee, ast.Attribute) else None
            if isinstance(owner, ast.Name) and owner.id == name:
                yield node
    for binding in reversed(bindings_of(name, scope)):
        if isinstance(binding.node, ast.Assign) and binding.line < frame.line:
            yield binding.node


def _moving_after(frame: UserFrame, copying: ast.stmt, expected: str) -> ast.stmt | None:
    """The first later statement of the same block that moves a module which `copying` reads, or any for a load."""
    read = {node.id for node in ast.walk(copying) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    loads = call_name(copying.value) == "load_state_dict" if isinstance(copying, ast.Expr) else False
    block = block_of(frame.source, copying) or []
    for statement in block[block.index(copying) + 1 :] if copying in block else ():
        if statement.lineno >= frame.line:
            return None
        name = _moved_module(statement)
        route = resolve(ast.Name(name, ast.Load()), frame) if name else None
        if route is not None and is_module(route.value) and (loads or name in read) and _is_on(route.value, expected):
            return statement
    return None


def _moved_module(statement: ast.stmt) -> str:
    """The variable that `model.to(device)` or `model = model.to(device)` moves; "" for any other statement."""
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
    if not isinstance(value, ast.Call) or value not in list(move_calls(value)):
        return ""
    moved = value.func.value if isinstance(value.func, ast.Attribute) else None
    return moved.id if isinstance(moved, ast.Name) else ""


def _is_on(module: Any, device: str) -> bool:
    return any(device_of(tensor) == device for _, _, tensor in tensors_of_module(module))


def moved_after(source: Source, statement: ast.stmt, other: ast.stmt) -> Fix | None:
    """The edit that puts a statement behind a later one of its block; None where what it sets is needed before."""
    block = block_of(source, statement)
    if block is None or other not in block or statement.end_lineno is None or other.end_lineno is None:
        return None
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if isinstance(statement, ast.Expr):
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} - _read_only(statement)
    between = block[block.index(statement) + 1 : block.index(other) + 1]
    if any(isinstance(node, ast.Name) and node.id in names for each in between for node in ast.walk(each)):
        return None
    start = _with_comment(source, statement)
    moved = lines_of(source, start, statement.end_lineno)
    rest = lines_of(source, statement.end_lineno + 1, other.end_lineno)
    while rest and not rest[0].strip():
        rest.pop(0)
    summary = say("{code}  (after line {line})", code=source.line(statement.lineno), line=other.end_lineno)
    return as_fix(replace_lines(source, start, other.end_lineno, [*rest, *moved]), summary=summary)


def _read_only(statement: ast.Expr) -> set[str]:
    """The variables that a statement like `optimizer.load_state_dict(state["optimizer"])` only reads."""
    called = statement.value.func if isinstance(statement.value, ast.Call) else None
    owner = called.value if isinstance(called, ast.Attribute) else None
    changed = {node.id for node in ast.walk(owner) if isinstance(node, ast.Name)} if owner is not None else set()
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} - changed


def _with_comment(source: Source, statement: ast.stmt) -> int:
    """The first of the comment lines that stand right above `statement`, else its own line."""
    first = statement.lineno
    while source.line(first - 1).startswith("#"):
        first -= 1
    return first


def block_of(source: Source, statement: ast.stmt) -> list[ast.stmt] | None:
    """The list of statements that `statement` is one of."""
    for node in ast.walk(source.tree):
        for _, block in ast.iter_fields(node):
            if isinstance(block, list) and any(each is statement for each in block):
                return block
    return None


def reloaded(evidence: Evidence) -> Fix | None:
    """`optimizer.load_state_dict(optimizer.state_dict())` behind the move: it brings the state to the parameters.

    Source: torch/optim/optimizer.py, `_process_value_according_to_param_policy`, 2.6 to 2.13.
    """
    optimizer = next((step.owner for step in evidence.steps() if _is_state(step.owner, step.key)), None)
    if optimizer is None:
        return None
    parameter = next((step.key for step in evidence.steps() if step.kind == "item" and device_of(step.key)), None)
    origin = evidence.origins.origin_of(parameter) if evidence.origins is not None and parameter is not None else None
    for frame in evidence.frames:
        route = next(search(frame, lambda value: value is optimizer), None)
        if route is None or "…" in route.text:
            continue
        line = f"{route.text}.load_state_dict({route.text}.state_dict())"
        if origin is not None and origin.event == "moved" and origin.file == frame.file:
            moving = frame.source.statement_at(origin.line)
            inside = frame.source.function_at(origin.line) is frame.definition
            if moving is not None and inside and _runs_before(frame, moving):
                return as_fix(insert_after(frame.source, moving, line))
    return None


def _is_state(owner: Any, key: Any) -> bool:
    return is_optimizer(owner) and key == "state"


def _runs_before(frame: UserFrame, statement: ast.stmt) -> bool:
    return statement.lineno < frame.line or bool(frame.source.loops_around(statement.lineno))
