"""Runs the CPU's kernel of an operator in the place of a device's: its random numbers, its types, its words."""

from __future__ import annotations

from typing import Any

import torch

from samedevice.simulation import cuda_memory, device_only, generators, labels, type_texts
from samedevice.simulation.operator_facts import Operator
from samedevice.simulation.wider import call_wider

__all__ = ["call", "instead"]

_NOT_0_DIM = "expected to be 0 dim"
_NUMBER_FOR_LIST = ("aten::_foreach_mul", "aten::_foreach_div")


def call(operator: Operator, device: torch.device | None, args: Any, kwargs: dict[str, Any]) -> Any:
    """What the operator gives, computed on the CPU as `device` would."""
    try:
        if operator.draws:
            return generators.draw(operator.call, device, args, kwargs)
        return operator.call(*args, **kwargs)
    except RuntimeError as error:
        if _NOT_0_DIM in str(error) and operator.name.startswith(_NUMBER_FOR_LIST) and _reads_number(*args[:2]):
            return operator.call(args[0], args[1].reshape(()), *args[2:], **kwargs)
        return instead(error, operator, device, args, kwargs)


def instead(
    error: RuntimeError, operator: Operator, device: torch.device | None, args: Any, kwargs: dict[str, Any]
) -> Any:
    """What a device gives, or raises, where the CPU's kernel raised `error`, which is being handled."""
    if device is not None:
        type_texts.tell_of_device(error, operator.name, args, device)
    cuda_memory.raise_if_out_of_memory(error, device)
    device_only.raise_if_missing(error, operator.name, device)
    if device is None or device.type == "cpu" or "not implemented for" not in str(error):
        raise error
    return call_wider(error, operator.name, operator.call, args, kwargs)


def _reads_number(tensors: Any, scalar: torch.Tensor) -> bool:
    """Whether a device reads `scalar` for a list of tensors, whatever its shape, because it is on the CPU.

    Source: aten/src/ATen/native/cuda/ForeachBinaryOpScalarTensor.cu.
    """
    first, here = (labels.device_so_far(tensor) for tensor in (tensors[0], scalar))
    return scalar.numel() == 1 and here.type == "cpu" and first.type == "cuda"
