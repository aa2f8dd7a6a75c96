"""Tracebacks that PyTorch prints into another error show no frames of this package, which a real machine has not.

DataParallel's replicas and the workers of a DataLoader hand their errors over as text, in `ExceptionWrapper`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import torch._utils

from samedevice.simulation.patching import Patch

__all__ = ["patches"]

_PACKAGE = str(Path(__file__).parent)


def patches() -> Iterator[Patch]:
    """What an `ExceptionWrapper` is made of: torch/_utils.py, 2.6 to 2.14.

    Yields:
        One patch.
    """
    wrapper: Any = torch._utils.ExceptionWrapper
    original = wrapper.__init__

    def __init__(self: Any, exc_info: Any = None, *args: Any, **kwargs: Any) -> None:
        kind, error, traceback = sys.exc_info() if exc_info is None else exc_info
        original(self, (kind, error, _without_ours(traceback)), *args, **kwargs)

    yield Patch(wrapper, "__init__", __init__)


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_PACKAGE):
            kept.append(traceback)
        traceback = traceback.tb_next
    result: TracebackType | None = None
    for entry in reversed(kept):
        result = TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result
