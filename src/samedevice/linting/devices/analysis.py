"""Interpreting a file: first as the program that it is, then each function that nothing in it calls on its own."""

from __future__ import annotations

import ast
from pathlib import Path

from samedevice.linting.devices import attributes, calls, moves
from samedevice.linting.devices.expressions import EXPRESSIONS
from samedevice.linting.devices.facts import Fact
from samedevice.linting.devices.machine import Frame, Machine
from samedevice.linting.devices.method_tables import MOVES
from samedevice.linting.devices.neighbours import NEIGHBOURS
from samedevice.linting.devices.places import Cell, Certainty
from samedevice.linting.devices.sequences import sequence
from samedevice.linting.devices.statements import STATEMENTS
from samedevice.linting.devices.stored import StoredAttributes
from samedevice.linting.devices.values import (
    UNKNOWN,
    Class,
    Constant,
    Function,
    Instance,
    Mapping,
    Module,
    Role,
    Sequence,
    Symbol,
    Tensor,
    Value,
)
from samedevice.texts import say

__all__ = ["analyse"]

_TABLE = {**EXPRESSIONS, **STATEMENTS}
_CALLS_PER_DEFINITION = 40
_LEAST_FOREIGN_LINES = 600


def analyse(tree: ast.Module, file: Path | None = None) -> list[Fact]:
    """The facts about devices in a parsed file.

    Args:
        tree: the file.
        file: its path, by which what it imports is found; nothing of other files is known where it is left out.

    Returns:
        What the rules read, in the order it was seen.
    """
    stored = StoredAttributes(tree)
    machine = Machine(
        _TABLE,
        calls.call,
        200 + _CALLS_PER_DEFINITION * stored.definitions,
        _LEAST_FOREIGN_LINES + (tree.body[-1].end_lineno or 0 if tree.body else 0),
    )
    machine.globals["__name__"] = Constant("__main__")
    machine.subject = tree.body[0] if tree.body else tree
    if file is not None:
        machine.neighbours, machine.files[id(machine.globals)] = NEIGHBOURS, file
    with machine.inside(Frame((machine.globals,))):
        machine.execute(tree.body)
        if _only_tries_out(machine, tree):
            _forget_visits(machine)
        machine.standalone = True
        machine.backward.clear()
        for function in list(machine.functions):
            if id(function.node) not in machine.visited:
                _run_alone(machine, function)
        for cls in list(machine.classes):
            _run_class(machine, cls, stored)
    return machine.facts.settle()


def _only_tries_out(machine: Machine, tree: ast.Module) -> bool:
    """Whether the program at the bottom of a file only tries out what the file defines: it trains nothing."""
    guarded = any(isinstance(node, ast.If) and "__name__" in ast.dump(node.test) for node in tree.body)
    return guarded and not machine.optimizers and not machine.backward


def _forget_visits(machine: Machine) -> None:
    """What was run on the CPU alone says nothing of where it is used: its modules are looked at by themselves, too."""
    for cls in machine.classes:
        if cls.is_module and id(cls.node) not in machine.placed and not _is_placed(cls, machine):
            for method in cls.namespace.values():
                if isinstance(method, Function):
                    machine.visited.discard(id(method.node))


def _is_placed(cls: Class, machine: Machine) -> bool:
    """Whether something that inherits from a class was moved."""
    return any(id(other.node) in machine.placed and cls in _lineage(other) for other in machine.classes)


def _run_alone(machine: Machine, function: Function) -> None:
    """Interpret a function whose arguments are not known."""
    machine.subject = function.node
    role: Role = "forward" if _is_forward(function) else "argument"
    mark = machine.memory.mark()
    calls.run_function(machine, function, _unknown_arguments(machine, function, role), None)
    machine.memory.rewind(mark)


def _is_forward(function: Function) -> bool:
    return (
        isinstance(function.receiver, Module)
        and not isinstance(function.node, ast.Lambda)
        and function.node.name == "forward"
    )


def _unknown_arguments(machine: Machine, function: Function, role: Role) -> dict[str, Value]:
    spec = function.node.args
    scope: dict[str, Value] = {}
    parameters = [*spec.posonlyargs, *spec.args]
    if function.receiver is not None and function.binding != "static" and parameters:
        scope[parameters.pop(0).arg] = function.receiver
    numbers = _numbers(spec)
    for parameter in (*parameters, *spec.kwonlyargs):
        scope[parameter.arg] = Symbol.named(parameter.arg, "number" if parameter.arg in numbers else role)
    if spec.vararg is not None:
        scope[spec.vararg.arg] = Symbol.named(spec.vararg.arg)
    if spec.kwarg is not None:
        scope[spec.kwarg.arg] = Symbol.named(spec.kwarg.arg)
    return scope


