"""Tracebacks that PyTorch prints into another error show no frames of this package, which a real machine has not.

DataParallel's replicas and the workers of a DataLoader hand their errors over as text, in `ExceptionWrapper`; processes
that `torch.multiprocessing.spawn` started, in a file.
"""

from __future__ import annotations

import functools
import importlib
import pickle
import sys
import traceback as printing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch._utils

from samedevice.simulation.patching import Patch
from samedevice.usercode import users_traceback

__all__ = ["patches"]


def patches() -> Iterator[Patch]:
    """What an `ExceptionWrapper` is made of, and what a spawned process does: torch/_utils.py and
    torch/multiprocessing/spawn.py, 2.6 to 2.14.

    Yields:
        Two patches.
    """
    wrapper: Any = torch._utils.ExceptionWrapper
    original = wrapper.__init__

    def __init__(self: Any, exc_info: Any = None, *args: Any, **kwargs: Any) -> None:
        kind, error, traceback = sys.exc_info() if exc_info is None else exc_info
        original(self, (kind, error, users_traceback(traceback)), *args, **kwargs)

    yield Patch(wrapper, "__init__", __init__)
    # The package has a function of that name.
    spawn: Any = importlib.import_module("torch.multiprocessing.spawn")
    yield Patch(spawn, "_wrap", _writing(spawn._wrap))


def _writing(original: Callable[..., None]) -> Callable[..., None]:
    """What a spawned process runs; pickled by name, as PyTorch's own."""

    @functools.wraps(original)
    def _wrap(fn: Any, i: int, args: Any, error_file: str) -> None:
        try:
            original(fn, i, args, error_file)
        except SystemExit as leaving:
            if (error := leaving.__context__) is not None and leaving.code == 1:
                text = printing.format_exception(type(error), error, users_traceback(error.__traceback__))
                with Path(error_file).open("wb") as file:
                    pickle.dump("".join(text), file)
            raise

    return _wrap
