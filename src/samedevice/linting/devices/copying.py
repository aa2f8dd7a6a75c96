"""`copy.copy` and `copy.deepcopy` of tensors, modules and what holds them."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.linting.devices import moves
from samedevice.linting.devices.lattice import join_all
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.values import UNKNOWN, Instance, Module, Sequence, Tensor, Value

__all__ = ["deepcopy"]


def deepcopy(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """A copy that shares nothing; a module's lives where the module does, and moves by itself from now on."""
    if not arguments.positional:
        return UNKNOWN
    copy = _copied(arguments.positional[0], {})
    if isinstance(copy, Module):
        copy.origin, copy.copied = machine.origin(node, "module"), True
    return copy


def _copied(value: Value, memo: dict[int, Value]) -> Value:
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, Tensor):
        memo[id(value)] = replace(value, place=moves.place_of(value), owner=None)
    elif isinstance(value, Module):
        copy = replace(value, attributes={}, children=[], held=None, moved=False, moved_at=None)
        memo[id(value)] = copy
        copy.attributes = {
            name: _copied(part, memo) for name, part in value.attributes.items() if not _own(part, value)
        }
        copy.children = [_copied(part, memo) for part in value.children]
    elif isinstance(value, Instance):
        instance = memo[id(value)] = replace(value, attributes={})
        instance.attributes.update({name: _copied(part, memo) for name, part in value.attributes.items()})
    elif isinstance(value, Sequence):
        # Known before its items are: a list may hold itself.
        made = memo[id(value)] = Sequence(None, node=value.node)
        made.items = tuple(_copied(item, memo) for item in value.items) if value.items is not None else None
        made.element = _copied(value.element, memo) if made.items is None else join_all(made.items)
    else:
        memo[id(value)] = value
    return memo[id(value)]


def _own(part: Value, module: Module) -> bool:
    """A built-in module's parameter, which is read anew from the copy."""
    return isinstance(part, Tensor) and part.owner is module
