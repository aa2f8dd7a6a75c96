"""`torch.device`, for the one thing that the real type cannot do in a simulation: `torch.device(0)`.

An index alone means the machine's accelerator, and C++ looks for a real one. The real type can be neither changed nor
subclassed, so a class stands in for it that makes real devices and takes them for its instances.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from samedevice.simulation.labels import LabelTable, is_active
from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import Patch

__all__ = ["DefaultDevice", "patches"]

_Device: Any = torch.device


class _DeviceType(type):
    """Equal to the real type, and the type of real devices."""

    machine: Machine
    labels: LabelTable

    def __call__(cls, *args: Any, **kwargs: Any) -> torch.device:
        if args and isinstance(args[0], int) and len(args) == 1 and not kwargs and is_active(cls.labels):
            args = (cls.machine.kind, args[0])
        device: torch.device = _Device(*args, **kwargs)
        return device

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Device)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _Device) or subclass is cls

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _Device

    def __hash__(cls) -> int:
        return hash(_Device)

    def __repr__(cls) -> str:
        return repr(_Device)


class DefaultDevice:
    """Takes back a default device that a script set and that exists no more.

    Args:
        kind: the kind of device that is simulated.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._before: torch.device | None = None

    def install(self) -> None:
        """Remember what was set before."""
        self._before = _default_device()

    def undo(self) -> None:
        """Set that again, where now a simulated device is the default."""
        default = _default_device()
        if default is not None and default.type == self._kind and default != self._before:
            torch.set_default_device(self._before)


def _default_device() -> torch.device | None:
    """What `torch.set_default_device` set in this thread: torch/__init__.py, `_GLOBAL_DEVICE_CONTEXT`, 2.6 to 2.14."""
    context = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    found: torch.device | None = getattr(context, "device", None)
    return found


def patches(machine: Machine, labels: LabelTable) -> Iterator[Patch]:
    """The stand-in for `torch.device`.

    Args:
        machine: what an index alone means.
        labels: of the simulation; after its end the stand-in does what the real type does.

    Yields:
        One patch.
    """
    members = {"machine": machine, "labels": labels, "__module__": "torch", "__doc__": _Device.__doc__}
    yield Patch(torch, "device", _DeviceType("device", (), members))
