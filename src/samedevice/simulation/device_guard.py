"""A device guard for the simulated kind, without which C++ aborts the process on a fake tensor that says it is there.

Fake tensors (`torch.export`, `make_fx`, flex attention's masks) have no values, so nothing of them is simulated: their
device is a name. But C++'s autograd asks the guard of that kind of device for a stream, and a build without CUDA has no
such guard. The one of the meta device, which does nothing, takes its place.

Private PyTorch API used here: the table `c10::impl::device_guard_impl_registry` (c10/core/impl/
DeviceGuardImplInterface.h), 2.6 to 2.14. Where a platform names it otherwise, nothing happens.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch

__all__ = ["NUMBERS", "DeviceGuard"]

NUMBERS = {"cuda": 1, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19}
"""Kinds of devices as C++ counts them: c10/core/DeviceType.h."""
_META = 14
_KINDS = 20
"""The table has an entry for each kind, at least so many."""
_SYMBOL = "_ZN3c104impl26device_guard_impl_registryE"


class DeviceGuard:
    """The guard that does nothing, for a kind of device that has none.

    Args:
        kind: "cuda", "xpu" …
    """

    def __init__(self, kind: str) -> None:
        self._number = NUMBERS[kind]
        self._guards: Any = None

    def install(self) -> None:
        """Enter it, unless the build has one of its own."""
        guards = _registry()
        if guards is not None and not guards[self._number] and guards[_META]:
            guards[self._number] = guards[_META]
            self._guards = guards

    def undo(self) -> None:
        """Take it out again."""
        if self._guards is not None:
            self._guards[self._number] = None
            self._guards = None


def _registry() -> Any:
    """PyTorch's table of guards, or None where it is not found."""
    folder = Path(torch.__file__).parent / "lib"
    path = next(iter(sorted(folder.glob("libc10.*"))), None)
    try:
        return None if path is None else (ctypes.c_void_p * _KINDS).in_dll(ctypes.CDLL(str(path)), _SYMBOL)
    except (OSError, ValueError):
        return None
