"""Warnings of PyTorch's C++ point at the user's line, also where this package stands between.

C++ gives a warning the line of Python that called it, by which Python also filters and counts it. What was let through
for a line of this package is issued again for the user's, whose filters and count then decide.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from samedevice.simulation.patching import Patch

__all__ = ["patches"]

_PACKAGE = str(Path(__file__).parent)


def patches() -> Iterator[Patch]:
    """The function that shows a warning: Lib/warnings.py, `_showwarnmsg`, 3.10 to 3.14.

    Yields:
        One patch, or none where Python has no such function.
    """
    original = getattr(warnings, "_showwarnmsg", None)
    if original is None:
        return

    def _showwarnmsg(message: Any) -> None:
        frame = sys._getframe(1)
        caller = _caller(frame)
        if caller is None or not message.filename.startswith(_PACKAGE):
            original(message)
        else:
            _uncount(message, frame)
            _issue_for(caller, message)

    yield Patch(warnings, "_showwarnmsg", _showwarnmsg)


def _caller(frame: FrameType) -> FrameType | None:
    """The innermost frame outside this package."""
    found: FrameType | None = frame
    while found is not None and found.f_code.co_filename.startswith(_PACKAGE):
        found = found.f_back
    return found


def _uncount(message: Any, frame: FrameType) -> None:
    """Forget that the warning was shown, for this package's line and altogether."""
    frame.f_globals.get("__warningregistry__", {}).clear()
    once: dict[Any, Any] = getattr(warnings, "onceregistry", {})
    once.pop((str(message.message), message.category), None)


def _issue_for(caller: FrameType, message: Any) -> None:
    """As C would have issued it for that line. Source: Python/_warnings.c, `do_warn`."""
    names = caller.f_globals
    warnings.warn_explicit(
        message.message,
        message.category,
        caller.f_code.co_filename,
        caller.f_lineno,
        module=names.get("__name__", "<string>"),
        registry=names.setdefault("__warningregistry__", {}),
        source=message.source,
    )
