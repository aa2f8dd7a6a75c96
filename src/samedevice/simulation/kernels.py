"""Runs the CPU's kernel of an operator in the place of a device's: its random numbers, its types, its words."""

from __future__ import annotations

from typing import Any

import torch

from samedevice.simulation import cuda_memory, device_only, generators, type_texts
from samedevice.simulation.operator_facts import Operator
from samedevice.simulation.wider import call_wider

__all__ = ["call", "instead"]


def call(operator: Operator, device: torch.device | None, args: Any, kwargs: dict[str, Any]) -> Any:
    """What the operator gives, computed on the CPU as `device` would."""
    try:
        if operator.draws:
            return generators.draw(operator.call, device, args, kwargs)
        return operator.call(*args, **kwargs)
    except RuntimeError as error:
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
