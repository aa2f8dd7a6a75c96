"""Pinned memory: `Tensor.pin_memory` and `Tensor.is_pinned` end in two operators, which need a real device.

Answered where operators are, not by the methods: a loader's thread pins batches while another thread may import a part
of PyTorch, which suspends what is patched (`importing.py`).

Source: aten/src/ATen/native/Memory.cpp, 2.6 to 2.14.
"""

from __future__ import annotations

from typing import Any

import torch

from samedevice.simulation.labels import LabelTable
from samedevice.simulation.refusing import refuse

__all__ = ["OPERATORS", "run"]

_ASKING = "aten::is_pinned"
OPERATORS = frozenset({_ASKING, "aten::_pin_memory"})


def run(name: str, tensor: torch.Tensor, labels: LabelTable) -> Any:
    """One of the two operators.

    Args:
        name: which.
        tensor: its operand.
        labels: where tensors are said to be, and which are pinned.

    Returns:
        Whether the tensor is pinned, or a pinned copy of it.

    Raises:
        RuntimeError: a tensor is to be pinned that is on a device, or not dense.
    """
    if name == _ASKING:
        return labels.is_pinned(tensor)
    if labels.device_of(tensor).type != "cpu" or tensor.layout is not torch.strided:
        raise refuse("pin-memory", "aten::pin_memory", [("self", tensor)], labels, self_type=tensor.type())
    pinned = tensor.clone()
    labels.pin(pinned)
    return pinned
