"""The name "npu", which PyTorch gives to the one kind of device that it keeps for plugins; given, and taken back.

PyTorch takes a name once in a process, and from then on holds that kind for the machine's accelerator. So that nothing
is left of a simulation, the mark that says so is cleared again. It is found by what the exported function that reads it
does, and touched only if it changed from 0 to 1 when the name was given. On other processors the name stays.

Private PyTorch API used here: `torch._C._rename_privateuse1_backend`, `c10::is_privateuse1_backend_registered`
(c10/core/DeviceType.cpp), 2.6 to 2.14.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import torch

from samedevice.errors import UsageError
from samedevice.texts import say

__all__ = ["PluginName"]

_NAME = "npu"
_UNNAMED = "privateuseone"
_SYMBOL = "_ZN3c1033is_privateuse1_backend_registeredEv"
_READS = re.compile(rb"(?:\xf3\x0f\x1e\xfa)?\x0f\xb6\x05(.{4})(?:\x84\xc0\x0f\x95\xc0)?\xc3", re.DOTALL)
"""x86-64: perhaps endbr64; `movzx eax, byte [rip + …]`; perhaps `test al, al; setne al`; `ret`."""
_LONGEST = 16


class PluginName:
    """Names the kind of device of plugins "npu" from `claim` to `release`."""

    def __init__(self) -> None:
        self._mark: Any = None

    def claim(self) -> None:
        """Give the name, unless it is given already.

        Raises:
            UsageError: a plugin has given another one.
        """
        named = torch._C._get_privateuse1_backend_name()
        if named == _NAME:
            return
        if named != _UNNAMED:
            raise UsageError(
                say(
                    "cannot simulate 'npu': a plugin has named PyTorch's custom kind of device {named!r} in "
                    "this process. Mend: simulate in a process that does not import that plugin.",
                    named=named,
                )
            )
        mark = _find_mark()
        unmarked = mark is not None and mark.value == 0
        torch._C._rename_privateuse1_backend(_NAME)
        self._mark = mark if unmarked and mark.value == 1 else None

    def release(self) -> None:
        """Take back the name that was given."""
        if self._mark is not None:
            self._mark.value = 0
            self._mark = None


def _find_mark() -> Any:
    """The byte that says whether a name was given, or None where it is not found."""
    folder = Path(torch.__file__).parent / "lib"
    path = next(iter(sorted(folder.glob("libc10.*"))), None)
    try:
        function = None if path is None else getattr(ctypes.CDLL(str(path)), _SYMBOL)
    except (OSError, AttributeError):
        return None
    start = ctypes.cast(function, ctypes.c_void_p).value if function is not None else None
    found = None if start is None else _READS.match(ctypes.string_at(start, _LONGEST))
    if start is None or found is None:
        return None
    return ctypes.c_uint8.from_address(start + found.end(1) + int.from_bytes(found[1], "little", signed=True))
