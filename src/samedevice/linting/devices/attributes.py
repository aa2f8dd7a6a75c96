"""Reading and writing attributes and items."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from samedevice.linting.devices import imports, moves, operations, truth
from samedevice.linting.devices.facts import LostLeaf, Operand
from samedevice.linting.devices.lattice import join
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.method_tables import ACCELERATORS, MODULE_METHODS
from samedevice.linting.devices.operation_tables import OF_TENSORS
from samedevice.linting.devices.places import CPU, Certainty, Place, difference, resolve, unknown
from samedevice.linting.devices.values import (
    UNKNOWN,
    Accelerator,
    Class,
    Constant,
    Device,
    Either,
    External,
    Function,
    Held,
    Instance,
    Mapping,
    Method,
    Module,
    Namespace,
    Optimizer,
    OptimizerState,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["find", "forget", "hold", "read", "write", "write_item"]

_SAME_TENSOR = frozenset({"data", "T", "mT", "H", "mH", "real", "imag", "values", "indices", "grad", "logits", "probs"})
_NOT_TENSOR = frozenset(
    {"shape", "dtype", "ndim", "is_leaf", "requires_grad", "layout", "grad_fn", "itemsize", "nbytes"}
)
_ASKS_KIND = frozenset(f"is_{kind}" for kind in ("cpu", "meta", "xla", *ACCELERATORS))
_PARAMETER = re.compile(r"(weight|bias|in_proj_|running_|weight_|bias_)")


def find(cls: Class, name: str) -> tuple[Value, Class] | None:
    """An attribute of a class and the class that defines it."""
    if name in cls.namespace:
        return cls.namespace[name], cls
    for base in cls.bases:
        if isinstance(base, Class) and (found := find(base, name)) is not None:
            return found
    return None


def read(machine: Machine, value: Value, name: str, node: ast.AST) -> Value:
    """`value.name`."""
    if isinstance(value, External):
        return External(f"{value.name}.{name}")
    if isinstance(value, Namespace):
        return imports.attribute(machine, value, name)
    if isinstance(value, Tensor):
        return _of_tensor(machine, value, name)
    if isinstance(value, Module | Instance):
        if name == "__dict__":
            forget(machine, value)
            return UNKNOWN
        return _of_object(machine, value, name, node)
    if isinstance(value, Class):
        found = find(value, name)
        if found is None and name == "apply":
            return Method(value, name)
        return _bound(machine, found, value, node) if found else UNKNOWN
    if isinstance(value, Symbol):
        if name in OF_TENSORS:
            value.treat_as_tensor()
        return Device(value.cell) if name == "device" else value.part(f".{name}")
    if isinstance(value, Device):
        return _of_device(value, name)
    if isinstance(value, Accelerator) and name == "device":
        return Device(value.place)
    if isinstance(value, Optimizer) and name == "param_groups":
        return Sequence(None, Mapping({"params": value.params}, optimizer=value))
    if isinstance(value, Optimizer) and name == "state":
        # Code that goes through the state is about to move it.
        state = OptimizerState(value, value.place)
        moves.escape(machine, value)
        machine.memory.assign(value, "counts_on_cpu", False)
        return state
    if isinstance(value, Mapping) and name in value.attributes:
        return value.attributes[name]
    if isinstance(value, Mapping) and value.cls is not None and (found := find(value.cls, name)):
        return _bound(machine, found, value, node)
    return UNKNOWN if value is UNKNOWN else Method(value, name)


def forget(machine: Machine, value: Value) -> None:
    """Code that goes through the attributes of an object by names that are not known may move what is plain in it."""
    if isinstance(value, Module | Instance):
        for name, held in list(value.attributes.items()):
            if isinstance(held, Sequence | Mapping) or (isinstance(held, Tensor) and held.kind == "plain"):
                machine.memory.write(value.attributes, name, UNKNOWN)


def _of_tensor(machine: Machine, value: Tensor, name: str) -> Value:
    if name == "device":
        return Device(machine.traced or moves.place_of(value))
    if name == "is_leaf" and value.lost_leaf:
        return Constant(False)
    if name in _ASKS_KIND:
        known = truth.is_on(value, name.removeprefix("is_"))
        return UNKNOWN if known is None else Constant(known)
    if name in _SAME_TENSOR:
        detached = name in ("data", "grad")
        return replace(
            value,
            place=moves.place_of(value),
            owner=None,
            kind="plain",
            requires_grad=value.requires_grad and not detached,
            copied=value.copied or (name == "data" and (value.kind == "parameter" or value.owner is not None)),
        )
    if name == "batch_sizes":
        return Tensor(CPU, value.origin, False)
    if name in _NOT_TENSOR:
        return Symbol.named(name, "number") if name in ("shape", "ndim") else UNKNOWN
    return Method(value, name)


def _of_device(value: Device, name: str) -> Value:
    place = resolve(value.place) if value.place is not None else None
    if isinstance(place, Place) and name == "type":
        return Constant(place.kind)
    if isinstance(place, Place) and name == "index" and not isinstance(place.index, str):
        return Constant(place.index)
    return UNKNOWN


def _of_object(machine: Machine, value: Module | Instance, name: str, node: ast.AST) -> Value:
    found = value.attributes.get(name)
    if found is not None:
        return found
    if value.cls is not None and (known := find(value.cls, name)) is not None:
        return _bound(machine, known, value, node)
    if isinstance(value, Module):
        return _of_module(machine, value, name, node)
    if name == "__class__" and value.cls is not None:
        return value.cls
    if value.cls is None or value.cls.opaque or value.open:
        return _unseen(machine, value, name)
    return UNKNOWN


def _of_module(machine: Machine, value: Module, name: str, node: ast.AST) -> Value:
    if value.cls is None and value.place is not None and _PARAMETER.match(name):
        parameter = Tensor(
            None, value.origin, False, kind="parameter", held=value.held, owner=value, requires_grad=True
        )
        machine.memory.write(value.attributes, name, parameter)
        return parameter
    if name == "device" and (value.external or (value.cls is not None and value.cls.opaque)):
        return Device(moves.module_place(value))
    if value.symbolic or value.external or (value.cls is not None and value.cls.opaque):
        # Assigned somewhere that is not seen here.
        if name in MODULE_METHODS:
            return Method(value, name)
        return _unseen(machine, value, name)
    return Method(value, name)


def _unseen(machine: Machine, value: Module | Instance, name: str) -> Value:
    """An attribute that is set somewhere else: not known, and the same at every reading."""
    cls = value.cls.node.name if value.cls is not None else "…"
    found = Symbol.named(f"{cls}.{name}", "part")
    machine.memory.write(value.attributes, name, found)
    return found


def _bound(machine: Machine, found: tuple[Value, Class], receiver: Value, node: ast.AST) -> Value:
    value, cls = found
    if not isinstance(value, Function):
        return value
    if value.binding == "static":
        return value
    if value.binding == "class":
        owner = receiver if isinstance(receiver, Class) else getattr(receiver, "cls", None) or cls
        return replace(value, receiver=owner, cls=cls)
    if isinstance(receiver, Class):
        return replace(value, cls=cls)
    bound = replace(value, receiver=receiver, cls=cls)
    return machine.call(bound, Arguments(), node) if value.binding == "property" else bound


def write(machine: Machine, value: Value, name: str, new: Value, node: ast.AST) -> None:
    """`value.name = new`."""
    if isinstance(value, Module | Instance):
        machine.memory.write(value.attributes, name, _held_by(machine, value, name, new, node))
    elif isinstance(value, Class):
        machine.memory.write(value.namespace, name, new)
    elif isinstance(value, Symbol):
        machine.memory.write(value.parts, f".{name}", new)
    elif isinstance(value, Mapping):
        machine.memory.write(value.attributes, name, new)
    elif isinstance(value, Tensor):
        _write_tensor(machine, value, name, new, node)


def _write_tensor(machine: Machine, value: Tensor, name: str, new: Value, node: ast.AST) -> None:
    if name == "data":
        target = value if value.owner is None else value.owner
        place = moves.place_of(new) if isinstance(new, Tensor) else None
        machine.memory.assign(target, "place", place or unknown())
    elif name == "requires_grad" and isinstance(new, Constant):
        machine.memory.assign(value, "requires_grad", bool(new.value))
    elif name == "grad" and isinstance(new, Tensor):
        operands = [
            Operand(value, moves.place_of(value), node, "self"),
            Operand(new, moves.place_of(new), node, "grad"),
        ]
        if operations.may_conflict(operands):
            machine.report(node, "grad", "gradient", operands)


def _held_by(machine: Machine, owner: Module | Instance, name: str, new: Value, node: ast.AST) -> Value:
    in_module = isinstance(owner, Module)
    held = _held(machine, owner, name, node)
    if isinstance(new, Tensor) and new.kind == "plain":
        if in_module and new.lost_leaf:
            machine.note(LostLeaf(node, "parameter", new, machine.where()))
        old = owner.attributes.get(name)
        if in_module and isinstance(old, Tensor) and old.kind == "buffer":
            return replace(new, kind="buffer", held=held)
        return replace(new, held=held, place=moves.place_of(new), owner=None)
    if (isinstance(new, Tensor) and new.held is None) or (isinstance(new, Module) and new.held is None):
        machine.memory.assign(new, "held", held)
    elif isinstance(new, Sequence | Mapping):
        hold(machine, new, replace(held, kind="container"))
    return new


def _held(machine: Machine, owner: Module | Instance, name: str, node: ast.AST) -> Held:
    cls = owner.cls
    methods = {method for method in ("to", "update", "compute", "reset") if cls is not None and find(cls, method)}
    return Held(
        "attribute",
        cls.node.name if cls is not None else "",
        name,
        machine.own(node),
        isinstance(owner, Module),
        machine.frame.name,
        movable="to" in methods and cls is not None and _leaves_out(cls, name),
        accumulates="update" in methods or {"compute", "reset"} <= methods,
        foreign=machine.is_foreign,
    )


def _leaves_out(cls: Class, name: str) -> bool:
    """Whether the `to` of a class of its own does nothing with an attribute but to hand it on as it is.

    What it does with all attributes, by their names, it does with this one, too.
    """
    found = find(cls, "to")
    if found is None or not isinstance(found[0], Function):
        return True
    nodes = list(ast.walk(found[0].node))
    if any(getattr(node, "attr", getattr(node, "id", "")) in _ALL_ATTRIBUTES for node in nodes):
        return False
    handed_on = {
        id(given)
        for node in nodes
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (cls.node.name, "type(self)", "self.__class__")
        for given in (*node.args, *(keyword.value for keyword in node.keywords))
    }
    return all(id(node) in handed_on for node in nodes if isinstance(node, ast.Attribute) and node.attr == name)


_ALL_ATTRIBUTES = frozenset({"__dict__", "vars", "fields", "setattr", "getattr"})


def hold(machine: Machine, container: Sequence | Mapping, held: Held) -> None:
    """Record what keeps a container, and so each module, parameter and, in a module's container, tensor in it."""
    if container.held is None:
        machine.memory.assign(container, "held", held)
    inside = (
        (*(container.items or ()), container.element)
        if isinstance(container, Sequence)
        else (*container.entries.values(), container.element)
    )
    for part in inside:
        for option in part.options if isinstance(part, Either) else (part,):
            if isinstance(option, Module | Tensor) and option.held is None and _is_left_behind(option, held):
                # Not undone with the branch or the method: facts are judged after that, and name what kept it.
                option.held = held


