"""Where code of another file is interpreted: what of it can be seen from the file that is linted.

A fault is reported in the file itself only. What goes wrong inside an imported function is the caller's fault where the
caller gave it what was in the wrong place; everything else is found when that other file is linted.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from samedevice.linting.devices.contents import all_inside
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.frames import Frame
from samedevice.linting.devices.values import Module, Scope, Tensor, Value

__all__ = ["from_outside", "own_frame", "own_node"]


def own_frame(frames: Sequence[Frame], own: Scope) -> Frame | None:
    """The innermost function of the file itself, whose names end in `own`."""
    position = _innermost(frames, own)
    return frames[position] if position is not None else None


def own_node(frames: Sequence[Frame], own: Scope) -> ast.AST | None:
    """The expression in the file itself that led to the code of another one that is being interpreted."""
    entered = _entered(frames, own)
    return entered.call if entered is not None else None


def from_outside(
    frames: Sequence[Frame], own: Scope, operands: list[Operand]
) -> tuple[ast.AST, str, list[Operand]] | None:
    """An operation in another file as the call that led to it: node, name and operands; None where none did."""
    entered = _entered(frames, own)
    if entered is None or entered.call is None:
        return None
    seen = [_given(entered, entered.call, operand) for operand in operands]
    return None if all(operand.inside for operand in seen) else (entered.call, entered.name, seen)


def _innermost(frames: Sequence[Frame], own: Scope) -> int | None:
    return next((i for i in range(len(frames) - 1, -1, -1) if frames[i].scopes[-1] is own), None)


def _entered(frames: Sequence[Frame], own: Scope) -> Frame | None:
    """The function of another file that the file itself has called."""
    position = _innermost(frames, own)
    if position is None or position + 1 >= len(frames):
        return None
    return frames[position + 1]


def _given(entered: Frame, call: ast.AST, operand: Operand) -> Operand:
    """An operand, written as the argument or the receiver that it came from."""
    for name, value in entered.scopes[0].items():
        if _is_same(value, operand.value):
            receives = value is entered.receiver
            node = getattr(call, "func", call) if receives else _argument(entered, call, name)
            return Operand(_seen(value, operand.value), operand.place, node, operand.argument)
    origin = getattr(operand.value, "origin", None)
    if isinstance(operand.value, Tensor) and origin is not None and not origin.foreign:
        # Made in the file itself, and given away before.
        return Operand(operand.value, operand.place, origin.node, operand.argument)
    return Operand(operand.value, operand.place, call, operand.argument, inside=True)


def _is_same(given: Value, used: Value) -> bool:
    if given is used:
        return True
    if isinstance(given, Tensor) and isinstance(used, Tensor):
        return given.origin is not None and given.origin is used.origin and given.held is used.held
    if isinstance(given, Module):
        inner = used.owner if isinstance(used, Tensor) else used
        return isinstance(inner, Module) and id(inner) in all_inside(given)
    return False


def _seen(given: Value, used: Value) -> Value:
    return given if isinstance(given, Module) else used


def _argument(entered: Frame, call: ast.AST, name: str) -> ast.AST:
    """The expression that was given for a parameter."""
    if not isinstance(call, ast.Call):
        return call
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    spec = getattr(entered.node, "args", None)
    names = [parameter.arg for parameter in (*spec.posonlyargs, *spec.args)] if isinstance(spec, ast.arguments) else []
    if entered.receiver is not None:
        names = names[1:]
    position = names.index(name) if name in names else len(call.args)
    starred = any(isinstance(part, ast.Starred) for part in call.args[: position + 1])
    return call.args[position] if position < len(call.args) and not starred else call
