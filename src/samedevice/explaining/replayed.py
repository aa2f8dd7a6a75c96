"""Frames that only a message tells of: what failed in a replica's thread or a loader's process is raised anew as text.

`torch._utils.ExceptionWrapper` (2.6 to 2.13) keeps the type and the printed traceback of the original and loses its
frames. The object whose method failed is often still in reach; a frame is put together from it, so that the rest of
explaining can look at `self` as if it were there.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from types import FunctionType, SimpleNamespace
from typing import Any

from samedevice.explaining.frames import UserFrame, Variables
from samedevice.explaining.live import mro_of, namespace_of
from samedevice.explaining.operands import Seen
from samedevice.explaining.routes import search_all
from samedevice.explaining.sources import read_source
from samedevice.explaining.tracebacks import PastedFrame, frames_in

__all__ = ["in_replica", "replayed_frames"]

_REPLICA = re.compile(r"in replica \d+ on device (\d+)")
_MARK = "Original Traceback (most recent call last)"


def replayed_frames(text: str, frames: list[UserFrame]) -> list[UserFrame]:
    """The innermost user frame of a traceback inside a message.

    Args:
        text: the exception's message.
        frames: the user's real frames, outermost first, to find the object in.

    Returns:
        One frame, with `self` where the object was found; none where the message holds no traceback of the user's.
    """
    if _MARK not in text:
        return []
    told = [frame for frame in frames_in(text) if frame.is_users and read_source(frame.file).lines]
    if not told:
        return []
    innermost = told[-1]
    for route in search_all(reversed(frames), lambda value: _function(value, innermost) is not None):
        function = _function(route.value, innermost)
        if function is not None:
            own = {} if function is route.value else {"self": route.value}
            return [_frame(function, _enclosed(function) | own, innermost)]
    return [_frame(None, {}, innermost)]


def in_replica(one: Seen, text: str) -> Seen:
    """An operand as the replica that failed had it: parameters and buffers are copied to its device, nothing else is.

    Args:
        one: the operand as the module that was replicated has it.
        text: the exception's message.
    """
    found = _REPLICA.search(text)
    holder = one.route.holder if one.route is not None else None
    if found is None or holder is None or holder.kind not in ("parameter", "buffer"):
        return one
    kind = one.device.partition(":")[0]
    return replace(one, device=f"{kind}:{found[1]}")


def _function(value: Any, told: PastedFrame) -> FunctionType | None:
    """The function whose line failed: `value` itself, or a method of its class."""
    candidates: list[Any] = [value, *(namespace_of(base).get(told.function or "") for base in mro_of(type(value)))]
    for found in candidates:
        if type(found) is FunctionType and found.__code__.co_filename == told.file:
            definition = read_source(told.file).function_at(told.line, told.function)
            if definition is not None and found.__code__.co_firstlineno <= told.line <= (definition.end_lineno or 0):
                return found
    return None


def _enclosed(function: FunctionType) -> dict[str, Any]:
    """The variables that a function has from the function around it."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not bound yet
            found[name] = cell.cell_contents
    return found


def _frame(function: FunctionType | None, variables: dict[str, Any], told: PastedFrame) -> UserFrame:
    code = function.__code__ if function is not None else _code_of(told)
    shared = function.__globals__ if function is not None else {}
    return UserFrame(Variables(code, variables, shared), told.line, None)


def _code_of(told: PastedFrame) -> Any:
    return SimpleNamespace(
        co_filename=told.file, co_name=told.function or "<module>", co_firstlineno=told.line, co_freevars=(),
        co_cellvars=(), co_varnames=(), co_argcount=0, co_kwonlyargcount=0, co_flags=0,
    )  # fmt: skip
