"""`torch.compile` and TorchScript.

`torch.compile` runs eagerly in a simulation: dynamo would read where tensors really are and bake that in. TorchScript
is left to itself, since its operators reach the dispatch mode, but for two things that happen in C++: `torch.jit.load`
reads its `map_location`, and the interpreter loses the text of an error that an operator raised.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from samedevice.faults import attach_fault
from samedevice.simulation.labels import LabelTable
from samedevice.simulation.machine import Machine
from samedevice.simulation.operators import DeviceMode
from samedevice.simulation.patching import Patch

__all__ = ["patches"]


def patches(machine: Machine, labels: LabelTable, mode: DeviceMode) -> Iterator[Patch]:
    """The replacements of `torch.compile`, `torch.jit.load` and the call of a scripted module.

    Args:
        machine: what is simulated.
        labels: where tensors are.
        mode: knows what the last error said.

    Yields:
        One patch for each.
    """
    yield Patch(torch, "compile", _eager())
    yield Patch(torch.jit, "load", _loading(machine, labels, torch.jit.load))
    yield Patch(torch.jit.ScriptModule, "__call__", _telling_why(mode))


def _eager() -> Callable[..., Any]:
    noted: list[str] = []

    def compile(model: Any = None, **options: Any) -> Any:  # noqa: A001
        if not noted:
            noted.append("torch.compile")
            print("samedevice: torch.compile is not simulated; the code runs eagerly.", file=sys.stderr)
        return model if model is not None else _as_it_is

    return compile


def _as_it_is(model: Callable[..., Any]) -> Callable[..., Any]:
    return model


def _telling_why(mode: DeviceMode) -> Callable[..., Any]:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return torch.nn.Module.__call__(self, *args, **kwargs)
        except RuntimeError as error:
            text, fault = mode.last_error()
            said = str(error)
            if said.startswith("The following operation failed in the TorchScript interpreter") and text not in said:
                error.args = (f"{said.rstrip()} {text}\n",)
                if fault is not None:
                    attach_fault(error, fault)
            raise

    return __call__


def _loading(machine: Machine, labels: LabelTable, original: Callable[..., Any]) -> Callable[..., Any]:
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        target = None if map_location is None else machine.complete(map_location)
        if target is None or not machine.owns(target):
            return original(f, map_location, *args, **kwargs)
        module = original(f, machine.host, *args, **kwargs)
        for tensor in _tensors_of(module):
            labels.set_device(tensor, target)
        return module

    return load


def _tensors_of(module: Any) -> Iterator[torch.Tensor]:
    """What `map_location` moves: parameters, buffers, attributes, and constants in the code."""
    for part in module.modules():
        yield from part.parameters(recurse=False)
        yield from part.buffers(recurse=False)
        for name in part._c._method_names():
            yield from _constants_of(part._c._get_method(name).graph)


def _constants_of(block: Any) -> Iterator[torch.Tensor]:
    for node in block.nodes():
        if node.kind() == "prim::Constant" and node.hasAttribute("value") and node.kindOf("value") == "t":
            yield node.t("value")
        for inner in node.blocks():
            yield from _constants_of(inner)
