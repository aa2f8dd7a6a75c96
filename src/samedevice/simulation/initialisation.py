"""Keeps PyTorch's C++ from believing, after a simulation, that a device was initialised.

When C++ parses `device="cuda"` for the first time it calls `torch.cuda._lazy_init` and notes for good that this was
done. In a simulation nothing was initialised, so the note is taken back at the end: the next `device="cuda"` fails, or
initialises real devices, as it would have.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch

__all__ = ["Initialisation"]

_SYMBOL = "_ZN5torch5utils24set_requires_device_initEN3c1010DeviceTypeEb"
"""torch/csrc/utils/device_lazy_init.h, `set_requires_device_init(c10::DeviceType, bool)`, 2.4 to 2.14."""
_NUMBERS = {"cuda": 1, "hpu": 15, "xpu": 12, "mtia": 19}
"""c10/core/DeviceType.h."""


class Initialisation:
    """Undoes C++'s note that devices of a kind are initialised; changes nothing before.

    Args:
        kind: "cuda", "xpu" …
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._was_initialised = False

    def install(self) -> None:
        """Remember whether the real devices were in use before."""
        is_initialized = getattr(getattr(torch, self._kind, None), "is_initialized", None)
        self._was_initialised = bool(is_initialized and is_initialized())

    def undo(self) -> None:
        """Take the note back, unless it was true before."""
        forget = _set_requires_device_init()
        if forget is not None and not self._was_initialised and self._kind in _NUMBERS:
            forget(_NUMBERS[self._kind], True)


def _set_requires_device_init() -> Any:
    """PyTorch's C++ function, or None on a platform whose compiler gives it another name."""
    try:
        function = getattr(ctypes.CDLL(_library()), _SYMBOL)
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_int8, ctypes.c_bool)
    function.restype = None
    return function


def _library() -> str:
    folder = Path(torch.__file__).parent / "lib"
    return str(next(iter(folder.glob("libtorch_python.*")), folder / "torch_python.dll"))
