"""Every tensor of a module by name: what `.to()` moves, and what it passes by.

Registered parameters and buffers are the first kind; `plain_tensors.py` finds the second. Instance dictionaries are
read directly: no property, no `__getattr__` and no method of the user's is called, and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from samedevice.trees.path import Path, Step, attribute, item

__all__ = [
    "ModuleTensor",
    "child_step",
    "instance_attributes",
    "own_parameters",
    "registered_tensors",
    "single_device",
    "submodules",
]


@dataclass(frozen=True, slots=True, eq=False)
class ModuleTensor:
    """One tensor of a module, by the user's name for it, e.g. "model.encoder.layers[3].bias"."""

    path: str
    tensor: torch.Tensor
    kind: str
    """parameter or buffer for what `.to()` moves; for the rest see `plain_tensors.py`."""
    holder: nn.Module
    attribute: str
    """The attribute of `holder` through which it is reached."""
    holder_path: str | None
    """The path of that attribute, for what is not registered."""
    owner_device: torch.device | None
    """Where the parameters around it live: the holder's own, or those of the nearest module that has one device."""


def submodules(root: nn.Module, name: str) -> Iterator[tuple[Path, nn.Module]]:
    """`root` and the modules below it, parents first, each once.

    Args:
        root: the module.
        name: what to call it, e.g. "model".

    Yields:
        The path of each, e.g. `model.encoder.layers[3]`, and the module.
    """
    seen: set[int] = set()
    stack = [(Path(name), root)]
    while stack:
        path, module = stack.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield path, module
            attributes = instance_attributes(module)
            # A traced module keeps its tensors in another one, to which it passes everything on (2.6 to 2.13).
            if (traced := attributes.get("_actual_script_module")) is not None:
                stack.append((path, traced))
            children = attributes.get("_modules", {})
            stack += [
                (path / child_step(module, key), child)
                for key, child in reversed(children.items())
                if child is not None
            ]


def registered_tensors(root: nn.Module, name: str) -> Iterator[ModuleTensor]:
    """The parameters and buffers of `root` and of the modules below it, each once: what `.to()` moves.

    Args:
        root: the module.
        name: what to call it, e.g. "model".

    Yields:
        Tied tensors under their first name, as `named_parameters()` gives them.
    """
    seen: set[int] = set()
    for path, module in submodules(root, name):
        home = single_device(own_parameters(module))
        for kind, table in (("parameter", "_parameters"), ("buffer", "_buffers")):
            for key, tensor in _entries(module, table):
                if id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield ModuleTensor(str(path / child_step(module, key)), tensor, kind, module, key, None, home)


def own_parameters(module: nn.Module) -> list[torch.Tensor]:
    """The parameters of this very module, or its buffers where it has none."""
    return [tensor for _, tensor in _entries(module, "_parameters")] or [
        tensor for _, tensor in _entries(module, "_buffers")
    ]


def single_device(tensors: list[torch.Tensor]) -> torch.device | None:
    """The device that all of `tensors` are on, or None."""
    devices = {tensor.device for tensor in tensors}
    return devices.pop() if len(devices) == 1 else None


def child_step(parent: nn.Module, key: str) -> Step:
    """The step to a registered child as one would write it: `.name`, `[3]` in a Sequential, `["a"]` in a ModuleDict."""
    if key.isdigit():
        return item(int(key))
    by_key = isinstance(parent, (nn.ModuleDict, nn.ParameterDict)) or not key.isidentifier()
    return item(key) if by_key else attribute(key)


def instance_attributes(value: Any) -> dict[str, Any]:
    """The instance dictionary, past any `__getattribute__` or `__dict__` of the class; {} where there is none."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}


def _entries(module: nn.Module, table: str) -> Iterator[tuple[str, torch.Tensor]]:
    for key, tensor in list(instance_attributes(module).get(table, {}).items()):
        if tensor is not None:
            yield key, tensor
