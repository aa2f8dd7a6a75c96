"""A call as the device rules see it: which tensor stands in which argument, and where it is; and how to refuse it.

This module knows no operator: rules are in `operator_rules.py` and the package `rules`.
"""

from __future__ import annotations

import builtins
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from samedevice import messages
from samedevice.faults import Fault, FaultOperand, attach_fault

__all__ = [
    "Call",
    "DeviceOf",
    "Operand",
    "are_mixed",
    "call_of",
    "fault",
    "first_elsewhere",
    "refusal",
    "tensors_in",
    "torch_version",
]

DeviceOf = Callable[[torch.Tensor], torch.device]
"""Where a tensor lives on the simulated machine."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor in a call."""

    argument: str
    """PyTorch's name of the argument, e.g. "mat1"; elements of a list share it."""
    tensor: torch.Tensor
    device: torch.device
    output: bool = False
    """Written to: an `out=` argument, or `self` of an in-place operator."""
    is_out: bool = False
    """An `out=` argument."""
    compared: bool = True
    """Looked at by the generated check: `out=` and positional arguments, not keyword-only ones."""
    position: int | None = None
    """Its index in a list argument."""

    @property
    def is_cpu_scalar(self) -> bool:
        """A 0-dim tensor on the CPU, which some operators take for a number."""
        return self.device.type == "cpu" and self.tensor.dim() == 0

    @property
    def name(self) -> str:
        """The argument, with the index where it is an element of a list: "tensors[1]"."""
        return self.argument if self.position is None else f"{self.argument}[{self.position}]"


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operator or function."""

    operator: str
    """"aten::add.Tensor" for an operator, "torch.stft" for a Python function."""
    operands: tuple[Operand, ...]
    """Outputs first, then in the order of the arguments."""
    arguments: Mapping[str, Any]
    """All arguments by name, tensors as they were given."""
    origin: Call | None = None
    """The call as it was made, where this one was derived from it for another operator's rule."""

    def of(self, argument: str) -> tuple[Operand, ...]:
        """The operands of one argument; empty where it is None or holds no tensor."""
        return tuple(operand for operand in self.operands if operand.argument == argument)

    def device(self, argument: str) -> torch.device | None:
        """The device of the first tensor in an argument, or None."""
        return next((operand.device for operand in self.operands if operand.argument == argument), None)

    @property
    def common_device(self) -> torch.device | None:
        """The first device that is not the CPU, else the CPU; None without tensors."""
        devices = [operand.device for operand in self.operands]
        return next((device for device in devices if device.type != "cpu"), devices[0] if devices else None)

    def among(self, operands: Iterable[Operand]) -> Call:
        """The call as another operator sees it, with `operands`; a refusal still tells of all as they were given."""
        return Call(self.operator, tuple(operands), self.arguments, self.origin or self)

    def only(self, *arguments: str) -> Call:
        """The call with no other tensors than those of `arguments`, in that order."""
        return self.among(operand for argument in arguments for operand in self.of(argument))

    def without(self, *arguments: str) -> Call:
        """The call with the tensors of `arguments` left out."""
        return self.among(operand for operand in self.operands if operand.argument not in arguments)


def call_of(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], device_of: DeviceOf) -> Call:
    """The call of an `OpOverload` as a dispatch mode receives it.

    Args:
        func: The operator.
        args: Positional arguments.
        kwargs: Keyword arguments.
        device_of: Where a tensor lives.

    Returns:
        Its operands and arguments by the names of the schema.
    """
    schema = func._schema
    arguments = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)} | dict(kwargs)
    inplace = schema.name.endswith("_") and not schema.name.endswith("__")
    outputs: list[Operand] = []
    inputs: list[Operand] = []
    for argument in schema.arguments:
        found = tensors_in(arguments.get(argument.name))
        is_output = argument.is_out or (inplace and argument.name == "self")
        compared = argument.is_out or not argument.kwarg_only
        (outputs if argument.is_out else inputs).extend(
            Operand(argument.name, tensor, device_of(tensor), is_output, argument.is_out, compared, position)
            for position, tensor in found
        )
    return Call(
        schema.name + (f".{schema.overload_name}" if schema.overload_name else ""), (*outputs, *inputs), arguments
    )


def tensors_in(value: Any) -> Iterator[tuple[int | None, torch.Tensor]]:
    """The tensors of an argument, each with its position where the argument is a list."""
    if isinstance(value, torch.Tensor):
        yield None, value
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            if isinstance(item, torch.Tensor):
                yield position, item


def are_mixed(values: Iterable[Any], device_of: DeviceOf) -> bool:
    """Whether the tensors among `values`, lists taken apart, are on more than one device."""
    first: torch.device | None = None
    for value in values:
        for tensor in value if isinstance(value, list | tuple) else (value,):
            if isinstance(tensor, torch.Tensor):
                device = device_of(tensor)
                if first is not None and device != first:
                    return True
                first = device
    return False


@cache
def torch_version() -> tuple[int, int]:
    """Major and minor version of the installed PyTorch: it decides the wording of messages."""
    match = re.match(r"(\d+)\.(\d+)", torch.__version__)
    return (int(match[1]), int(match[2])) if match is not None else (99, 0)


def refusal(call: Call, kind: str, blamed: Operand | None = None, **values: object) -> Exception:
    """What PyTorch raises, with the operands attached for whoever explains it.

    Args:
        call: The refused call.
        kind: The message's stable name in `samedevice.messages`.
        blamed: The operand that the message names.
        values: What stands in the message's places.

    Returns:
        The exception to raise: a RuntimeError or whatever type PyTorch raises with this message.
    """
    version = torch_version()
    name = messages.exception_name(kind, version=version)
    error_type: Any = getattr(builtins, name, None) or getattr(torch, name, RuntimeError)
    error: Exception = error_type(messages.format(kind, version=version, **values))
    attach_fault(error, fault(call, blamed))
    return error


def fault(call: Call, blamed: Operand | None = None) -> Fault:
    """What is known about the refused call; the operator goes without its overload, lists by position."""
    call = call.origin or call
    operands = [_fault_operand(operand) for operand in call.operands]
    tensor = None if blamed is None else blamed.tensor
    index = next((i for i, operand in enumerate(call.operands) if operand.tensor is tensor), None)
    return Fault(call.operator.partition(".")[0] if "::" in call.operator else call.operator, tuple(operands), index)


def _fault_operand(operand: Operand) -> FaultOperand:
    tensor = operand.tensor
    # A nested tensor has no one shape.
    shape = () if tensor.is_nested else tuple(tensor.shape)
    return FaultOperand(operand.name, weakref.ref(tensor), str(operand.device), shape, str(tensor.dtype))


def first_elsewhere(operands: Iterable[Operand], device: torch.device) -> Operand | None:
    """The first operand that is not on `device`."""
    return next((operand for operand in operands if operand.device != device), None)
