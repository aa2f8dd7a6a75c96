"""The user's frames of the running stack, and culprits of findings without an exception."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from samedevice.explaining.frames import UserFrame, variables_of
from samedevice.explaining.live import describe
from samedevice.explaining.made import Made
from samedevice.explaining.routes import search_all
from samedevice.findings import Culprit
from samedevice.usercode import is_user_file

__all__ = ["culprit_of", "name_of", "user_stack"]


def user_stack() -> Iterator[UserFrame]:
    """The user's frames of this thread's stack, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            yield UserFrame(variables_of(frame), frame.f_lineno, None)
        frame = frame.f_back  # type: ignore[assignment]


def name_of(thing: object, stack: list[UserFrame], default: str) -> str:
    """What the innermost frame that reaches `thing` calls it."""
    found = next(search_all(stack, lambda value: value is thing), None)
    return found.text if found is not None else default


def culprit_of(name: str, made: Made | None, device: str, tensor: Any = None) -> Culprit:
    """What a silent fault is about, and the line that it goes back to."""
    _, shape, dtype = describe(tensor) if tensor is not None else (None, None, None)
    known = made if made is not None and made.line else None
    file, line, text = (known.file, known.line, known.text or None) if known is not None else (None, None, None)
    return Culprit(name, file, line, device or None, shape, dtype, text)
