"""Remembers objects that are about to change in place, so that a move that fails later leaves them as they were."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor, nn

from samedevice.trees.attributes import AttributesOf, has_attributes, is_python_class
from samedevice.trees.inside import INSIDE
from samedevice.trees.walk import walk

__all__ = ["Undo"]


class Undo:
    """What it takes to put remembered objects back."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], None]] = []
        self._remembered: dict[int, Any] = {}

    def remember(self, obj: Any) -> bool:
        """Remember a module, a parameter, or an object that moves itself with all that it holds.

        Args:
            obj: what is about to be moved.

        Returns:
            False where it was remembered before, so that it has been moved already.
        """
        if id(obj) in self._remembered:
            return False
        self._remembered[id(obj)] = obj
        for _, value in walk(obj, kinds=INSIDE):
            if isinstance(value, nn.Module):
                self._remember_module(value)
            elif isinstance(value, Tensor):
                self._remember_tensor(value)
            else:
                self._remember_contents(value)
        return True

    def restore(self) -> None:
        """Put everything back, the latest first."""
        while self._steps:
            self._steps.pop()()

    def _remember_module(self, module: nn.Module) -> None:
        """What `Module.to` replaces: entries of the parameter and buffer tables, and the data of parameters."""
        for part in module.modules():
            for table in (part._parameters, part._buffers):
                self._remember_contents(table)
                for tensor in table.values():
                    if tensor is not None:
                        self._remember_tensor(tensor)

    def _remember_tensor(self, tensor: Tensor) -> None:
        if tensor.is_leaf:
            gradient = tensor.grad
            saved = (tensor.data, gradient, None if gradient is None else gradient.data)
            self._steps.append(partial(_restore_tensor, tensor, *saved))

    def _remember_contents(self, obj: Any) -> None:
        if isinstance(obj, dict):
            self._steps.append(partial(_restore_dict, obj, dict(obj)))
        elif isinstance(obj, list):
            self._steps.append(partial(_restore_list, obj, list(obj)))
        elif is_python_class(type(obj)) and has_attributes(type(obj)):
            attributes = AttributesOf(type(obj))
            self._steps.append(partial(_restore_attributes, attributes, obj, dict(attributes.items(obj))))


def _restore_tensor(tensor: Tensor, data: Tensor, gradient: Tensor | None, gradient_data: Tensor | None) -> None:
    if tensor.device != data.device:
        tensor.data = data
    if gradient is not None and gradient_data is not None and gradient.device != gradient_data.device:
        gradient.data = gradient_data
    if tensor.grad is not gradient:
        tensor.grad = gradient


def _restore_dict(obj: dict[Any, Any], items: dict[Any, Any]) -> None:
    if not _same(list(obj.values()), list(items.values())):
        dict.clear(obj)
        dict.update(obj, items)


def _restore_list(obj: list[Any], elements: list[Any]) -> None:
    if not _same(obj, elements):
        list.__setitem__(obj, slice(None), elements)


def _restore_attributes(attributes: AttributesOf, obj: Any, saved: dict[str, Any]) -> None:
    now = dict(attributes.items(obj))
    for name in now.keys() - saved.keys():
        object.__delattr__(obj, name)
    for name, value in saved.items():
        # Numbers say nothing of devices: a count of calls goes on counting.
        if now.get(name) is not value and not isinstance(value, (int, float)):
            object.__setattr__(obj, name, value)


def _same(now: list[Any], saved: list[Any]) -> bool:
    return len(now) == len(saved) and all(new is old for new, old in zip(now, saved, strict=True))
