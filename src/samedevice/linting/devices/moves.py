"""Where tensors and modules are, and what moving them does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from samedevice.linting.devices.contents import modules_inside, registered
from samedevice.linting.devices.lattice import same_place
from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.places import CPU, Cell, Certainty, Location, resolve, unknown
from samedevice.linting.devices.values import (
    UNKNOWN,
    Either,
    Instance,
    Mapping,
    Module,
    Optimizer,
    Sequence,
    Tensor,
    Value,
)

__all__ = [
    "escape",
    "has_parameters",
    "module_place",
    "move",
    "move_module",
    "moved_tensor",
    "note_elsewhere",
    "place_of",
    "registered",
]


def place_of(tensor: Tensor) -> Location | None:
    """Where a tensor is now: a parameter is where its module is."""
    if tensor.owner is not None:
        return module_place(tensor.owner)
    return tensor.place


def module_place(module: Module) -> Location | None:
    """The one place where all parameters and buffers of a module are, or None."""
    found: Location | None = None
    for place in _places(module):
        if found is not None and not same_place(found, place):
            return None
        found = place
    return found


def _places(module: Module) -> Iterator[Location]:
    for part in modules_inside(module):
        if part.place is not None:
            yield part.place
        for value in registered(part):
            if isinstance(value, Tensor) and value.place is not None:
                yield value.place


def has_parameters(module: Module) -> bool:
    """Whether a module is known to hold a parameter or buffer."""
    return any(
        part.place is not None or any(isinstance(value, Tensor) for value in registered(part))
        for part in modules_inside(module)
    )


def move_module(
    machine: Machine, module: Module, place: Location | None, node: ast.AST | None, seen: set[int] | None = None
) -> None:
    """`module.to(place)`: everything registered follows, in place; what is not stays behind."""
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    if module.place is not None:
        machine.memory.assign(module, "place", place)
    if module.cls is not None and place != CPU:
        machine.placed.add(id(module.cls.node))
    machine.memory.assign(module, "moved", True)
    machine.memory.assign(module, "moved_at", machine.own(node) if node is not None else None)
    for part in list(registered(module)):
        if isinstance(part, Tensor):
            machine.memory.assign(part, "place", place)
        else:
            move_module(machine, part, place, node, seen)


def moved_tensor(machine: Machine, tensor: Tensor, place: Location | None, node: ast.AST, *, literal: bool) -> Tensor:
    """The result of `tensor.to(place)`."""
    here = place_of(tensor)
    note_elsewhere(place)
    if place is not None and same_place(here, place):
        return tensor
    return replace(
        tensor,
        place=place,
        origin=machine.origin(node, "moved", literal=literal),
        held=None,
        owner=None,
        kind="plain",
        leaf=not tensor.requires_grad,
        lost_leaf=tensor.requires_grad and tensor.leaf,
        part_of=None,
        copied=False,
    )


def escape(machine: Machine, value: Value) -> None:
    """A module that was given away before it was moved may have been moved there."""
    waiting, seen = [value], {id(value)}
    while waiting:
        given = waiting.pop()
        if isinstance(given, Module):
            _escape_module(machine, given)
        elif isinstance(given, Optimizer):
            machine.memory.assign(given, "place", None)
        elif isinstance(given, Sequence) and given.items is not None:
            waiting.extend(item for item in given.items if id(item) not in seen)
            seen.update(map(id, given.items))


def _escape_module(machine: Machine, module: Module) -> None:
    # What was done with it there, and which loss it went into, is not known.
    machine.memory.write(machine.backward, "incomplete", UNKNOWN)
    if not module.moved and not module.symbolic:
        move_module(machine, module, unknown(guessed=True), None)
        machine.memory.assign(module, "moved", False)


def note_elsewhere(place: Location | None) -> None:
    """Code that places tensors at a cell expects it to be possibly another device than the CPU."""
    if place is not None:
        found = resolve(place)
        if isinstance(found, Cell) and not found.guessed:
            found.evidence = Certainty.CERTAIN


def move(machine: Machine, value: Value, place: Location | None, node: ast.AST, *, literal: bool = False) -> Value:
    """`value.to(place)` for whatever the value is."""
    if isinstance(value, Tensor):
        return moved_tensor(machine, value, place, node, literal=literal)
    if isinstance(value, Module):
        note_elsewhere(place)
        move_module(machine, value, place, node)
        return value
    if isinstance(value, Either):
        for option in value.options:
            move_module(machine, option, place, node)
        return value
    if isinstance(value, Sequence | Mapping | Instance):
        return value
    note_elsewhere(place)
    return Tensor(place, machine.origin(node, "moved", literal=literal), certain=False)
