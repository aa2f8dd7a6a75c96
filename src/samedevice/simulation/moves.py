"""Copies a tensor to another device: always a copy, differentiable, and its gradient comes back.

The copy is PyTorch's own `aten::_to_copy`, called even where C++ would return the tensor itself because both devices
are the CPU in truth. The dispatch mode labels it; this module knows no operator and no argument parsing.
"""

from __future__ import annotations

from typing import Any

import torch

from samedevice.simulation.gradients import bring_back
from samedevice.simulation.labels import LabelTable
from samedevice.simulation.operators import DeviceMode, is_tracing

__all__ = ["Mover"]

_to_copy = torch.ops.aten._to_copy.default


class Mover:
    """Moves tensors for one simulation."""

    def __init__(self, labels: LabelTable, mode: DeviceMode) -> None:
        self._labels = labels
        self._mode = mode

    def join(self) -> None:
        """Take this thread into the simulation, should it be older; see `threads.py`."""
        self._mode.enter_for_good()

    def copy(
        self, tensor: torch.Tensor, device: torch.device, dtype: torch.dtype | None = None, memory_format: Any = None
    ) -> torch.Tensor:
        """A copy of the tensor on `device`.

        Args:
            tensor: of any layout, also one of functorch's.
            device: complete.
            dtype: None keeps it.
            memory_format: None keeps the strides where it can.

        Returns:
            A new tensor; backward through it brings the gradient to the device of `tensor`.
        """
        if is_tracing():
            traced: torch.Tensor = torch._C.TensorBase.to(tensor, device, dtype)
            return traced
        self.join()
        with self._mode.moving_to(device):
            result: torch.Tensor = _to_copy(tensor, dtype=dtype, memory_format=memory_format)
        if result.requires_grad:
            bring_back(result, tensor, self._labels.device_of(tensor), self._labels)
        return result
