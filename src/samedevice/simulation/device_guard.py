"""A device guard for the simulated kind, without which C++ aborts the process on a fake tensor that says it is there.

Fake tensors (`torch.export`, `make_fx`, flex attention's masks) have no values, so nothing of them is simulated: their
device is a name. But C++'s autograd asks the guard of that kind of device for a stream. A build without CUDA has no
such guard, and that of a CUDA build needs a driver. The one of the meta device, which does nothing, takes its place.
Where real devices are, theirs stays.

Private PyTorch API used here: the table `c10::impl::device_guard_impl_registry` (c10/core/impl/
DeviceGuardImplInterface.h), `torch._C._cuda_getDriverVersion`, `torch.cuda._device_count_nvml`,
`torch._subclasses.fake_tensor.init_gpu_context`, 2.6 to 2.14. Where a platform names the table otherwise, nothing
happens.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch._subclasses.fake_tensor

from samedevice.simulation.patching import Patch, Undoable

__all__ = ["NUMBERS", "DeviceGuard", "patches"]

NUMBERS = {"cuda": 1, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19, "npu": 20}
"""Kinds of devices as C++ counts them: c10/core/DeviceType.h."""
_META = 14
_KINDS = 21
"""The table has an entry for each kind, at least so many."""
_SYMBOL = "_ZN3c104impl26device_guard_impl_registryE"


def patches(kind: str) -> Iterator[Undoable]:
    """The guard, and PyTorch's own remedy for its absence, which makes a real tensor on the device.

    Args:
        kind: "cuda", "xpu" …

    Yields:
        The changes, none of them installed yet.
    """
    yield DeviceGuard(kind)
    yield Patch(torch._subclasses.fake_tensor, "init_gpu_context", lambda device: None)


class DeviceGuard:
    """The guard that does nothing, for a kind of device that has none.

    Args:
        kind: "cuda", "xpu" …
    """

    def __init__(self, kind: str) -> None:
        self._number = NUMBERS[kind]
        self._guards: Any = None
        self._before: int | None = None
        self._can_serve = kind == "cuda" and _has_cuda_devices()

    def install(self) -> None:
        """Enter it, unless the build has one of its own and devices for it."""
        guards = _registry()
        if guards is not None and guards[_META] and not (guards[self._number] and self._can_serve):
            self._before = guards[self._number]
            guards[self._number] = guards[_META]
            self._guards = guards

    def undo(self) -> None:
        """Put back what was there."""
        if self._guards is not None:
            self._guards[self._number] = self._before
            self._guards = None


def _has_cuda_devices() -> bool:
    """Whether there may be real ones. Looks without initialising CUDA, which a process must not do before it forks."""
    driver_version = getattr(torch._C, "_cuda_getDriverVersion", None)
    return driver_version is not None and driver_version() > 0 and torch.cuda._device_count_nvml() != 0


@functools.cache
def _registry() -> Any:
    """PyTorch's table of guards, or None where it is not found."""
    folder = Path(torch.__file__).parent / "lib"
    path = next(iter(sorted(folder.glob("libc10.*"))), None)
    try:
        return None if path is None else (ctypes.c_void_p * _KINDS).in_dll(ctypes.CDLL(str(path)), _SYMBOL)
    except (OSError, ValueError):
        return None
