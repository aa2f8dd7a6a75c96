"""What Apple's devices alone refuse or take: no float64 nor complex128, one device whatever the index, `linear` with
words of its own.

`messages` has the words; labels are given by others. Nothing here runs for another kind of device.

Source: aten/src/ATen/mps/EmptyTensor.cpp, MPSGuardImpl.h, native/mps/OperationUtils.mm and operations/Linear.mm, 2.6 to
2.14.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from samedevice.simulation.calls import Call, Operand, refusal
from samedevice.simulation.labels import LabelTable
from samedevice.simulation.patching import Patch
from samedevice.simulation.refusing import refuse

__all__ = ["patches", "refuse_double"]

_LINEAR = ("input", "weight", "bias")


def refuse_double(labels: LabelTable) -> Callable[[torch.Tensor, torch.dtype], None]:
    """The check that every tensor passes which is made on the device or moved there.

    Args:
        labels: where tensors are.

    Returns:
        Raises a TypeError, in PyTorch's words, where the dtype is float64 or complex128.
    """

    def check(tensor: torch.Tensor, dtype: torch.dtype) -> None:
        if dtype is torch.float64:
            raise refuse("mps-float64", "aten::_to_copy", [("self", tensor)], labels)
        if dtype is torch.complex128:
            name = "ComplexDouble"
            raise TypeError(f"Trying to convert {name} to the MPS backend but it does not have support for that dtype.")

    return check


def patches(labels: LabelTable) -> Iterator[Patch]:
    """`torch.nn.functional.linear`, whose kernel looks at each tensor by itself.

    Args:
        labels: where tensors are.

    Yields:
        One patch for each place where code finds the function.
    """
    for owner in (torch.nn.functional, torch._C._nn):
        yield Patch(owner, "linear", _checked(owner.linear, labels))


def _checked(original: Callable[..., Any], labels: LabelTable) -> Callable[..., Any]:
    @functools.wraps(original)
    def linear(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(_LINEAR, args, strict=False)) | kwargs
        operands = tuple(
            Operand(argument, tensor, labels.device_of(tensor))
            for argument, tensor in given.items()
            if isinstance(tensor, torch.Tensor)
        )
        if any(operand.device.type == "mps" for operand in operands):
            _refuse_elsewhere(Call("aten::linear", operands, given))
        return original(*args, **kwargs)

    return linear


def _refuse_elsewhere(call: Call) -> None:
    for operand in call.operands:
        if operand.device.type != "mps":
            where = {"device": operand.device, "other_device": "mps"}
            raise refusal(call, "same-device", operand, argument=operand.argument, **where)
