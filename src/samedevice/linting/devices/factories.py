"""Functions of torch that make tensors, parameters and generators."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.linting.devices import moves, operations
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.lattice import as_place, is_given
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.places import CPU, Location
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    Generator,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["as_tensor", "buffer", "factory", "from_numpy", "generator", "like", "parameter"]


def factory(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.zeros(…)` and the like: on `device=`, else on the default device."""
    given = arguments.keywords.get("device")
    place, how, literal = machine.default_place, "made", False
    if is_given(given):
        place, how = as_place(given), "made on"
        literal = isinstance(arguments.keyword_nodes["device"], ast.Constant)
        if machine.traced is not None and isinstance(arguments.keyword_nodes["device"], ast.Attribute):
            how = "traced"
        moves.note_elsewhere(place)
    elif (out := arguments.keywords.get("out")) is not None and not isinstance(out, Constant):
        return operations.as_tensor(out) or Tensor(None, None, None)
    elif not arguments.complete or (name == "tensor" and _may_be_tensor(arguments.get(0, "data"))):
        return _copied(arguments.get(0, "data"))
    generator = arguments.keywords.get("generator")
    if isinstance(generator, Generator):
        _check_generator(machine, generator, place, arguments, node)
    if name == "normal" and any(isinstance(value, Tensor) for value in arguments.positional):
        return operations.combine(machine, node, name, "elementwise", list(arguments.all()))
    grad = arguments.keywords.get("requires_grad")
    return Tensor(
        place,
        machine.origin(node, how, literal=literal),
        _has_no_dimensions(name, arguments),
        requires_grad=isinstance(grad, Constant) and grad.value is True,
    )


def _may_be_tensor(data: Value | None) -> bool:
    """Whether `torch.tensor` may be given a tensor, which it warns of: what `forward` gets most often is one."""
    return isinstance(data, Tensor) or (isinstance(data, Symbol) and data.role == "forward")


def _copied(data: Value | None) -> Tensor:
    """`torch.tensor(tensor)`: a copy where the tensor is; of what may be one, nothing is known.

    Source: the documentation of torch.tensor: "If None and data is a tensor then the device of data is used."
    """
    if isinstance(data, Tensor) and data.certain:
        return replace(data, place=moves.place_of(data), owner=None, kind="plain", held=None, leaf=True)
    return Tensor(None, None, None)


def _has_no_dimensions(name: str, arguments: Arguments) -> bool | None:
    first = arguments.get(0, "data" if name == "tensor" else "size")
    if name in ("tensor", "scalar_tensor"):
        if isinstance(first, Constant) and isinstance(first.value, int | float | bool):
            return True
        node = arguments.nodes[0] if arguments.nodes else None
        known = isinstance(first, Sequence) or isinstance(node, ast.List | ast.ListComp | ast.Tuple)
        return False if known else None
    if isinstance(first, Sequence) and first.items == () and len(arguments.positional) < 2:
        return True
    return bool(isinstance(first, Sequence) and first.items == () and name == "full")


def _check_generator(
    machine: Machine, generator: Generator, place: Location | None, arguments: Arguments, node: ast.AST
) -> None:
    """Source: the check of `check_generator`: "Expected a 'cuda' device type for generator but found 'cpu'"."""
    here = Operand(UNKNOWN, place, node, "device")
    there = Operand(generator, generator.place, arguments.keyword_nodes["generator"], "generator")
    if operations.may_conflict([here, there]):
        machine.report(node, "generator", "generator", [there, here])


def like(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.zeros_like(x)` and the like: on `device=`, else where `x` is."""
    first = arguments.get(0, "input")
    tensor = operations.as_tensor(first) if first is not None else None
    given = arguments.keywords.get("device")
    if is_given(given):
        place = as_place(given)
        moves.note_elsewhere(place)
        return Tensor(place, machine.origin(node, "made on"), tensor.scalar if tensor else None)
    if tensor is None:
        return UNKNOWN
    return Tensor(moves.place_of(tensor), tensor.origin, tensor.scalar, held=tensor.held, part_of=tensor.part_of)


def as_tensor(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.as_tensor(data)`: a tensor stays where it is, other data goes to `device=` or the default device."""
    given = arguments.keywords.get("device")
    first = arguments.get(0, "data")
    if is_given(given):
        place = as_place(given)
        moves.note_elsewhere(place)
        return Tensor(place, machine.origin(node, "made on"), None)
    if isinstance(first, Tensor | Symbol) or first is UNKNOWN:
        return first if isinstance(first, Tensor) else Tensor(None, None, None)
    return Tensor(machine.default_place, machine.origin(node, "made"), None)


def from_numpy(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.from_numpy(array)`: on the CPU, over the array's own memory."""
    return Tensor(CPU, machine.origin(node, "numpy"), False)


def generator(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.Generator(device)`: on the CPU unless said otherwise."""
    given = arguments.get(0, "device")
    return Generator(
        as_place(given) if is_given(given) else CPU, machine.origin(node, "made on" if is_given(given) else "made")
    )


def parameter(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`nn.Parameter(data)`: where its data is; a module that holds it moves it."""
    data = arguments.get(0, "data")
    grad = arguments.get(1, "requires_grad")
    tensor = operations.as_tensor(data) if data is not None else None
    place = moves.place_of(tensor) if tensor else None
    wants = not (isinstance(grad, Constant) and grad.value is False)
    return Tensor(
        place, machine.origin(node, "module"), tensor.scalar if tensor else None, kind="parameter", requires_grad=wants
    )


def buffer(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`nn.Buffer(data)`: the same for a buffer."""
    data = arguments.get(0, "data")
    tensor = operations.as_tensor(data) if data is not None else None
    return Tensor(moves.place_of(tensor) if tensor else None, machine.origin(node, "module"), None, kind="buffer")
