"""Keeps what is written on a storage's Python object, in every version of PyTorch.

Note [Garbage that takes a storage's attributes along]
A storage's Python object lives as long as the storage. Up to 2.9, where it is part of a garbage cycle (`torch.save`
leaves one behind), Python's collector empties its `__dict__` first and PyTorch then keeps the emptied object. An
object that the collector does not track is spared. Whether the installed version needs that is tried out, not looked
up.
"""

from __future__ import annotations

import ctypes
import functools
import gc
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["protection"]


@functools.cache
def protection() -> Callable[[Any], None] | None:
    """What to call with a storage before attributes of it may be relied on.

    Returns:
        A function, or None where nothing is needed.
    """
    return None if _attributes_survive() else _untrack


def _attributes_survive() -> bool:
    """Whether an attribute of a storage survives a garbage cycle that held its Python object."""
    tensor = torch.empty(1)
    tensor.untyped_storage()._samedevice_probe = True  # type: ignore[attr-defined]
    cycle: list[Any] = [tensor.untyped_storage()]
    cycle.append(cycle)
    del cycle
    gc.collect(0)
    return hasattr(tensor.untyped_storage(), "_samedevice_probe")


def _untrack(storage: Any) -> None:
    ctypes.pythonapi.PyObject_GC_UnTrack(ctypes.py_object(storage))
