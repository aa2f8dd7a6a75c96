"""`torch.save` and `torch.load`: where a checkpoint's tensors come back."""

from __future__ import annotations

import ast

from samedevice.linting.devices import moves
from samedevice.linting.devices.lattice import as_place, is_given
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.places import Location, Place, resolve
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    Mapping,
    Module,
    Parameters,
    Sequence,
    Tensor,
    Value,
)

__all__ = ["load", "save"]


def load(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.load`: to where it was saved, unless `map_location` says where to."""
    given = arguments.get(1, "map_location")
    literal = isinstance(given, Constant)
    place = as_place(given) if is_given(given) else _saved_place(machine)
    how = "loaded to" if is_given(given) else "loaded"
    return Tensor(place, machine.origin(node, how, literal=literal), None, certain=False)


def _saved_place(machine: Machine) -> Location | None:
    """Where everything that the file saves is: `torch.load` brings it back there."""
    saved = machine.saved
    return saved[0] if saved and all(place == saved[0] for place in saved) else None


def save(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.save`: note where the tensors are, for the `torch.load` that brings them back."""
    for value in _leaves(arguments.get(0, "obj") or UNKNOWN):
        place = moves.place_of(value) if isinstance(value, Tensor) else moves.module_place(value)
        found = resolve(place) if place is not None else None
        if isinstance(found, Place):
            machine.saved.append(found)
    return UNKNOWN


def _leaves(value: Value, depth: int = 0) -> list[Tensor | Module]:
    if isinstance(value, Tensor | Module):
        return [value]
    if isinstance(value, Parameters):
        return _leaves(value.module, depth + 1)
    inside: tuple[Value, ...] = ()
    if isinstance(value, Mapping):
        inside = (*value.entries.values(), value.element)
    elif isinstance(value, Sequence):
        inside = value.items or (value.element,)
    return [leaf for part in inside if depth < 4 for leaf in _leaves(part, depth + 1)]