def _is_left_behind(value: Module | Tensor, held: Held) -> bool:
    """Whether a move of what holds the container would take a part of it along, were it registered."""
    return isinstance(value, Module) or value.kind == "parameter" or (held.in_module and value.kind == "plain")


def write_item(machine: Machine, target: ast.Subscript, new: Value) -> None:
    """`target.value[target.slice] = new`."""
    value = machine.evaluate(target.value)
    key = machine.evaluate(target.slice)
    if isinstance(value, Tensor):
        operations.store(machine, target, value, key, new, target)
    elif isinstance(value, Mapping):
        _write_entry(machine, value, key, new, target)
    elif isinstance(value, Sequence):
        _write_position(machine, value, key, new)
    elif isinstance(value, OptimizerState):
        _write_state(machine, value, new, target)
    elif isinstance(value, Symbol):
        part = f"[{key.value!r}]" if isinstance(key, Constant) else f"[{ast.dump(target.slice)[:200]}]"
        machine.memory.write(value.parts, part, new)
    elif isinstance(value, Instance | Module) and value.cls is not None and find(value.cls, "__setitem__"):
        setter = read(machine, value, "__setitem__", target)
        machine.call(setter, Arguments([key, new], [target.slice, target]), target)
    elif isinstance(value, Module) and isinstance(key, Constant) and isinstance(key.value, int):
        _write_child(machine, value, key.value, new)


