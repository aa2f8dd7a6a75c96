"""Refusals that are not an operator's: a Python-level method of a tensor that a real device would not do.

The words are in `samedevice.messages`; the exception carries the tensors, as those of `device_checks` do.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from samedevice.simulation.calls import Call, Operand, refusal
from samedevice.simulation.labels import LabelTable

__all__ = ["refuse"]


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
    found = tuple(Operand(argument, tensor, labels.device_of(tensor)) for argument, tensor in operands)
    error: Exception = refusal(Call(operation, found, {}), kind, found[0], **values)
    # C++ hands its text over as C does: it ends at the first NUL.
    error.args = (str(error).partition("\0")[0],)
    return error
