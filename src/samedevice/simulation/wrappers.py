"""Subclasses of `torch.Tensor` that wrap others and say themselves where they are, as jagged nested tensors do.

Such a tensor has no memory. C++ would believe the device that it is made with and look for that device's kernels,
autocasting and autograd thread; so it is made for the CPU, as all others are, and labelled.

Private PyTorch API used here, 2.6 to 2.14: `torch.Tensor._make_wrapper_subclass`, with the order of its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from samedevice.simulation.labels import LabelTable
from samedevice.simulation.machine import Machine
from samedevice.simulation.operators import is_tracing
from samedevice.simulation.patching import Patch

__all__ = ["patches"]

_PLACE = 7
"""Where the device stands among the positional arguments, after the class, the size and five others."""


def patches(machine: Machine, labels: LabelTable) -> Iterator[Patch]:
    """The maker of wrappers.

    Args:
        machine: what is simulated.
        labels: where tensors are.

    Yields:
        One patch.
    """
    original = torch.Tensor._make_wrapper_subclass

    def _make_wrapper_subclass(*args: Any, **kwargs: Any) -> Any:
        device = args[_PLACE] if len(args) > _PLACE else kwargs.get("device")
        # A fake tensor is on no device but in name.
        if device is None or is_tracing() or not machine.owns(target := machine.complete(device)):
            return original(*args, **kwargs)
        machine.initialise()
        if len(args) > _PLACE:
            args = (*args[:_PLACE], machine.host, *args[_PLACE + 1 :])
        else:
            kwargs["device"] = machine.host
        made = original(*args, **kwargs)
        labels.set_own(made, target)
        return made

    yield Patch(torch.Tensor, "_make_wrapper_subclass", staticmethod(_make_wrapper_subclass))
