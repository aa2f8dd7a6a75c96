"""Every exception that samedevice raises for a reason of its own.

    SameDeviceError
    ├── UnknownDevice (ValueError)       a name that is no device: "gpu", "cuda:x"
    ├── UnavailableDevice (RuntimeError) a device that this machine does not have: "cuda:9"
    ├── MoveError (RuntimeError)         moving nested data failed at a path; nothing was changed
    ├── LeftBehind (RuntimeError)        strict moving: tensors that cannot be reached
    ├── UsageError (ValueError)          wrong options or arguments; exit status 2 on the command line
    ├── UnsafeCheckpoint (RuntimeError)  a checkpoint whose pickle would run code
    ├── UnreadableCheckpoint (ValueError) a checkpoint that is missing, cut short, damaged or of another kind
    └── NotSimulated (RuntimeError)      a call that has no simulated counterpart

Each also subclasses what Python or PyTorch raises in that place, so that handlers written before keep working.
The exceptions that a *simulated device* raises are PyTorch's own types and words, never these.
"""

from __future__ import annotations

from samedevice.texts import Text, shown

__all__ = [
    "LeftBehind",
    "MoveError",
    "NotSimulated",
    "SameDeviceError",
    "UnavailableDevice",
    "UnknownDevice",
    "UnreadableCheckpoint",
    "UnsafeCheckpoint",
    "UsageError",
]


class SameDeviceError(Exception):
    """The root: `except samedevice.SameDeviceError` catches whatever the package raises on its own account.

    `args` hold the English message; `str(error)`, and so a traceback, shows it in the reader's language.
    """

    def __init__(self, message: str = "", *more: object) -> None:
        super().__init__(str(message), *more)
        self.message = message
        """What happened, as it can be told in other languages."""

    def __str__(self) -> str:
        return shown(self.message) if isinstance(self.message, Text) else super().__str__()


class UnknownDevice(SameDeviceError, ValueError):
    """The text names no kind of device, e.g. "gpu"."""


class UnavailableDevice(SameDeviceError, RuntimeError):
    """The device exists in PyTorch and not on this machine, e.g. "cuda:9" where there are two."""


class MoveError(SameDeviceError, RuntimeError):
    """A part of nested data could not be moved; the message gives its path, the cause is chained."""


class LeftBehind(SameDeviceError, RuntimeError):
    """Strict moving met tensors in places that it does not change; the message lists their paths."""


class UsageError(SameDeviceError, ValueError):
    """Wrong arguments or options; the command line turns it into one line and exit status 2."""


class UnsafeCheckpoint(SameDeviceError, RuntimeError):
    """The checkpoint's pickle names something that would run code; it was not run."""


class UnreadableCheckpoint(SameDeviceError, ValueError):
    """The checkpoint is missing, cut short, damaged or of another kind; the message says which."""


class NotSimulated(SameDeviceError, RuntimeError):
    """A call that has no counterpart on a simulated device, named in the message."""
