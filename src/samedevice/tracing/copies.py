"""Copies that no operator announces: `copy.deepcopy` of tensors, and the tensors that `torch.load` builds.

Both fill new storages from Python, below the dispatcher. While recording, the two functions are wrapped; what they
return is what PyTorch returns.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from samedevice.explaining.live import is_tensor
from samedevice.explaining.reading import members
from samedevice.simulation.observers import Event, Observer
from samedevice.simulation.patching import Patch

__all__ = ["patches"]

_MOST_LOADED = 100_000


def patches(observer: Observer) -> list[Patch]:
    """What to install so that `observer` hears of deep copies ("aten::deepcopy") and loaded tensors ("aten::load").

    Args:
        observer: called with an `Event` after each.
    """
    return [
        Patch(torch.Tensor, "__deepcopy__", _copying(torch.Tensor.__deepcopy__, observer)),
        Patch(torch, "load", _loading(torch.load, observer)),
    ]


def _copying(original: Callable[..., Any], observer: Observer) -> Callable[..., Any]:
    @functools.wraps(original)
    def __deepcopy__(tensor: Any, memo: Any) -> Any:
        known = id(tensor) in memo
        result = original(tensor, memo)
        if not known and is_tensor(result):
            observer(Event("computed", "aten::deepcopy", (result,), (tensor,)))
        return result

    return __deepcopy__


def _loading(original: Callable[..., Any], observer: Observer) -> Callable[..., Any]:
    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        tensors = tuple(_tensors(result))
        if tensors:
            observer(Event("loaded", "aten::load", tensors, ()))
        return result

    return load


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors anywhere in what a checkpoint held."""
    queue, seen = [value], set[int]()
    while queue and len(seen) < _MOST_LOADED:
        current = queue.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        if is_tensor(current):
            yield current
        else:
            queue.extend(inner for _, _, inner in members(current))
