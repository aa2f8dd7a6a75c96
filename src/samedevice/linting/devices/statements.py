"""What statements do. A handler returns True where control does not go on to the next statement."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from samedevice.linting.devices import branches, calls, imports, left_out, operations, truth
from samedevice.linting.devices.classes import define_class, define_function
from samedevice.linting.devices.expressions import bind_target
from samedevice.linting.devices.lattice import as_place
from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.memory import Writes, materially_changed
from samedevice.linting.devices.method_tables import MOVES
from samedevice.linting.devices.sequences import LONGEST, element_of, unpack
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    Device,
    External,
    Instance,
    Mapping,
    Module,
    Optimizer,
    Sequence,
    Tensor,
    Value,
)
from samedevice.messages.operators import OPERATORS, in_place

__all__ = ["STATEMENTS"]

_UNROLLED = 6


def _assign(machine: Machine, node: ast.Assign) -> bool:
    value = machine.evaluate(node.value)
    for target in node.targets:
        bind_target(machine, target, value)
    return False


def _annotated(machine: Machine, node: ast.AnnAssign) -> bool:
    if node.value is not None:
        bind_target(machine, node.target, machine.evaluate(node.value))
    return False


def _augmented(machine: Machine, node: ast.AugAssign) -> bool:
    left, right = machine.evaluate(node.target), machine.evaluate(node.value)
    is_product = isinstance(node.op, ast.MatMult)
    if isinstance(left, Tensor) and left.certain and not is_product:
        name = in_place(node.op)
        operations.combine(machine, node, name, "inplace", [(left, node.target, "self"), (right, node.value, "other")])
        return False
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        known = left.items is not None and right.items is not None and len(left.items) + len(right.items) <= LONGEST
        items = (*(left.items or ()), *(right.items or ())) if known else None
        element = right.element if left.items == () else left.element
        machine.memory.assign(left, "items", items if machine.loops == left.loops else None)
        machine.memory.assign(left, "element", element)
        return False
    arguments: list[operations.Argument] = [(left, node.target, "self"), (right, node.value, "other")]
    role = "strict" if is_product else "elementwise"
    result = operations.combine(machine, node, OPERATORS[type(node.op)], role, arguments)
    bind_target(machine, node.target, result)
    return False


def _expression(machine: Machine, node: ast.Expr) -> bool:
    if isinstance(node.value, ast.Constant):
        return False
    calls.discarded(machine, node)
    machine.evaluate(node.value)
    return False


def _return(machine: Machine, node: ast.Return) -> bool:
    machine.frame.returns.append(machine.evaluate(node.value) if node.value is not None else Constant(None))
    return True


def _ends(machine: Machine, node: ast.stmt) -> bool:
    return True


def _raise(machine: Machine, node: ast.Raise) -> bool:
    return True


@dataclass(slots=True)
class _Undecided:
    """An `if` whose condition is not known, while its `else` is being interpreted."""

    node: ast.If
    guard: bool
    body_ended: bool
    undone: Writes
    """What the body has written; the memory is back at the state before it."""
    mark: int
    without: bool | None
    """Whether the body (True) or the `else` (False) runs where an argument is left out."""


def _if(machine: Machine, node: ast.If) -> bool:
    """An `if` with its `elif`s, of which generated code has hundreds: in the tree each is inside the one before."""
    undecided: list[_Undecided] = []
    while True:
        known = truth.truth(machine, node.test)
        if known is None and _switches_device(machine, node):
            known = True
        if known:
            ended = machine.execute(node.body)
            break
        if known is None:
            undecided.append(_body(machine, node))
        if not _is_elif(node.orelse):
            ended = machine.execute(node.orelse)
            break
        node = cast("ast.If", node.orelse[0])
    for branch in reversed(undecided):
        ended = _joined(machine, branch, ended)
    return ended


def _is_elif(orelse: list[ast.stmt]) -> bool:
    return len(orelse) == 1 and isinstance(orelse[0], ast.If)


def _body(machine: Machine, node: ast.If) -> _Undecided:
    """Interpret the body, and undo what it has written."""
    guard = branches.asks_for_device(machine, node.test)
    machine.frame.guards += guard
    without = None if guard else left_out.arm_without(machine, node.test)
    mark = machine.memory.mark()
    branches.hide_what_the_other_stores(machine, node.body, node.orelse)
    branches.where_shapes_agree(machine, node.test, holds=True)
    ended = machine.execute(node.body)
    undone = machine.memory.rewind(mark)
    undecided = _Undecided(node, guard, ended, undone, machine.memory.mark(), without)
    branches.hide_what_the_other_stores(machine, node.orelse, node.body)
    return undecided


def _joined(machine: Machine, branch: _Undecided, else_ended: bool) -> bool:
    """Go on after both branches; True where neither comes out."""
    # What comes after `if x.is_cuda: return …` runs for the other devices only.
    machine.frame.guards -= 0 if branch.body_ended or else_ended else branch.guard
    if branch.body_ended:
        machine.memory.keep(branch.mark)
        branches.where_shapes_agree(machine, branch.node.test, holds=False)
        return else_ended
    if else_ended:
        machine.memory.rewind(branch.mark)
        machine.memory.replay(branch.undone)
        return False
    done = machine.memory.keep(branch.mark)
    machine.memory.join(branch.undone, done)
    if branch.without is not None:
        left_out.keep_what_was_made(machine, branch.undone if branch.without else done)
    if not branch.node.orelse:
        branches.note_stale_caches(machine, branch.node, branch.undone)
        branches.keep_accidental_moves(machine, branch.undone)
    return False


def _switches_device(machine: Machine, node: ast.If) -> bool:
    """Whether the condition is a setting that says "use CUDA", or the like: it is taken to hold, everywhere alike."""
    if node.orelse or not isinstance(node.test, ast.Name | ast.Attribute | ast.BoolOp):
        return False
    known = machine.answers.get(node)
    if known is None:
        known = machine.answers[node] = _moves_to_accelerator(node)
    return known


def _moves_to_accelerator(node: ast.If) -> bool:
    return any(
        isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in MOVES
        for statement in node.body
        for part in ast.walk(statement)
    )


def _for(machine: Machine, node: ast.For | ast.AsyncFor) -> bool:
    source = machine.evaluate(node.iter)
    forgotten = _forgotten_move(node)
    if forgotten is not None:
        bind_target(machine, node.target, element_of(machine, source, node.iter))
        calls.discarded(machine, forgotten, node)
    items = unpack(machine, source, node.iter)
    if items is not None and 0 < len(items) <= _UNROLLED and any(_matters(item) for item in items):
        # Each round is run: what is counted in them is counted exactly.
        for item in items:
            bind_target(machine, node.target, item)
            if machine.execute(node.body):
                break
    elif items != ():
        bind_target(machine, node.target, element_of(machine, source, node.iter))
        _rounds(machine, node.body, lambda: bind_target(machine, node.target, element_of(machine, source, node.iter)))
    machine.execute(node.orelse)
    return False


def _forgotten_move(node: ast.For | ast.AsyncFor) -> ast.Assign | None:
    """`for x in xs: x = x.to(device)`: each round forgets what the one before has moved."""
    body = node.body[0]
    if len(node.body) > 1 or not isinstance(body, ast.Assign) or not isinstance(body.value, ast.Call):
        return None
    function, (target, *others) = body.value.func, body.targets
    if not isinstance(function, ast.Attribute) or not isinstance(target, ast.Name) or others:
        return None
    is_variable = any(isinstance(part, ast.Name) and part.id == target.id for part in ast.walk(node.target))
    moves_itself = isinstance(function.value, ast.Name) and function.value.id == target.id
    return body if is_variable and moves_itself else None


def _matters(item: Value) -> bool:
    """Whether going through items one by one tells more than what they have in common."""
    if isinstance(item, Sequence):
        return item.items is not None and any(_matters(part) for part in item.items)
    return isinstance(item, Tensor | Module | Device | Instance | Mapping | Optimizer | Constant)


def _while(machine: Machine, node: ast.While) -> bool:
    if truth.truth(machine, node.test) is False:
        return machine.execute(node.orelse)
    _rounds(machine, node.body, lambda: None)
    return False


def _rounds(machine: Machine, body: list[ast.stmt], again: Callable[[], None]) -> None:
    """Run a loop's body, and once more where the first round left things in another state than it found them."""
    mark = machine.memory.mark()
    ended = _round(machine, body)
    changed = materially_changed(machine.memory.keep(mark))
    if changed and not ended and machine.spend(len(body)):
        again()
        _round(machine, body)


