"""Moves nested data of any shape to a device: `move_to_device`, the public entrance.

What each kind of data becomes stands in docs/moving.md. How a container is opened is the business of `trees`, how
tensors that share memory move of `storages`, how everything else that moves itself of `movers`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

from samedevice.devices import parse
from samedevice.errors import MoveError
from samedevice.placing.argument import argument_text
from samedevice.placing.movers import move_itself
from samedevice.placing.state_dicts import steps_that_stay
from samedevice.placing.storages import move_tensors
from samedevice.placing.undo import Undo
from samedevice.trees.replace import PartError, Tree, replace, scan
from samedevice.trees.walk import walk

if TYPE_CHECKING:
    from samedevice.devices import DeviceLike

__all__ = ["move_to_device"]

T = TypeVar("T")


def move_to_device(obj: T, device: DeviceLike, *, non_blocking: bool = False, strict: bool = False) -> T:
    """Move every tensor in nested data to a device.

        batch = move_to_device(batch, "cuda")     # {"image": [8, 3, 224, 224], "targets": [{"boxes": …}, …]}

    Args:
        obj: nested data: tensors, modules and parameters in containers of any kind and depth.
        device: a name, a `torch.device`, or the index of an accelerator.
        non_blocking: as for `Tensor.to`, where that is safe; copies to the CPU are always waited for.
        strict: refuse to move anything if something would be left behind in a place that moving does not change.

    Returns:
        The same structure, each container of the same type, tensors on `device`; shapes and dtypes unchanged. What
        does not change is the very same object; so is `obj` itself where everything is there already. The input is
        left as it was, but for modules and parameters, which are moved in place as `Module.to` does.

    Raises:
        UnknownDevice: `device` names no device, e.g. "gpu".
        UnavailableDevice: `device` is not on this machine.
        LeftBehind: with `strict`, tensors would be left behind.
        MoveError: something could not be moved; the message gives its path. Nothing is changed then.
    """
    target = parse(device)
    try:
        tree = scan(obj)
        if strict:
            _refuse_left_behind(obj, target)
        movers = [leaf for leaf in tree.leaves if type(leaf) is not Tensor or leaf.device != target]
        return _Move(target, non_blocking).move(tree, movers) if movers else obj
    except PartError as error:
        root = argument_text(sys._getframe(1), "move_to_device")
        raise _move_error(obj, root, error.part, error.__cause__, target) from error.__cause__


class _Move:
    """One call's state: where to, what has become of each object so far, and how to undo it."""

    __slots__ = ("_device", "_new", "_non_blocking", "_undo")

    def __init__(self, device: torch.device, non_blocking: bool) -> None:
        self._device = device
        self._non_blocking = non_blocking and device.type not in _WAITED_FOR
        self._new: dict[int, Any] = {}
        self._undo: Undo | None = None

    def move(self, tree: Tree, movers: list[Any]) -> Any:
        """Move the leaves and rebuild the containers around them, or change nothing."""
        stay = steps_that_stay(tree.nodes)
        try:
            self._move_tensors([leaf for leaf in movers if type(leaf) is Tensor and id(leaf) not in stay])
            for leaf in movers:
                if type(leaf) is not Tensor:
                    self._move_itself(leaf)
            return replace(tree, self._new)
        except BaseException:
            if self._undo is not None:
                self._undo.restore()
            raise

    def _move_tensors(self, tensors: list[Tensor]) -> None:
        move_tensors(tensors, self._device, self._non_blocking, self._new)
        for tensor in tensors:
            if tensor.__dict__:
                self._carry_attributes(tensor)

    def _move_itself(self, leaf: Any) -> None:
        """Once, also if it is met again: the undo list knows those that stay the same object."""
        self._undo = self._undo or Undo()
        if not self._undo.remember(leaf):
            return
        try:
            moved = move_itself(leaf, self._device, self._non_blocking)
        except Exception as error:
            raise PartError(leaf) from error
        if moved is not leaf:
            self._new[id(leaf)] = moved
            if isinstance(leaf, Tensor):
                self._carry_attributes(leaf)

    def _carry_attributes(self, tensor: Tensor) -> None:
        """What Python code hung on a tensor, `Tensor.to` leaves behind."""
        moved = self._new[id(tensor)]
        missing = {name: value for name, value in vars(tensor).items() if name not in vars(moved)}
        tree = scan(missing)
        movers = [leaf for leaf in tree.leaves if id(leaf) not in self._new and leaf.device != self._device]
        vars(moved).update(self.move(tree, movers))


_WAITED_FOR = ("cpu", "mps")
"""Targets for which `non_blocking` is not passed on: the data could be read before it has arrived.

Source: PyTorch's tutorial "A guide on good usage of non_blocking and pin_memory()": a copy to the CPU must be
synchronised before the CPU reads it; https://github.com/pytorch/pytorch/issues/139550 for mps.
"""


class _MoveOutOfMemory(MoveError, torch.OutOfMemoryError):
    """Also what `except torch.OutOfMemoryError` waits for, to try again with a smaller batch."""


def _move_error(obj: Any, root: str, part: Any, cause: BaseException | None, device: torch.device) -> MoveError:
    """Naming the place takes a second walk, which only a failure pays for."""
    path = next((path for path, value in walk(obj, root) if value is part), f"an attribute of a tensor in {root}")
    origin = f"on {part.device}" if isinstance(part, Tensor) else f"of type {type(part).__qualname__}"
    kind = _MoveOutOfMemory if isinstance(cause, torch.OutOfMemoryError) else MoveError
    return kind(
        f"{path}, {origin}, could not be moved to {device}; nothing was changed. {type(cause).__name__}: {cause}"
    )


def _refuse_left_behind(obj: Any, device: torch.device) -> None:
    # Only strict moving pays for the import.
    from samedevice.placing.left_behind import refuse_left_behind

    refuse_left_behind(obj, device, argument_text(sys._getframe(2), "move_to_device"))
