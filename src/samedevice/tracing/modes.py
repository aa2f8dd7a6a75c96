"""Passes on what a real machine does to tensors: the dispatch mode behind `watch()` where no simulation runs.

Records and decides nothing itself. It builds the same events as a simulation, and attaches the operands to an
exception that an operator raises, so that the explanation need not guess them.

Seen with torch 2.6 to 2.13: a dispatch mode receives an operator's operands before its kernel refuses them; operators
of other threads and of compiled graphs do not arrive here.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from samedevice.explaining.live import describe
from samedevice.faults import Fault, FaultOperand, attach_fault
from samedevice.simulation.observers import Event, EventKind, Observer

__all__ = ["WatchMode"]

_MOVES = ("aten::_to_copy",)
_READS = ("aten::lift_fresh", "aten::detach", "aten::alias")


class WatchMode(TorchDispatchMode):
    """Tells `observer` of every operator's results.

    Args:
        observer: called with an `Event` after each operator.
    """

    def __init__(self, observer: Observer) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._observer = observer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            attach_fault(error, _fault(func, args, kwargs))
            raise
        results = tuple(_tensors(result))
        if results:
            operands = tuple(_tensors((*args, *kwargs.values())))
            name = func._schema.name
            self._observer(Event(_kind(name, results, operands), name, results, operands))
        return result


def _kind(name: str, results: tuple[torch.Tensor, ...], operands: tuple[torch.Tensor, ...]) -> EventKind:
    if not operands or name in _READS[:1]:
        return "made"
    if name in _MOVES and results[0].device != operands[0].device:
        return "moved"
    return "computed"


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(part)


def _fault(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Fault:
    names = [argument.name for argument in func._schema.arguments]
    pairs = [*zip(names, args, strict=False), *kwargs.items()]
    operands = tuple(operand for name, value in pairs for operand in _operands(name, value))
    return Fault(func._schema.name, operands)


def _operands(name: str, value: Any) -> Iterator[FaultOperand]:
    if isinstance(value, torch.Tensor):
        device, shape, dtype = describe(value)
        yield FaultOperand(name, weakref.ref(value), device, shape, dtype)
    elif isinstance(value, tuple | list):
        for index, part in enumerate(value):
            yield from _operands(f"{name}[{index}]", part)