def _round(machine: Machine, body: list[ast.stmt]) -> bool:
    machine.loops += 1
    try:
        return machine.execute(body)
    finally:
        machine.loops -= 1


def _with(machine: Machine, node: ast.With | ast.AsyncWith) -> bool:
    place = None
    sets_default = False
    for item in node.items:
        value = machine.evaluate(item.context_expr)
        if isinstance(value, Device) and isinstance(item.context_expr, ast.Call | ast.Name | ast.Attribute):
            place, sets_default = as_place(value), True
        elif isinstance(value, External) or (value is UNKNOWN and _makes_elsewhere(item.context_expr)):
            place, sets_default = None, True
        if item.optional_vars is not None:
            bind_target(machine, item.optional_vars, value if not isinstance(value, Device) else UNKNOWN)
    if not sets_default:
        return machine.execute(node.body)
    with machine.default_device(place):
        return machine.execute(node.body)


def _makes_elsewhere(node: ast.expr) -> bool:
    """Whether an unknown context manager may set the default device, by its name."""
    name = ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2].lower()
    return "device" in name or "empty_weights" in name or "init" in name


def _try(machine: Machine, node: ast.Try) -> bool:
    """The way without an exception goes on; what a handler does is looked at and counts where the body cannot end."""
    ended = machine.execute(node.body)
    for handler in node.handlers:
        mark = machine.memory.mark()
        if handler.name:
            machine.bind(handler.name, UNKNOWN)
        if machine.execute(handler.body) or not ended:
            machine.memory.rewind(mark)
        else:
            machine.memory.keep(mark)
            ended = False
    if not ended:
        ended = machine.execute(node.orelse)
    return machine.execute(node.finalbody) or ended


