"""The machine that a simulation pretends to be: one kind of device, how many, and which is current in each thread.

`current()` is how the other modules of this package find it. It knows device names and indices, never a tensor.
"""

from __future__ import annotations

import threading
from typing import Any

import torch

from samedevice.errors import NotSimulated, UsageError
from samedevice.simulation.calls import torch_version
from samedevice.texts import say

__all__ = ["KINDS", "Machine", "active", "current", "parse_machine"]

KINDS = ("cuda", "xpu", "mps", "npu", "mtia", "hpu")
"""The kinds that hold memory of their own; PyTorch can name all but "npu" without a plugin."""

# The real type: while a simulation runs, `torch.device` is a stand-in for it.
_Device = torch.device
_ACCELERATOR_ERROR: type[RuntimeError] = getattr(torch, "AcceleratorError", RuntimeError)
"""`torch.AcceleratorError` since 2.8, a plain RuntimeError before."""
_ASYNCHRONOUS = (
    "CUDA kernel errors might be asynchronously reported at some other API call, "
    "so the stacktrace below might be incorrect.",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
)

_MOST_DEVICES = 128
"""c10::DeviceIndex is a signed byte (c10/core/Device.h)."""

_active: Machine | None = None


class _CurrentIndex(threading.local):
    """Every thread begins on device 0, as on a real machine."""

    index = 0


class Machine:
    """A machine with `count` devices of one `kind`.

    Attributes:
        kind: "cuda", "xpu", "mps" …
        count: how many devices.
        devices: the devices with their index; comparing them by `is` is safe.
        host: `torch.device("cpu")`.
    """

    def __init__(self, kind: str, count: int) -> None:
        self.kind = kind
        self.count = count
        self.devices = tuple(_Device(kind, index) for index in range(count))
        self.host = _Device("cpu")
        self._current = _CurrentIndex()

    def __repr__(self) -> str:
        return f"Machine({self.kind!r}, {self.count})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the devices, e.g. `("cuda:0", "cuda:1")`."""
        return tuple(str(device) for device in self.devices)

    @property
    def current_index(self) -> int:
        """The index of this thread's current device: what "cuda" without an index means."""
        return self._current.index

    @current_index.setter
    def current_index(self, index: int) -> None:
        self._current.index = self.device(index).index

    @property
    def current_device(self) -> torch.device:
        """This thread's current device."""
        return self.devices[self._current.index]

    def device(self, index: int) -> torch.device:
        """The device of that index.

        Args:
            index: counted from 0.

        Returns:
            The machine's own object for it.

        Raises:
            torch.AcceleratorError: there is no such device, in the words of the runtime.
        """
        if 0 <= index < self.count:
            return self.devices[index]
        if self.kind == "mps":
            # Its allocator and its guard do not look at the index: aten/src/ATen/mps/MPSGuardImpl.h, 2.6 to 2.14.
            return self.devices[0]
        raise invalid_ordinal(self.kind, index, self.count)

    def keep_only(self, count: int) -> None:
        """Have no more than `count` devices from now on, as where a mask hides the others.

        Args:
            count: at least one.
        """
        self.count = count
        self.devices = self.devices[:count]

    def owns(self, device: torch.device) -> bool:
        """Whether the device is one of this machine's simulated kind."""
        return device.type == self.kind

    def initialise(self) -> None:
        """Note that a device is used: PyTorch initialises a kind of device at its first use.

        Raises:
            RuntimeError: this process was forked from one that had used devices, in PyTorch's words.
        """
        initialise = getattr(getattr(torch, self.kind, None), "_lazy_init", None)
        if initialise is not None:
            initialise()

    def complete(self, device: Any) -> torch.device:
        """The device that a `device=` argument means, with its index where it has one.

        Args:
            device: a name, a `torch.device`, or an index, which means this machine's kind.

        Returns:
            One of `devices`, or PyTorch's own device for other kinds (cpu, meta …).

        Raises:
            torch.AcceleratorError: an index that this machine does not have.
            RuntimeError, TypeError: not a device at all, in PyTorch's words.
        """
        if isinstance(device, int):
            if device < 0:
                raise RuntimeError("Device index must not be negative")
            return self.device(device)
        found = device if isinstance(device, _Device) else _Device(device)
        if found.type != self.kind:
            return self.host if found.type == "cpu" else found
        return self.current_device if found.index is None else self.device(found.index)

    def index_of(self, device: Any = None) -> int:
        """The index that an optional device argument of `torch.cuda`'s functions means.

        Args:
            device: None for the current device, else as for `complete`.

        Returns:
            The index.

        Raises:
            ValueError: a device of another kind, e.g. `torch.cuda.synchronize("cpu")`.
        """
        if device is None:
            return self.current_index
        found = self.complete(device)
        if found.type != self.kind:
            raise ValueError(f"Expected a {self.kind} device, but got: {found}")
        return int(found.index)