def _write_state(machine: Machine, value: OptimizerState, new: Value, target: ast.AST) -> None:
    """`state[key] = tensor` for one parameter: the state is there now, if there was one before."""
    if value.one and isinstance(new, Tensor) and value.place is not None:
        machine.memory.assign(value.optimizer, "place", moves.place_of(new))
        machine.memory.assign(value.optimizer, "state_node", machine.own(target))


def _write_child(machine: Machine, value: Module, position: int, new: Value) -> None:
    if -len(value.children) <= position < len(value.children):
        children = list(value.children)
        children[position] = new
        machine.memory.assign(value, "children", children)


def _write_entry(machine: Machine, value: Mapping, key: Value, new: Value, target: ast.Subscript) -> None:
    if value.optimizer is not None and isinstance(key, Constant) and key.value == "capturable":
        wanted = machine.own(target) if isinstance(new, Constant) and new.value is True else None
        machine.memory.assign(value.optimizer, "capturable", wanted)
    if value.held is not None and isinstance(new, Tensor) and new.kind == "plain" and new.held is None:
        node, function = machine.own(target), machine.frame.name
        held = replace(value.held, kind="cache", node=node, function=function, foreign=machine.is_foreign)
        new = replace(new, held=held)
    elif value.held is not None and isinstance(new, Module) and new.held is None:
        machine.memory.assign(new, "held", value.held)
    if isinstance(key, Constant) and key.value.__hash__ is not None:
        machine.memory.write(value.entries, key.value, new)
    else:
        if not _names_device(key):
            _note_apart(machine, value, new)
        machine.memory.assign(value, "element", join(value.element, new))


def _names_device(key: Value) -> bool:
    """Whether a key holds a device, so that each device has entries of its own."""
    return isinstance(key, Device) or (
        isinstance(key, Sequence) and key.items is not None and any(_names_device(part) for part in key.items)
    )


def _note_apart(machine: Machine, value: Mapping, new: Value) -> None:
    old = value.element
    if value.apart is not None or not isinstance(old, Tensor) or not isinstance(new, Tensor):
        return
    if difference(moves.place_of(old), moves.place_of(new)) is Certainty.CERTAIN:
        machine.memory.assign(value, "apart", (old, new))


def _write_position(machine: Machine, value: Sequence, key: Value, new: Value) -> None:
    if isinstance(key, Constant) and isinstance(key.value, int) and value.items is not None:
        if -len(value.items) <= key.value < len(value.items):
            items = list(value.items)
            items[key.value] = new
            machine.memory.assign(value, "items", tuple(items))
        return
    machine.memory.assign(value, "items", None)
    machine.memory.assign(value, "element", join(value.element, new))
