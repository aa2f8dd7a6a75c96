"""Warnings of PyTorch's C++ point at the user's line, also where this package stands between.

C++ gives a warning the line of Python that called it. Only what is shown or recorded is changed; filters have decided
before.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
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
        if message.filename.startswith(_PACKAGE):
            _point_at_caller(message)
        original(message)

    yield Patch(warnings, "_showwarnmsg", _showwarnmsg)


def _point_at_caller(message: Any) -> None:
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PACKAGE):
        if frame.f_back is None:
            return
        frame = frame.f_back
    message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
