"""`torch.jit.trace`, `save` and `load`: a trace keeps the devices that the module was asked for while it was traced."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.linting.devices import moves
from samedevice.linting.devices.lattice import as_place, is_given
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.places import Place, resolve
from samedevice.linting.devices.values import UNKNOWN, Constant, Module, Sequence, Value

__all__ = ["load", "save", "trace"]


def trace(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.jit.trace(module, inputs)`: runs the module once, and writes down each device that it asks for.

    Source: the real CUDA build: `torch.arange(n, device=x.device)`, traced on the CPU, goes on giving a CPU tensor.
    """
    module = arguments.get(0, "func")
    if not isinstance(module, Module):
        return module if module is not None else UNKNOWN
    inputs = arguments.get(1, "example_inputs")
    if inputs is not None:
        given = list(inputs.items or ()) if isinstance(inputs, Sequence) else [inputs]
        machine.call(module, Arguments(given, [arguments.node(1, "example_inputs", node)] * len(given)), node)
    place = moves.module_place(module)
    found = resolve(place) if place is not None else None
    return replace(module, traced=found if isinstance(found, Place) else None)


def save(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.jit.save(module, file)`."""
    module = arguments.get(0, "m")
    if isinstance(module, Module):
        machine.archives.append(module)
    return Constant(None)


def load(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`torch.jit.load(file, map_location)`: the module that the file itself has saved, where there is only one."""
    if len({id(module) for module in machine.archives}) != 1:
        return UNKNOWN
    module = replace(machine.archives[0], held=None)
    given = arguments.get(1, "map_location")
    if is_given(given):
        moves.move_module(machine, module, as_place(given), node)
    return module
