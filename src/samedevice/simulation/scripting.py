"""`torch.compile` and TorchScript.

`torch.compile` runs eagerly in a simulation: dynamo would read where tensors really are and bake that in. TorchScript
is left to itself, since its operators reach the dispatch mode, but for what happens in C++: saving and loading with
the device of each tensor, and the interpreter, which loses the text of an error that an operator raised.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from samedevice.faults import attach_fault
from samedevice.simulation import archives
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
    # Private classes: torch/jit/_script.py and _trace.py, 2.6 to 2.14.
    for module_type in (torch.jit._script.RecursiveScriptModule, torch.jit._trace.TopLevelTracedModule):
        yield from _saving(machine, labels, module_type)
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
        if map_location is None:
            return _load_as_written(machine, labels, original, f, args, kwargs)
        target = machine.complete(map_location)
        if not machine.owns(target):
            return original(f, map_location, *args, **kwargs)
        module = original(f, machine.host, *args, **kwargs)
        for tensor in _tensors_of(module):
            labels.set_device(tensor, target)
        return module

    return load


def _load_as_written(
    machine: Machine, labels: LabelTable, original: Callable[..., Any], f: Any, args: Any, kwargs: Any
) -> Any:
    """Each tensor where the archive says; constants in the code where all of them are."""
    written = archives.stored(f)
    if machine.kind not in {storage.device.partition(":")[0] for storage in _storages(written)}:
        return original(f, None, *args, **kwargs)
    module = original(f, machine.host, *args, **kwargs)
    for tensor, storage in archives.stored_tensors(module, written.get("data")):
        labels.set_device(tensor, machine.complete(storage.device))
    places = {storage.device for storage in archives.constants_of(written.get("constants"))}
    if len(places) == 1:
        for tensor in _constants(module):
            labels.set_device(tensor, machine.complete(next(iter(places))))
    return module


def _saving(machine: Machine, labels: LabelTable, module_type: Any) -> Iterator[Patch]:
    """What a scripted module writes, with the devices that its tensors are said to be on."""
    write_file, write_buffer = module_type.save, module_type.save_to_buffer

    def relocated(module: Any, archive: bytes) -> bytes:
        devices = _devices_by_key(labels, module, archives.stored(io.BytesIO(archive)))
        there = any(machine.owns(torch.device(device)) for keys in devices.values() for device in keys.values())
        return archives.with_devices(archive, devices) if there else archive

    def save_to_buffer(self: Any, **kwargs: Any) -> bytes:
        return relocated(self, write_buffer(self, **kwargs))

    def save(self: Any, f: Any, **kwargs: Any) -> Any:
        result = write_file(self, f, **kwargs)
        path = Path(f)
        before = path.read_bytes()
        after = relocated(self, before)
        if after is not before:
            path.write_bytes(after)
        return result

    yield Patch(module_type, "save", save)
    yield Patch(module_type, "save_to_buffer", save_to_buffer)


def _devices_by_key(labels: LabelTable, module: Any, written: dict[str, Any]) -> dict[str, dict[str, str]]:
    pairs = archives.stored_tensors(module, written.get("data"))
    places = {str(labels.device_of(tensor)) for tensor in _constants(module)}
    constants = archives.constants_of(written.get("constants")) if len(places) == 1 else []
    return {
        "data": {storage.key: str(labels.device_of(tensor)) for tensor, storage in pairs},
        "constants": {storage.key: place for storage in constants for place in places},
    }


def _storages(written: dict[str, Any]) -> Iterator[archives.Stored]:
    yield from archives.storages_in(written.get("data"))
    yield from archives.constants_of(written.get("constants"))


def _constants(module: Any) -> Iterator[torch.Tensor]:
    for part in module.modules():
        for name in part._c._method_names():
            yield from _constants_of(part._c._get_method(name).graph)


def _tensors_of(module: Any) -> Iterator[torch.Tensor]:
    """What `map_location` moves: parameters, buffers, attributes, and constants in the code."""
    for part in module.modules():
        yield from part.parameters(recurse=False)
        yield from part.buffers(recurse=False)
    yield from _constants(module)


def _constants_of(block: Any) -> Iterator[torch.Tensor]:
    for node in block.nodes():
        if node.kind() == "prim::Constant" and node.hasAttribute("value") and node.kindOf("value") == "t":
            yield node.t("value")
        for inner in node.blocks():
            yield from _constants_of(inner)
