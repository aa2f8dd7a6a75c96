"""Methods of modules: moving, registering, going through what is inside."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.linting.devices import attributes, module_calls, moves, tensor_methods
from samedevice.linting.devices.lattice import join_all
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.method_tables import MOVES
from samedevice.linting.devices.places import CPU, Location, Place, unknown
from samedevice.linting.devices.sequences import parameter_of, sequence
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    Either,
    Function,
    Held,
    Mapping,
    Module,
    Parameters,
    Sequence,
    Tensor,
    Value,
)

__all__ = ["Mover", "apply_mover", "call_method"]

_SELF = frozenset(
    [
        "train",
        "eval",
        "half",
        "float",
        "double",
        "bfloat16",
        "type",
        "requires_grad_",
        "apply",
        "share_memory",
        "compile",
        "to_empty",
    ]
)


def call_method(machine: Machine, module: Module | Either, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """A method of a module that its class in this file does not define."""
    if isinstance(module, Either):
        return join_all([_option_method(machine, option, name, arguments, node) for option in module.options])
    if name.startswith("super:"):
        return UNKNOWN
    if name in ("to", "cpu") or name in MOVES:
        return _move(machine, module, name, arguments, node)
    if name in _SELF:
        return module
    if name in ("register_forward_hook", "register_forward_pre_hook") and arguments.positional:
        kept = "hooks" if name == "register_forward_hook" else "pre_hooks"
        machine.memory.assign(module, kept, (*getattr(module, kept), arguments.positional[0]))
    if name in ("forward", "__call__"):
        return module_calls.call(machine, module, arguments, node)
    if name in ("parameters", "buffers"):
        return Parameters(module)
    if name in ("named_parameters", "named_buffers"):
        return Sequence(None, sequence([UNKNOWN, parameter_of(module)], mutable=False))
    if name == "state_dict":
        return Mapping({}, parameter_of(module))
    if name in ("children", "modules", "values", "named_children", "named_modules", "items"):
        return _children(module, name)
    if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
        return _register(machine, module, name, arguments, node)
    if name in ("append", "extend", "insert", "update", "__setitem__") and module.cls is None:
        return _grow(machine, module, name, arguments)
    if name == "get_submodule":
        moves.escape(machine, module)
    return UNKNOWN


def _option_method(machine: Machine, option: Module, name: str, arguments: Arguments, node: ast.AST) -> Value:
    return machine.call(attributes.read(machine, option, name, node), arguments, node)


def _move(machine: Machine, module: Module, name: str, arguments: Arguments, node: ast.AST) -> Value:
    if name == "cpu":
        return _apply_move(machine, module, CPU, node)
    if name in MOVES:
        place = tensor_methods.cuda_index(arguments, Place(name))
        moves.note_elsewhere(place)
        return _apply_move(machine, module, place, node)
    found, given, _ = tensor_methods.target_of(arguments)
    moves.note_elsewhere(found)
    if given:
        return _apply_move(machine, module, found, node)
    return module


def _apply_move(machine: Machine, module: Module, place: Location | None, node: ast.AST) -> Module:
    location = place if place is not None else unknown()
    moves.move_module(machine, module, location, node)
    _own_apply(machine, module, location, node)
    return module


def _own_apply(
    machine: Machine, module: Module, location: Location, node: ast.AST, seen: set[int] | None = None
) -> None:
    """Call `_apply` of the file's own classes, which may move more than what is registered."""
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen.add(id(module))
    if (
        module.cls is not None
        and (found := attributes.find(module.cls, "_apply")) is not None
        and isinstance(found[0], Function)
    ):
        bound = attributes.read(machine, module, "_apply", node)
        machine.call(bound, Arguments([Mover(location)], [node]), node)
    for part in list(moves.registered(module)):
        if isinstance(part, Module):
            _own_apply(machine, part, location, node, seen)


class Mover(Value):
    """The function that `_apply` is given: it moves a tensor."""

    __slots__ = ("place",)

    def __init__(self, place: Location) -> None:
        self.place = place


def apply_mover(machine: Machine, mover: Mover, arguments: Arguments, node: ast.AST) -> Value:
    """`fn(tensor)` inside `_apply`."""
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    return moves.move(machine, value, mover.place, node) if isinstance(value, Tensor) else UNKNOWN


def _children(module: Module, name: str) -> Value:
    inside = [part for part in moves.registered(module) if isinstance(part, Module)]
    if name in ("modules", "named_modules"):
        inside.insert(0, module)
    if name in ("items", "named_children", "named_modules"):
        return Sequence(None, sequence([UNKNOWN, join_all(inside)], mutable=False))
    return Sequence(tuple(inside) if name == "children" else None, join_all(inside))


def _register(machine: Machine, module: Module, name: str, arguments: Arguments, node: ast.AST) -> Value:
    key = arguments.get(0, "name")
    value = arguments.get(
        1, "tensor" if name == "register_buffer" else "param" if name == "register_parameter" else "module"
    )
    if value is None:
        return Constant(None)
    known = isinstance(key, Constant) and isinstance(key.value, str)
    # Under a computed name each module counts as another one, in whatever round of a loop.
    computed = f"{ast.unparse(arguments.node(0, 'name', node))} {len(module.attributes)}"
    label: str = key.value if isinstance(key, Constant) and known else computed
    if isinstance(value, Tensor) and name == "register_buffer":
        held = Held(
            "attribute", module.name, label, machine.own(node), True, machine.frame.name, foreign=machine.is_foreign
        )
        value = replace(value, kind="buffer", held=held, place=moves.place_of(value), owner=None)
    machine.memory.write(module.attributes, label, value)
    if name == "register_parameter" and not known and module.place is not None:
        # Any of a built-in layer's own parameters may have been replaced by it.
        machine.memory.assign(module, "place", unknown())
    return Constant(None)


def _grow(machine: Machine, module: Module, name: str, arguments: Arguments) -> Value:
    added = list(module.children)
    for value in arguments.positional:
        if isinstance(value, Sequence) and name != "append":
            added.extend(value.items if value.items is not None else (value.element,))
        elif isinstance(value, Module | Tensor):
            added.append(value)
    machine.memory.assign(module, "children", added)
    return module
