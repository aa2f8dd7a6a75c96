"""Storages that say where they are; with them `torch.save`, `torch.load`, `deepcopy` and sharing follow by themselves.

PyTorch's serialization asks a storage for its device to write its tag, and restores a tag by `storage.to(device=…)`,
which makes a new `torch.UntypedStorage(…, device=…)`. So the location tags, every form of `map_location` and the
errors about devices that are not there stay PyTorch's Python code (torch/serialization.py, torch/storage.py). Here is
only what C++ answers: the device, and construction on one. Tensors are `tensors.py`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from samedevice.simulation.labels import LabelTable
from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import Patch, Undoable

__all__ = ["patches"]

_Storage: Any = torch.UntypedStorage
_native_device = torch._C.StorageBase.device.__get__  # type: ignore[attr-defined]


def patches(machine: Machine, labels: LabelTable) -> Iterator[Undoable]:
    """The device of storages.

    Args:
        machine: what is simulated.
        labels: where tensors are.

    Yields:
        The changes, none of them installed yet.
    """

    def device(storage: Any) -> Any:
        label = labels.read(storage)
        return label if isinstance(label, type(machine.host)) else _native_device(storage)

    def is_shared(storage: Any) -> bool:
        """Memory of a device is shared between processes as it is."""
        return device(storage).type == machine.kind or bool(original(storage))

    original = _Storage.is_shared
    yield Patch(_Storage, "device", property(device))
    yield Patch(_Storage, "is_shared", is_shared)
    yield Patch(_Storage, "__new__", staticmethod(_constructor(machine, labels)))


def _constructor(machine: Machine, labels: LabelTable) -> Callable[..., Any]:
    original = _Storage.__new__

    def new(cls: Any, *args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None:
            return original(cls, *args, **kwargs)
        device = machine.complete(device)
        if not machine.owns(device):
            return original(cls, *args, device=device, **kwargs)
        machine.initialise()
        storage = original(cls, *args, **kwargs)
        labels.put(storage, device)
        return storage

    return new
