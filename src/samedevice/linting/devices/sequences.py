"""Lists, tuples, dicts and what iterating, unpacking and indexing them gives."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from samedevice.linting.devices import attributes, moves
from samedevice.linting.devices.lattice import join_all
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.values import (
    NOTHING,
    UNKNOWN,
    Constant,
    Instance,
    Mapping,
    Module,
    OptimizerState,
    Parameters,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["LONGEST", "element_of", "item_of", "parameter_of", "part_of", "sequence", "unpack"]

LONGEST = 256
"""Items of a list that is put together from others and still known one by one."""


def sequence(items: Iterable[Value], node: ast.AST | None = None, *, mutable: bool = True) -> Sequence:
    """A list whose items are all known."""
    known = tuple(items)
    return Sequence(known, join_all(known), node=node, mutable=mutable)


def unpack(machine: Machine, value: Value, node: ast.AST) -> tuple[Value, ...] | None:
    """The items of a value where each is known."""
    if isinstance(value, Sequence):
        return value.items
    if isinstance(value, Mapping):
        return tuple(Constant(key) for key in value.entries) if value.element is NOTHING and value.entries else None
    if isinstance(value, Module) and value.cls is None and value.children and value.place is None:
        return tuple(value.children)
    return None


def element_of(machine: Machine, value: Value, node: ast.AST) -> Value:
    """What any item of `value` is like, when it is iterated."""
    if isinstance(value, Sequence):
        return value.element
    if isinstance(value, Mapping):
        return UNKNOWN
    if isinstance(value, Tensor):
        return part_of(machine, value)
    if isinstance(value, Parameters):
        return parameter_of(value.module)
    if isinstance(value, Module):
        return join_all(value.children)
    if isinstance(value, Symbol):
        return value.part("[…]")
    if isinstance(value, Instance) and value.cls is not None:
        return _iterated(machine, value, node)
    return UNKNOWN


def _iterated(machine: Machine, value: Instance, node: ast.AST) -> Value:
    """What the file's own `__iter__` gives."""
    if value.cls is None or attributes.find(value.cls, "__iter__") is None:
        return UNKNOWN
    made = machine.call(attributes.read(machine, value, "__iter__", node), Arguments(), node)
    return made.element if isinstance(made, Sequence) else UNKNOWN


def parameter_of(module: Value) -> Value:
    """Any parameter of a module."""
    if not isinstance(module, Module):
        return UNKNOWN
    # Most parameters have dimensions, so among all of a module's one does.
    return Tensor(None, module.origin, False, kind="parameter", held=module.held, owner=module, requires_grad=True)


def part_of(machine: Machine, value: Tensor) -> Tensor:
    """An item of a tensor or of a batch."""
    return replace(
        value,
        place=moves.place_of(value),
        scalar=None,
        owner=None,
        kind="plain" if value.kind == "parameter" else value.kind,
        leaf=False,
        part_of=value.part_of or (None if value.certain else value),
    )


def item_of(machine: Machine, value: Value, key: Value, node: ast.AST) -> Value:
    """`value[key]`, tensors aside."""
    if isinstance(value, Sequence):
        if isinstance(key, Constant) and isinstance(key.value, int) and value.items is not None:
            if -len(value.items) <= key.value < len(value.items):
                return value.items[key.value]
            return UNKNOWN
        return value.element
    if isinstance(value, Mapping):
        return _entry(machine, value, key)
    if isinstance(value, Module):
        return _child(value, key)
    if isinstance(value, OptimizerState):
        return Tensor(value.place, None) if value.one else OptimizerState(value.optimizer, value.place, one=True)
    if isinstance(value, Symbol):
        if isinstance(key, Constant) or not isinstance(node, ast.Subscript):
            return value.part(f"[{key.value!r}]" if isinstance(key, Constant) else f"[{ast.dump(node)[:200]}]")
        return value.part(f"[{ast.dump(node.slice)[:200]}]", node.slice)
    if isinstance(value, Instance):
        getter = attributes.read(machine, value, "__getitem__", node)
        return machine.call(getter, Arguments([key], [node]), node)
    return UNKNOWN


def _entry(machine: Machine, value: Mapping, key: Value) -> Value:
    if not isinstance(key, Constant) or not isinstance(key.value, str | int | float | bytes | None):
        return _known(value.element)
    if value.lists and key.value not in value.entries:
        made = sequence([], value.node)
        made.loops = machine.loops
        machine.memory.write(value.entries, key.value, made)
    return _known(value.entries.get(key.value, value.element))


def _known(value: Value) -> Value:
    return UNKNOWN if value is NOTHING else value


def _child(module: Module, key: Value) -> Value:
    if (
        isinstance(key, Constant)
        and isinstance(key.value, int)
        and -len(module.children) <= key.value < len(module.children)
    ):
        return module.children[key.value]
    if isinstance(key, Constant) and isinstance(key.value, str):
        return module.attributes.get(key.value, join_all(module.children))
    return join_all(module.children)