def _numbers(spec: ast.arguments) -> set[str]:
    """The parameters that are no tensors, by their annotation or default."""
    positional = [*spec.posonlyargs, *spec.args]
    defaults = [
        *zip(positional[::-1], spec.defaults[::-1], strict=False),
        *zip(spec.kwonlyargs, spec.kw_defaults, strict=True),
    ]
    by_default = {
        parameter.arg
        for parameter, default in defaults
        if isinstance(default, ast.Constant) and isinstance(default.value, int | float)
    }
    annotated = {
        parameter.arg
        for parameter in (*positional, *spec.kwonlyargs)
        if isinstance(parameter.annotation, ast.Name) and parameter.annotation.id in ("int", "float", "bool")
    }
    return by_default | annotated


def _run_class(machine: Machine, cls: Class, stored: StoredAttributes) -> None:
    methods = [value for value in cls.namespace.values() if isinstance(value, Function)]
    waiting = [method for method in methods if id(method.node) not in machine.visited]
    if not waiting:
        return
    machine.subject = cls.node
    mark = machine.memory.mark()
    receiver = _symbolic_object(machine, cls, stored)
    for method in waiting:
        if id(method.node) not in machine.visited:
            bound = Function(method.node, method.scopes, _receiver(method, receiver, cls), cls, method.binding)
            _run_alone(machine, bound)
    machine.memory.rewind(mark)


def _receiver(method: Function, receiver: Value, cls: Class) -> Value | None:
    if method.binding == "static":
        return None
    return cls if method.binding == "class" else receiver


def _symbolic_object(machine: Machine, cls: Class, stored: StoredAttributes) -> Module | Instance:
    """An object of `cls` after `__init__`; a module has been moved to "wherever it is moved"."""
    made: Module | Instance
    if cls.is_module:
        made = Module(cls.node.name, cls, {}, None, machine.origin(cls.node, "module"), symbolic=True)
    else:
        made = Instance(cls, {}, open=True)
    before = set(machine.visited)
    found = attributes.find(cls, "__init__")
    if found is not None and isinstance(found[0], Function):
        function = Function(found[0].node, found[0].scopes, made, found[1])
        calls.run_function(machine, function, _unknown_arguments(machine, function, "argument"), None)
    during = machine.visited - before
    _forget_unstable(cls, made, stored, during)
    if isinstance(made, Module):
        home = Cell(say("the device of {name}", name=cls.node.name), Certainty.CERTAIN)
        if _moves_itself(cls):
            _forget_plain(made)
        moves.move_module(machine, made, home, None)
    else:
        # Whoever owns the object may move what is in it.
        for value in list(made.attributes.values()):
            moves.escape(machine, value)
    return made


def _moves_itself(cls: Class) -> bool:
    """Whether the class says itself what a move does."""
    return any(attributes.find(cls, name) is not None for name in ("to", "_apply", *MOVES))


def _forget_unstable(cls: Class, made: Module | Instance, stored: StoredAttributes, during: set[int]) -> None:
    unstable = set(stored.elsewhere)
    for owner in _lineage(cls):
        for method in owner.namespace.values():
            if isinstance(method, Function) and id(method.node) not in during and not _starts_from_init(method, made):
                unstable |= stored.by_method.get(id(method.node), set())
    for name in unstable & made.attributes.keys():
        value = made.attributes[name]
        if not isinstance(value, Module) and not (isinstance(value, Tensor) and value.kind != "plain"):
            made.attributes[name] = Symbol.named(f"self.{name}")


def _starts_from_init(method: Function, made: Module | Instance) -> bool:
    """Whether a method finds what `__init__` left, at its first call at least."""
    name = method.node.name if isinstance(method.node, ast.FunctionDef) else ""
    return name == "__init__" or (name == "forward" and isinstance(made, Module))


def _lineage(cls: Class) -> list[Class]:
    return [cls, *(ancestor for base in cls.bases if isinstance(base, Class) for ancestor in _lineage(base))]


def _forget_plain(made: Module) -> None:
    for name, value in made.attributes.items():
        if isinstance(value, Tensor) and value.kind == "plain":
            made.attributes[name] = UNKNOWN
        elif isinstance(value, Sequence | Mapping):
            made.attributes[name] = sequence([]) if value is UNKNOWN else UNKNOWN
