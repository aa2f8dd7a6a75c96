"""Operators that a program calls by name: `torch.ops.aten.zeros_like(x, device="cpu")`.

What such a call says about the device counts. C++ below cannot be told so from what it says itself, where "cpu" may be
that of a tensor which only lies there in truth (`operators.py`); so the call is caught where Python makes it. Moves
are the tensor's own methods, which C++ would take for nothing to do. A call inside `__torch_dispatch__`, of a subclass
or a mode, passes on what C++ said.

Private PyTorch API used here, 2.6 to 2.14: `OpOverloadPacket._qualified_op_name`, `OpOverload._schema`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from samedevice.simulation.operators import DeviceMode
from samedevice.simulation.patching import Patch

__all__ = ["patches"]

_METHODS = {f"aten::{name}": name for name in ("to", "cpu", "cuda", "pin_memory")}
_LAYOUT = ("layout", "pin_memory")
"""What `aten::to` may be given and the method is not."""


def patches(mode: DeviceMode) -> Iterator[Patch]:
    """Calls of operators, of all overloads or of one.

    Args:
        mode: is told that a call says where its result goes.

    Yields:
        One patch for each kind of call.
    """
    packet, overload = torch._ops.OpOverloadPacket, torch._ops.OpOverload
    yield Patch(packet, "__call__", _caught(packet.__call__, lambda called: called._qualified_op_name, mode))
    yield Patch(overload, "__call__", _caught(overload.__call__, lambda called: called._schema.name, mode))


def _caught(original: Callable[..., Any], name_of: Callable[[Any], str], mode: DeviceMode) -> Callable[..., Any]:
    def __call__(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        method = _METHODS.get(name_of(self))
        if method is not None and args and isinstance(args[0], torch.Tensor) and not _is_passed_on():
            kwargs = {key: value for key, value in kwargs.items() if key not in _LAYOUT}
            return getattr(args[0], method)(*args[1:], **kwargs)
        device = kwargs.get("device")
        if device is None or torch.device(device).type != "cpu" or _is_passed_on():
            return original(self, *args, **kwargs)
        with mode.told():
            return original(self, *args, **kwargs)

    return __call__


def _is_passed_on() -> bool:
    """Whether the call is made by what PyTorch calls for an operator."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != "__torch_dispatch__":
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None
