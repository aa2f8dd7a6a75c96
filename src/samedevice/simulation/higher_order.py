"""Operators that call functions: `torch.cond`, `while_loop`, flex attention.

PyTorch traces such functions with fake tensors as soon as a gradient is needed, which says nothing about the real ones
and on a device that is not there cannot be done. In a simulation they run as what they are without a compiler: their
plain Python, under autograd, every operator of which is seen.

Private PyTorch API used here, 2.6 to 2.14: `torch._ops.HigherOrderOperator` with its `py_kernels` and `dispatch`,
`torch._C._len_torch_dispatch_stack`, `torch._C._are_functorch_transforms_active`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from samedevice.simulation.patching import Applied, ItemPatch, Patch

__all__ = ["patches", "run_plainly", "unnoticed"]

_Operator: Any = torch._ops.HigherOrderOperator
_EXPLICIT = torch._C.DispatchKey.CompositeExplicitAutograd


def patches() -> Iterator[Patch]:
    """The call of such an operator."""
    original = _Operator.__call__

    def __call__(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        traced = torch._C._len_torch_dispatch_stack() != 1 or torch._C._are_functorch_transforms_active()
        if traced or _EXPLICIT not in self.py_kernels:
            return original(self, *args, **kwargs)
        return run_plainly(self, args, kwargs)

    yield Patch(_Operator, "__call__", __call__)


def run_plainly(func: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
    """What a `HigherOrderOperator` does where nothing is compiled or traced.

    Args:
        func: the operator.
        args: its positional arguments.
        kwargs: its keyword arguments.

    Returns:
        Its result.
    """
    with Applied(_unnoticed(func)):
        return func.dispatch(_EXPLICIT, *args, **kwargs)


def _unnoticed(func: Any) -> Iterator[ItemPatch]:
    """Some refuse to run under a mode, and look for one: torch/_higher_order_ops/cond.py, 2.6 to 2.14."""
    names = getattr(func.py_kernels.get(_EXPLICIT), "__globals__", {})
    if "_get_current_dispatch_mode" in names:
        yield ItemPatch(names, "_get_current_dispatch_mode", lambda: None)


def unnoticed(func: Any) -> Iterator[ItemPatch]:
    """Hides a mode from those that refuse to run under one: torch/_higher_order_ops/cond.py, 2.6 to 2.14."""
    names = getattr(func.py_kernels.get(_EXPLICIT), "__globals__", {})
    if "_get_current_dispatch_mode" in names:
        yield ItemPatch(names, "_get_current_dispatch_mode", lambda: None)
