"""What operators give: of tensors a result somewhere, of short texts and small numbers the value itself."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from samedevice.linting.devices import operations, truth
from samedevice.linting.devices.lattice import join_all
from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.sequences import LONGEST, sequence
from samedevice.linting.devices.values import UNKNOWN, Constant, Sequence, Value
from samedevice.messages.operators import OPERATORS

__all__ = ["binary", "boolean", "compare", "unary"]


def binary(machine: Machine, node: ast.BinOp) -> Value:
    """`a + b` and the like; lists are joined."""
    left, right = machine.evaluate(node.left), machine.evaluate(node.right)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _fold(node.op, left.value, right.value)
    if isinstance(left, Sequence) and isinstance(right, Sequence) and isinstance(node.op, ast.Add):
        if left.items is not None and right.items is not None and len(left.items) + len(right.items) <= LONGEST:
            return sequence([*left.items, *right.items], node)
        return Sequence(None, join_all([v for v in (left.element, right.element) if v is not UNKNOWN]), node=node)
    if isinstance(left, Sequence) and isinstance(node.op, ast.Mult):
        return Sequence(None, left.element, node=node)
    if isinstance(left, Sequence) or isinstance(right, Sequence):
        return UNKNOWN
    name = OPERATORS[type(node.op)]
    role = "strict" if isinstance(node.op, ast.MatMult) else "elementwise"
    return operations.combine(machine, node, name, role, [(left, node.left, ""), (right, node.right, "")])


_FOLDS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def _fold(operator: ast.operator, left: Any, right: Any) -> Value:
    """Short texts and small numbers only: enough for device names and indices."""
    fold = _FOLDS.get(type(operator))
    if fold is None or not all(_is_small(value) for value in (left, right)):
        return UNKNOWN
    if isinstance(operator, ast.Mult) and not (isinstance(left, int) and isinstance(right, int)):
        return UNKNOWN
    try:
        return Constant(fold(left, right))
    except Exception:  # whatever Python raises for these two, the value is not known
        return UNKNOWN


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) < 200 and "%" not in value.replace("%d", "").replace("%s", "")
    return isinstance(value, int) and abs(value) < 1 << 40


def unary(machine: Machine, node: ast.UnaryOp) -> Value:
    """`-a`, `+a`, `~a` and `not a`."""
    if isinstance(node.op, ast.Not):
        known = truth.truth(machine, node.operand)
        return UNKNOWN if known is None else Constant(not known)
    value = machine.evaluate(node.operand)
    if isinstance(value, Constant) and isinstance(value.value, int | float) and isinstance(node.op, ast.USub):
        return Constant(-value.value)
    return operations.combine(machine, node, "neg", "none", [(value, node.operand, "")])


def boolean(machine: Machine, node: ast.BoolOp) -> Value:
    """`a and b`, `a or b`."""
    is_or = isinstance(node.op, ast.Or)
    options: list[Value] = []
    for part in node.values:
        value = machine.evaluate(part)
        known = truth.of_value(value)
        if known is is_or:
            return join_all([*options, value]) if options else value
        if known is None:
            options.append(value)
        last = value
    return join_all(options) if options else last


def compare(machine: Machine, node: ast.Compare) -> Value:
    """`a < b` and the like."""
    known = truth.compare(machine, node)
    if known is not None:
        return Constant(known)
    if len(node.ops) == 1 and not isinstance(node.ops[0], ast.In | ast.NotIn | ast.Is | ast.IsNot):
        left, right = machine.evaluate(node.left), machine.evaluate(node.comparators[0])
        operands: list[operations.Argument] = [(left, node.left, ""), (right, node.comparators[0], "")]
        name = OPERATORS[type(node.ops[0])]
        return operations.combine(machine, node, name, "elementwise", operands)
    return UNKNOWN
