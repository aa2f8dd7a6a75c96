"""What the code that refused an operation knew at that moment, attached to the exception that it raised.

A simulated device (`simulation`) or a watched real one (`tracing`) attaches a `Fault` to the exception;
`explaining` reads it back and needs no guess about which tensors took part. Tensors are held weakly: the exception's
own traceback keeps them alive as long as Python would anyway, and no longer.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

__all__ = ["Fault", "FaultOperand", "Origin", "attach_fault", "fault_of"]

_ATTRIBUTE = "_samedevice_fault"
_DICT = BaseException.__dict__["__dict__"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The user's line that made, moved or loaded a tensor, and the device that it was given there."""

    file: str
    line: int
    function: str
    event: str
    """made, moved, loaded, copied or computed."""
    device: str
    operation: str = ""
    """e.g. "aten::zeros"."""


@dataclass(frozen=True, slots=True)
class FaultOperand:
    """A tensor argument of the refused operation."""

    argument: str
    """PyTorch's name for it, e.g. "mat1"; list elements as "tensors[1]"."""
    tensor: weakref.ReferenceType[Any]
    device: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Fault:
    """The refused operation and its operands in schema order."""

    operation: str
    """e.g. "aten::add"; Python-level checks use their function's name, e.g. "torch.nn.parallel.DataParallel"."""
    operands: tuple[FaultOperand, ...] = ()
    blamed: int | None = None
    """Index of the operand that PyTorch's message names, where it names one."""

    def __reduce__(self) -> tuple[type[Fault], tuple[str]]:
        """In another process, to which its exception may be sent, there are no such tensors."""
        return Fault, (self.operation,)


def attach_fault(error: BaseException, fault: Fault) -> None:
    """Attach `fault` to `error`; a later one does not replace the first, which is the innermost."""
    if fault_of(error) is None:
        setattr(error, _ATTRIBUTE, fault)


def fault_of(error: BaseException) -> Fault | None:
    """The `Fault` attached to `error`, or None."""
    # Below whatever the exception's class says that its attributes are.
    found = _DICT.__get__(error).get(_ATTRIBUTE)
    return found if type(found) is Fault else None
