"""Moves what moves itself: tensor subclasses, parameters, modules, and objects with a method `to` of their own.

A `to` is called once and never again, whatever it raises or returns; None means that the object itself was moved, as
modules do.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["move_itself"]


def move_itself(leaf: Any, device: torch.device, non_blocking: bool) -> Any:
    """Move one leaf that is not exactly a `Tensor`.

    Args:
        leaf: an object whose class has a method `to`.
        device: where to.
        non_blocking: passed on where its `to` takes it.

    Returns:
        What stands for the leaf: the leaf itself where it was there already, or is moved in place.
    """
    if not isinstance(leaf, Tensor):
        moved = _call_to(leaf, device, non_blocking)
        return leaf if moved is None else moved
    if leaf.device == device:
        return leaf
    if isinstance(leaf, nn.Parameter):
        return _as_module_to_does(leaf, device, non_blocking)
    return _same_type(leaf, _call_to(leaf, device, non_blocking))


def _as_module_to_does(parameter: nn.Parameter, device: torch.device, non_blocking: bool) -> nn.Parameter:
    """The same object with its data and gradient elsewhere, or a new parameter where PyTorch makes one (on meta)."""
    holder = nn.Module()
    holder.register_parameter("parameter", parameter)
    return holder.to(device, non_blocking=non_blocking).get_parameter("parameter")


def _same_type(original: Tensor, moved: Any) -> Any:
    """Classes that switch `__torch_function__` off come back as plain tensors."""
    return moved.as_subclass(type(original)) if type(moved) is Tensor else moved


def _call_to(obj: Any, device: torch.device, non_blocking: bool) -> Any:
    by_keyword, takes_non_blocking = _signature_of_to(type(obj))  # type: ignore[arg-type]
    options = {"non_blocking": True} if non_blocking and takes_non_blocking else {}
    return obj.to(device=device, **options) if by_keyword else obj.to(device, **options)


@functools.lru_cache(maxsize=1024)
def _signature_of_to(cls: type) -> tuple[bool, bool]:
    """Whether `cls.to` wants its device by keyword, as storages do, and whether it takes `non_blocking`."""
    try:
        parameters = inspect.signature(cls.to).parameters  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return False, True
    by_keyword = "device" in parameters and parameters["device"].kind is inspect.Parameter.KEYWORD_ONLY
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    return by_keyword, takes_any or "non_blocking" in parameters
