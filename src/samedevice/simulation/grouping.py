"""Groups of tensors by device and dtype, which foreach optimizers and gradient clipping ask of C++.

C++ would put tensors of all simulated devices into one group with those of the CPU. Which implementation an optimizer
takes, and what it refuses, is PyTorch's own Python code and asks the tensors.

Source: torch/csrc/Module.cpp, `_group_tensors_by_device_and_dtype`; aten/src/ATen/native/ForeachUtils.h, 2.6 to 2.14.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import Patch, Undoable

__all__ = ["patches"]

_Group = tuple[list[list[Any]], list[int]]


def patches(machine: Machine) -> Iterator[Undoable]:
    """The grouping function of `torch._C`.

    Args:
        machine: what is simulated.

    Yields:
        The change, not installed yet.
    """
    yield Patch(torch._C, "_group_tensors_by_device_and_dtype", _group)


def _group(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[torch.device, torch.dtype], _Group]:
    """Sort the tensors of parallel lists by where the first list's are.

    Args:
        tensorlistlist: lists of one length, or empty ones; elements may be None, but in the first.
        with_indices: return each element's index, too.

    Returns:
        (device, dtype) -> for each list the elements of the group, and their indices.

    Raises:
        RuntimeError: the first list holds None.
    """
    groups: dict[tuple[torch.device, torch.dtype], _Group] = {}
    for index, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError(
                "Tensors of the first list of nested Tensor lists are supposed to be defined but "
                f"the {index}-th Tensor is not."
            )
        key = (first.device, first.dtype)
        lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
        for group, tensors in zip(lists, tensorlistlist, strict=True):
            if tensors:
                group.append(tensors[index])
        if with_indices:
            indices.append(index)
    return groups
