"""Groups of tensors by device and dtype, which foreach optimizers and gradient clipping ask of C++.

C++ would put the tensors of all simulated devices into one group with those of the CPU. Which implementation an
optimizer takes, and what it refuses, is PyTorch's own Python code and asks the tensors.

Source: torch/csrc/Module.cpp, `_group_tensors_by_device_and_dtype`; aten/src/ATen/native/ForeachUtils.h, 2.6 to 2.14.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch

from samedevice.faults import Fault, FaultOperand, attach_fault
from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import Patch, Undoable

__all__ = ["patches"]

_Key = tuple[torch.device, torch.dtype]
_Group = tuple[list[list[Any]], list[int]]
_Grouping = Callable[..., dict[_Key, _Group]]


def patches(machine: Machine) -> Iterator[Undoable]:
    """The grouping function of `torch._C`.

    Args:
        machine: what is simulated.

    Yields:
        The change, not installed yet.
    """
    yield Patch(torch._C, "_group_tensors_by_device_and_dtype", _by_labels(torch._C._group_tensors_by_device_and_dtype))


def _by_labels(original: _Grouping) -> _Grouping:
    def group(tensorlistlist: list[list[Any]], with_indices: bool = False) -> dict[_Key, _Group]:
        """Sort the tensors of parallel lists by where the first list's are.

        Args:
            tensorlistlist: lists of one length, or empty ones; elements may be None, but in the first.
            with_indices: return each element's index, too.

        Returns:
            (device, dtype) -> for each list the elements of the group, and their indices.

        Raises:
            RuntimeError: what C++ refuses; and a tensor on another device than the first list's, but for the CPU.
        """
        # All of its checks but those of devices.
        original(tensorlistlist, with_indices)
        groups: dict[_Key, _Group] = {}
        for index, first in enumerate(tensorlistlist[0]):
            lists, indices = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
            elements = [tensors[index] if tensors else None for tensors in tensorlistlist]
            if any(e is not None and e.device not in (first.device, _CPU) for e in elements):
                _refuse(original, elements)
            for group, tensors, element in zip(lists, tensorlistlist, elements, strict=True):
                if tensors:
                    group.append(element)
            if with_indices:
                indices.append(index)
        # The order of C++'s hash map: a new key goes to its front.
        return dict(reversed(groups.items()))

    return group


_CPU = torch.device("cpu")


def _refuse(original: _Grouping, elements: list[Any]) -> NoReturn:
    """Raise what C++ says of tensors on two devices, in the words of the installed version."""
    with torch._C._DisableTorchDispatch():
        nowhere = torch.empty(0, device="meta")
    try:
        original([[torch.empty(0)], [nowhere]], False)
    except RuntimeError as error:
        operands = (_operand(f"tensorlistlist[{i}]", e) for i, e in enumerate(elements) if e is not None)
        attach_fault(error, Fault("torch.utils._foreach_utils._group_tensors_by_device_and_dtype", tuple(operands)))
        raise error.with_traceback(None) from None
    raise AssertionError("torch._C._group_tensors_by_device_and_dtype grouped tensors of two devices")


def _operand(name: str, tensor: torch.Tensor) -> FaultOperand:
    return FaultOperand(name, weakref.ref(tensor), str(tensor.device), tuple(tensor.shape), str(tensor.dtype))
