"""DLPack capsules that say where their tensor is, as those of a real device do.

PyTorch's exchange is Python code around a few functions of C++ that write and read a capsule. Here a capsule is written
on the CPU and the device put into it, so that whoever reads it (NumPy refuses, PyTorch accepts) finds what a real one
holds; before C++ reads it back the device is taken out, and the new tensor labelled.

Source: dlpack.h, the structures `DLManagedTensor` and `DLManagedTensorVersioned`; torch/_tensor.py `__dlpack__` and
torch/utils/dlpack.py, 2.6 to 2.14. Private PyTorch API used here: `torch._C._to_dlpack`, `_from_dlpack`, and
`_to_dlpack_versioned` where there is one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
import torch.utils.dlpack

from samedevice.simulation.labels import LabelTable
from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import Patch

__all__ = ["patches"]

_CPU = 1
_CODES: Mapping[str, int] = {"cuda": 2, "mps": 8, "xpu": 14}
"""`DLDeviceType`."""
_DEVICE_AT = {b"dltensor": 8, b"dltensor_versioned": 40}
"""Name of a capsule -> where its structure holds the device: behind the address of the data."""

_is_named = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class _Device(ctypes.Structure):
    """`DLDevice`."""

    _fields_ = (("type", ctypes.c_int32), ("index", ctypes.c_int32))


def patches(machine: Machine, labels: LabelTable) -> Iterator[Patch]:
    """The functions that write and read capsules.

    Args:
        machine: what is simulated.
        labels: where tensors are.

    Yields:
        A patch for each place where code finds one.
    """
    code = _CODES.get(machine.kind)
    if code is None:
        return
    for name in ("_to_dlpack", "_to_dlpack_versioned"):
        if hasattr(torch._C, name):
            yield Patch(torch._C, name, _exporting(machine, labels, code, getattr(torch._C, name)))
    # torch.utils.dlpack has a name of its own for it up to 2.8.
    for owner in (torch._C, torch.utils.dlpack):
        if hasattr(owner, "_from_dlpack"):
            yield Patch(owner, "_from_dlpack", _importing(machine, labels, code, owner._from_dlpack))
    for owner in (torch, torch.utils.dlpack):
        if hasattr(owner, "to_dlpack"):
            yield Patch(owner, "to_dlpack", _exporting(machine, labels, code, owner.to_dlpack))


def _exporting(machine: Machine, labels: LabelTable, code: int, original: Callable[..., Any]) -> Callable[..., Any]:
    def to_dlpack(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        device = labels.device_of(tensor)
        if not machine.owns(device):
            return original(tensor, *args, **kwargs)
        # Where to is no question of C++'s: there is one place in truth.
        kwargs.pop("dl_device", None)
        capsule = original(tensor, *args, **kwargs)
        place = _device_in(capsule)
        if place is not None:
            place.type, place.index = code, device.index or 0
        return capsule

    return to_dlpack


def _importing(machine: Machine, labels: LabelTable, code: int, original: Callable[..., Any]) -> Callable[..., Any]:
    def _from_dlpack(capsule: Any) -> Any:
        place = _device_in(capsule)
        if place is None or place.type != code:
            return original(capsule)
        device = machine.device(place.index)
        place.type, place.index = _CPU, 0
        made = original(capsule)
        labels.set_device(made, device)
        return made

    return _from_dlpack


def _device_in(capsule: Any) -> _Device | None:
    """The device that a capsule holds, to be read and written; None where it is none or was read already."""
    for name, offset in _DEVICE_AT.items():
        if _is_named(capsule, name):
            return _Device.from_address(_pointer(capsule, name) + offset)
    return None