def invalid_ordinal(kind: str, index: int, count: int) -> RuntimeError:
    """The exception for a device that the machine does not have.

    Args:
        kind: the kind of the machine.
        index: what was asked for.
        count: how many devices there are.

    Returns:
        The error, to be raised.

    Source: c10/cuda/CUDAException.cpp and CUDAMiscFunctions.cpp, 2.6 to 2.14, as the real CUDA builds of 2.13 and 2.14
    answered `torch.zeros(2, device="cuda:5")`; for others c10/xpu/XPUFunctions.h, which plugins follow.
    """
    if kind != "cuda":
        return RuntimeError(f"The device index is out of range. It must be in [0, {count}), but got {index}.")
    version = torch_version()
    lines = ["CUDA error: invalid device ordinal"]
    if version >= (2, 9):
        lines.append("GPU device may be out of range, do you have enough GPUs?")
    if version < (2, 13):
        lines += _ASYNCHRONOUS
    elif version == (2, 13):
        lines.append("For more detailed error information, run with CUDA_LOG_FILE=stderr")
    return _ACCELERATOR_ERROR("\n".join([*lines, ""]))


def parse_machine(text: str) -> Machine:
    """The machine that "cuda", "cuda:2" (two devices), "mps" … describes.

    Args:
        text: a kind of device, with the number of devices after a colon.

    Returns:
        The machine, nothing installed yet.

    Raises:
        UsageError: not a kind that can be simulated, or not a number of devices.
    """
    kind, colon, number = text.partition(":")
    if kind not in KINDS:
        raise UsageError(
            say(
                "cannot simulate {text!r}: known kinds are {names}; write 'cuda:2' for two devices.",
                text=text,
                names=", ".join(KINDS),
            )
        )
    if colon and not (number.isascii() and number.isdecimal() and int(number) > 0):
        raise UsageError(
            say(
                "cannot simulate {text!r}: after the colon comes how many devices, as in '{kind}:2'.",
                text=text,
                kind=kind,
            )
        )
    count = int(number or 1)
    if count > _MOST_DEVICES:
        raise UsageError(
            say(
                "cannot simulate {text!r}: PyTorch can number {most_devices} devices of a kind at most.",
                text=text,
                most_devices=_MOST_DEVICES,
            )
        )
    if kind == "mps" and count != 1:
        raise UsageError(say("cannot simulate {text!r}: a machine has one mps device.", text=text))
    return Machine(kind, count)


def active() -> Machine | None:
    """The machine being simulated now, or None."""
    return _active


def current() -> Machine:
    """The machine being simulated now.

    Returns:
        The machine.

    Raises:
        NotSimulated: no simulation is running.
    """
    if _active is None:
        raise NotSimulated(say("no simulation is running: call this inside samedevice.simulate(...)."))
    return _active


def activate(machine: Machine | None) -> None:
    """Make `machine` the one that `current()` returns; None ends it. For `simulate` alone."""
    global _active
    _active = machine