def _function(machine: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    machine.bind(node.name, define_function(machine, node))
    return False


def _class(machine: Machine, node: ast.ClassDef) -> bool:
    define_class(machine, node)
    return False


def _import(machine: Machine, node: ast.Import) -> bool:
    for alias in node.names:
        imports.bind_module(machine, node, alias)
    return False


def _import_from(machine: Machine, node: ast.ImportFrom) -> bool:
    imports.bind_names(machine, node)
    return False


def _global(machine: Machine, node: ast.Global | ast.Nonlocal) -> bool:
    if isinstance(node, ast.Global):
        machine.frame.global_names.update(node.names)
    return False


def _assert(machine: Machine, node: ast.Assert) -> bool:
    machine.evaluate(node.test)
    return False


def _delete(machine: Machine, node: ast.Delete) -> bool:
    return False


def _match(machine: Machine, node: ast.Match) -> bool:
    machine.evaluate(node.subject)
    for case in node.cases:
        mark = machine.memory.mark()
        ended = machine.execute(case.body)
        undone = machine.memory.rewind(mark)
        if not ended:
            machine.memory.join(undone, {})
    return False


STATEMENTS: dict[type[ast.AST], Callable[[Machine, Any], bool]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Continue: _ends,
    ast.Break: _ends,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Global: _global,
    ast.Nonlocal: _global,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Match: _match,
}

if hasattr(ast, "TryStar"):  # Python 3.11
    STATEMENTS[ast.TryStar] = _try
