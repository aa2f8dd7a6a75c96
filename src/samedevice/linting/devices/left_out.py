"""Arguments that may be left out: what a function makes in place of `None` is what it works with then.

Both ways are interpreted. After them a tensor that was made for want of an argument counts, and not what is known of it
and of an unknown argument together, which is nothing.
"""

from __future__ import annotations

import ast
import re

from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.memory import Writes
from samedevice.linting.devices.places import CPU, Cell, Location, resolve
from samedevice.linting.devices.values import Sequence, Symbol, Tensor, Value

__all__ = ["arm_without", "is_made_instead", "keep_what_was_made", "tells_the_device"]


def arm_without(machine: Machine, test: ast.expr) -> bool | None:
    """Whether a condition holds (True) or fails (False) where an argument is left out; None where that is not asked."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return True if any(arm_without(machine, part) for part in test.values) else None
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
        return None
    nothing = test.comparators[0]
    if not isinstance(nothing, ast.Constant) or nothing.value is not None or len(test.ops) > 1:
        return None
    value = machine.lookup(test.left.id)
    if not isinstance(value, Symbol) or value.role not in ("argument", "forward"):
        return None
    return isinstance(test.ops[0], ast.Is) if isinstance(test.ops[0], ast.Is | ast.IsNot) else None


def is_made_instead(value: Value) -> bool:
    """Whether a value is a tensor that was made on the CPU for no device's sake, or consists of those."""
    if isinstance(value, Sequence) and value.items:
        return all(is_made_instead(item) for item in value.items)
    return (
        isinstance(value, Tensor)
        and value.kind == "plain"
        and value.held is None
        and value.scalar is not True
        and value.origin is not None
        and value.origin.how in ("made", "numpy")
        and value.place is not None
        and resolve(value.place) == CPU
    )


def tells_the_device(function: ast.AST, made: ast.AST, place: Location | None) -> bool:
    """Whether `made` is reached only without the argument that tells where `place` is: then no device is known."""
    found = resolve(place) if place is not None else None
    if not isinstance(found, Cell):
        return False
    words = set(re.findall(r"\w+", found.name))
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.IfExp) and isinstance(node.test, ast.Compare):
            name, arm = node.test.left, node.body if isinstance(node.test.ops[0], ast.Is) else node.orelse
            inside = [inner for part in (arm if isinstance(arm, list) else [arm]) for inner in ast.walk(part)]
            if isinstance(name, ast.Name) and name.id in words and any(inner is made for inner in inside):
                return True
    return False


def keep_what_was_made(machine: Machine, writes: Writes) -> None:
    """After the join of two arms: what the arm without the argument has made stays what the names stand for."""
    for scope, name, _, value in writes.values():
        if isinstance(scope, dict) and isinstance(value, Tensor | Sequence) and is_made_instead(value):
            machine.memory.write(scope, name, value)
