"""Making modules of torch.nn."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.linting.devices import moves
from samedevice.linting.devices.facts import WeightUntied
from samedevice.linting.devices.lattice import as_place, is_given
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.method_tables import ACCELERATORS
from samedevice.linting.devices.operation_tables import WEIGHTED, WEIGHTED_LOSSES
from samedevice.linting.devices.places import CUDA, Location, Place, resolve
from samedevice.linting.devices.values import (
    NOTHING,
    UNKNOWN,
    Constant,
    Device,
    Held,
    Mapping,
    Module,
    Sequence,
    Tensor,
    Value,
)

__all__ = ["children_from", "construct", "data_parallel", "distributed"]

_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})


def construct(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """`nn.Linear(…)` and the like."""
    origin = machine.origin(node, "module")
    if name in _CONTAINERS:
        module = Module(name, None, {}, None, origin)
        module.children = children_from(machine, arguments)
        module.attributes = _named_children(arguments)
        return module
    given = arguments.keywords.get("device")
    place = as_place(given) if is_given(given) else machine.default_place
    if name in WEIGHTED:
        shared = arguments.keywords.get("_weight")
        if isinstance(shared, Tensor) and shared.kind == "parameter":
            machine.note(WeightUntied(node, arguments.keyword_nodes["_weight"], machine.where()))
        return _with_children(Module(name, None, {}, place, origin), arguments)
    if name in WEIGHTED_LOSSES:
        return _loss(machine, Module(name, None, {}, None, origin), arguments)
    if name[:1].isupper():
        return Module(name, None, {}, None, origin)
    return UNKNOWN


def _with_children(module: Module, arguments: Arguments) -> Module:
    # nn.TransformerEncoder copies the layer that it is given.
    layer = arguments.get(0, "encoder_layer")
    if isinstance(layer, Module) and module.place is None:
        module.place = layer.place
    return module


def _named_children(arguments: Arguments) -> dict[str, Value]:
    first = arguments.positional[0] if arguments.positional else None
    if isinstance(first, Mapping):
        return {str(name): value for name, value in first.entries.items()}
    return {}


def children_from(machine: Machine, arguments: Arguments) -> list[Value]:
    """The children that Sequential, ModuleList and the like are made of."""
    children: list[Value] = []
    for value in arguments.positional:
        if isinstance(value, Sequence):
            children.extend(value.items if value.items is not None else (value.element,))
        elif isinstance(value, Mapping):
            children.extend([*value.entries.values(), *([] if value.element is NOTHING else [value.element])])
        else:
            children.append(value)
    return children


def _loss(machine: Machine, module: Module, arguments: Arguments) -> Module:
    for name, position in (("weight", 0), ("pos_weight", -1)):
        value = arguments.get(position, name)
        if isinstance(value, Tensor):
            node = machine.own(arguments.node(position, name, module.origin.node))
            held = Held("argument", module.name, name, node, True, machine.frame.name)
            module.attributes[name] = replace(value, kind="buffer", held=held, place=moves.place_of(value), owner=None)
    return module


def data_parallel(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`nn.DataParallel(module, device_ids)`."""
    module = arguments.get(0, "module")
    if not isinstance(module, Module):
        return module if module is not None else UNKNOWN
    first = Device(_first_device(arguments.get(1, "device_ids"), _kind_of(module)))
    wrapped = Module("DataParallel", None, {"module": module, "first": first}, None, machine.origin(node, "module"))
    wrapped.children = [module]
    return wrapped


def _kind_of(module: Module) -> str:
    """The kind of accelerator that the machine has: that of the module, else CUDA.

    Source: torch/nn/parallel/data_parallel.py and torch/_utils.py, `_get_available_device_type`.
    """
    place = moves.module_place(module)
    found = resolve(place) if place is not None else None
    return found.kind if isinstance(found, Place) and found.kind in ACCELERATORS else CUDA.kind


def _first_device(ids: Value | None, kind: str) -> Location | None:
    if not is_given(ids):
        return Place(kind, 0)
    head = ids.items[0] if isinstance(ids, Sequence) and ids.items else UNKNOWN
    number = head.value if isinstance(head, Constant) else None
    return Place(kind, number) if isinstance(number, int) else as_place(head)


def distributed(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`DistributedDataParallel(module)`: inputs are brought to the module. Source: torch/nn/parallel/distributed.py."""
    module = arguments.get(0, "module")
    if not isinstance(module, Module):
        return module if module is not None else UNKNOWN
    wrapped = Module("DistributedDataParallel", None, {"module": module}, None, machine.origin(node, "module"))
    wrapped.children = [module]
    return wrapped
