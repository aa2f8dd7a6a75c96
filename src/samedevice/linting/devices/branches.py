"""What a branch that may or may not be taken tells beyond the state after it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from samedevice.linting.devices import moves
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.memory import Writes
from samedevice.linting.devices.method_tables import ACCELERATORS
from samedevice.linting.devices.places import CPU, Certainty, Place, difference
from samedevice.linting.devices.values import UNKNOWN, Instance, Module, Tensor

__all__ = [
    "asks_for_device",
    "by_process_group",
    "for_no_items",
    "hide_what_the_other_stores",
    "keep_accidental_moves",
    "note_stale_caches",
    "where_shapes_agree",
]


_KINDS = "|".join(sorted(ACCELERATORS))
_WORDS = re.compile(rf"device|cuda|gpu|is_cpu|(?<![a-z])(?:{_KINDS})(?![a-z])", re.IGNORECASE)
"""Kinds as words of their own: there is one in `input`, and one in `timestamps`."""


def asks_for_device(machine: Machine, test: ast.expr) -> bool:
    """Whether a condition has to do with devices."""
    known = machine.answers.get(test)
    if known is None:
        known = machine.answers[test] = _names_device(test)
    return known


def _names_device(test: ast.expr) -> bool:
    return any(_WORDS.search(name) for name in _names(test))


def _names(expression: ast.expr) -> Iterator[str]:
    for part in ast.walk(expression):
        if isinstance(part, ast.Name | ast.Attribute):
            yield part.id if isinstance(part, ast.Name) else part.attr


def hide_what_the_other_stores(machine: Machine, arm: list[ast.stmt], other: list[ast.stmt]) -> None:
    """What `__init__` left is not what an arm finds, if the other arm stores something in its place.

    Which of the two an object's first call takes is not known: one that normalizes comes before one that undoes it.
    """
    receiver = machine.frame.receiver
    if not machine.standalone or not isinstance(receiver, Module) or not arm or not other:
        return
    plain = {name for name, value in receiver.attributes.items() if isinstance(value, Tensor) and value.kind == "plain"}
    for name in (plain & _stored(other)) - _stored(arm) if plain else ():
        machine.memory.write(receiver.attributes, name, UNKNOWN)


def _stored(statements: list[ast.stmt]) -> set[str]:
    return {
        part.attr
        for statement in statements
        for part in ast.walk(statement)
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
    }


def where_shapes_agree(machine: Machine, test: ast.expr, *, holds: bool) -> None:
    """Where `kept.shape == new.shape`, what is kept from before is of the same kind as what is new.

    A placeholder that `__init__` made is told apart by its shape; in its place is by now what an earlier call kept.
    """
    compared = _comparison(machine, test, holds=holds)
    for side in (compared.left, compared.comparators[0]) if compared is not None else ():
        shaped = side.func if isinstance(side, ast.Call) else side
        if isinstance(shaped, ast.Attribute) and shaped.attr in ("shape", "size"):
            _forget_kept(machine, shaped.value)


def _forget_kept(machine: Machine, node: ast.expr) -> None:
    value = machine.evaluate(node)
    if not isinstance(value, Tensor) or value.held is None or value.kind != "plain":
        return
    if isinstance(node, ast.Name):
        machine.bind(node.id, UNKNOWN)
    elif isinstance(node, ast.Attribute):
        owner = machine.evaluate(node.value)
        if isinstance(owner, Module | Instance):
            machine.memory.write(owner.attributes, node.attr, UNKNOWN)


def _comparison(machine: Machine, test: ast.expr, *, holds: bool) -> ast.Compare | None:
    """The comparison that a condition comes to, where two things are equal if the condition `holds`, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _comparison(machine, test.operand, holds=not holds)
    if isinstance(test, ast.Name) and isinstance(machine.frame.node, ast.FunctionDef):
        for statement in machine.frame.node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Compare):
                target = statement.targets[0]
                if isinstance(target, ast.Name) and target.id == test.id:
                    test = statement.value
                    break
    wanted = ast.Eq if holds else ast.NotEq
    return test if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], wanted) else None


def for_no_items(machine: Machine, function: ast.AST, part: ast.AST) -> bool:
    """Whether `part` is reached only where a list of the function is empty: then there is no item to tell a device."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and any(inner is part for stmt in node.body for inner in ast.walk(stmt)):
            name = _said_empty(node.test)
            if name is not None and not isinstance(machine.lookup(name), Tensor):
                return True
    return False


_GROUP = re.compile(r"(^|_)dist(ributed)?(_|$)|world_size|is_initialized", re.IGNORECASE)


def by_process_group(function: ast.AST, parts: list[ast.AST]) -> bool:
    """Whether it depends on the process group which of `parts` is reached: in one run it is always the same one."""
    for node in ast.walk(function):
        if isinstance(node, ast.If) and _GROUP.search(" ".join(_names(node.test))):
            inside = {id(inner) for stmt in node.body for inner in ast.walk(stmt)}
            if len({id(part) in inside for part in parts}) > 1:
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
