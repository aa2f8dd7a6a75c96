"""Refusals that are not an operator's: a Python-level method of a tensor that a real device would not do.

The words are in `samedevice.messages`; the exception carries the tensors, as those of `device_checks` do.
"""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Iterable

import torch

from samedevice import messages
from samedevice.faults import Fault, FaultOperand, attach_fault
from samedevice.simulation.labels import LabelTable

__all__ = ["refuse"]

_VERSION = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def refuse(
    kind: str, operation: str, operands: Iterable[tuple[str, torch.Tensor]], labels: LabelTable, **values: object
) -> Exception:
    """The exception that PyTorch raises, to be raised by the caller.

    Args:
        kind: the message's stable name in `samedevice.messages`.
        operation: e.g. "aten::numpy".
        operands: the tensors, by the name of their argument; the first is to blame.
        labels: where they are.
        values: what stands in the message's places.

    Returns:
        The error, with a `Fault` attached.
    """
    name = messages.exception_name(kind, version=_VERSION)
    error_type = getattr(builtins, name, None) or getattr(torch, name, RuntimeError)
    error: Exception = error_type(messages.format(kind, version=_VERSION, **values))
    found = tuple(
        FaultOperand(
            argument, weakref.ref(tensor), str(labels.device_of(tensor)), tuple(tensor.shape), str(tensor.dtype)
        )
        for argument, tensor in operands
    )
    attach_fault(error, Fault(operation, found, 0 if found else None))
    return error
