"""What a branch that may or may not be taken tells beyond the state after it."""

from __future__ import annotations

import ast
import re

from samedevice.linting.devices import moves
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.memory import Writes
from samedevice.linting.devices.method_tables import ACCELERATORS
from samedevice.linting.devices.places import CPU, Certainty, Place, difference
from samedevice.linting.devices.values import Module, Tensor

__all__ = ["asks_for_device", "for_no_items", "keep_accidental_moves", "note_stale_caches"]


_KINDS = "|".join(sorted(ACCELERATORS))
_WORDS = re.compile(rf"device|cuda|gpu|is_cpu|mps|(?<![a-z])(?:{_KINDS})(?![a-z])", re.IGNORECASE)
"""Kinds as words of their own: there is one in `input`, and one in `manipulate`."""


def asks_for_device(machine: Machine, test: ast.expr) -> bool:
    """Whether a condition has to do with devices."""
    known = machine.answers.get(test)
    if known is None:
        known = machine.answers[test] = _names_device(test)
    return known


def _names_device(test: ast.expr) -> bool:
    for part in ast.walk(test):
        name = part.id if isinstance(part, ast.Name) else part.attr if isinstance(part, ast.Attribute) else ""
        if name and _WORDS.search(name):
            return True
    return False


def for_no_items(machine: Machine, function: ast.AST, part: ast.AST) -> bool:
    """Whether `part` is reached only where a list of the function is empty: then there is no item to tell a device."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and any(inner is part for stmt in node.body for inner in ast.walk(stmt)):
            name = _said_empty(node.test)
            if name is not None and not isinstance(machine.lookup(name), Tensor):
                return True
    return False


def _said_empty(test: ast.expr) -> str | None:
    """The name in `not items` and `len(items) == 0`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        counted = test.operand
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        zero = test.comparators[0]
        counted = test.left if isinstance(zero, ast.Constant) and zero.value == 0 else zero
    else:
        return None
    if isinstance(counted, ast.Call) and isinstance(counted.func, ast.Name) and counted.func.id == "len":
        counted = counted.args[0] if counted.args else counted
    return counted.id if isinstance(counted, ast.Name) else None


def note_stale_caches(machine: Machine, node: ast.If, writes: Writes) -> None:
    """A cache that is filled for another device now than at an earlier call, while the condition asks only for the key.

    Where the condition does not hold, the earlier tensor is handed out, on the earlier device.
    """
    if asks_for_device(machine, node.test):
        return
    for _, key, before, after in writes.values():
        if key == "apart" and before is None and after is not None:
            before, after = after
        if not isinstance(before, Tensor) or not isinstance(after, Tensor) or after.held is None or before.held is None:
            continue
        if before.kind != "plain" or after.kind != "plain" or before.held.node is not after.held.node:
            continue
        operands = [
            Operand(before, moves.place_of(before), after.held.node, "cached"),
            Operand(after, moves.place_of(after), after.held.node, "made"),
        ]
        if difference(operands[0].place, operands[1].place) is Certainty.CERTAIN:
            machine.report(after.held.node, "cache", "cache", operands)


def keep_accidental_moves(machine: Machine, writes: Writes) -> None:
    """`model.cpu()` in a loop, now and then: the rounds after it find the model there, so that path is followed."""
    if not machine.loops:
        return
    for target, key, before, after in writes.values():
        if key == "place" and isinstance(target, Module | Tensor) and after == CPU and _elsewhere(before):
            machine.memory.assign(target, key, after)


def _elsewhere(place: object) -> bool:
    return isinstance(place, Place) and place != CPU
