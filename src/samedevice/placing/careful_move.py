"""The careful way to move nested data: any shape, shared parts, cycles, objects that move in place, errors with a path.

First the whole structure is read, then plain tensors move, which leaves their originals alone, then what is moved in
place, then the containers are rebuilt around them. Whatever fails, what was moved in place is put back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from samedevice.errors import MoveError
from samedevice.placing.move_itself import move_itself
from samedevice.placing.move_tensors import move_tensors
from samedevice.placing.state_dicts import steps_that_stay
from samedevice.placing.undo import Undo
from samedevice.texts import say
from samedevice.trees.replace import PartError, Tree, replace, scan
from samedevice.trees.walk import walk

__all__ = ["careful_move", "move_error"]


def careful_move(obj: Any, device: torch.device, non_blocking: bool, moved_before: dict[int, Tensor]) -> Any:
    """Move nested data of any shape.

    Args:
        obj: nested data.
        device: where to.
        non_blocking: as for `Tensor.to`.
        moved_before: tensors that were moved before, by the id of their original.

    Returns:
        The data with its tensors on `device`; the same object where all are there.

    Raises:
        PartError: something could not be moved; nothing is changed.
    """
    tree = scan(obj)
    movers = _elsewhere(tree.leaves, device)
    return _Move(device, non_blocking, moved_before).move(tree, movers) if movers else obj


def _elsewhere(leaves: list[Any], device: torch.device) -> list[Any]:
    """The leaves but for tensors that are there; whether anything else is there, only its own `to` knows."""
    found: list[Any] = []
    leaf = None
    try:
        for leaf in leaves:
            if not isinstance(leaf, Tensor) or leaf.device != device:
                found.append(leaf)
    except Exception as error:  # a tensor subclass answers for its device itself
        raise PartError(leaf) from error
    return found


class _Move:
    """One call's state: where to, what has become of each object so far, and how to undo it."""

    def __init__(self, device: torch.device, non_blocking: bool, moved_before: dict[int, Tensor]) -> None:
        self._device = device
        self._non_blocking = non_blocking
        self._moved_before = moved_before
        self._new: dict[int, Any] = {}
        self._undo = Undo()

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
            self._undo.restore()
            raise

    def _move_tensors(self, tensors: list[Tensor]) -> None:
        move_tensors(tensors, self._device, self._non_blocking, self._new, self._moved_before)
        for tensor in tensors:
            if tensor.__dict__:
                self._carry_attributes(tensor)

    def _move_itself(self, leaf: Any) -> None:
        """Once, also if it is met again: what is remembered has been moved."""
        try:
            if not self._undo.remember(leaf):
                return
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
        movers = [leaf for leaf in _elsewhere(tree.leaves, self._device) if id(leaf) not in self._new]
        vars(moved).update(self.move(tree, movers))


class _MoveOutOfMemory(MoveError, torch.OutOfMemoryError):
    """Also what `except torch.OutOfMemoryError` waits for, to try again with a smaller batch."""


def move_error(obj: Any, root: str, part: Any, cause: BaseException | None, device: torch.device) -> MoveError:
    """The error to raise for a part that could not be moved; naming its place takes a second walk.

    Args:
        obj: the data.
        root: the expression for it.
        part: the part of it that could not be moved.
        cause: why.
        device: where it was to go.

    Returns:
        A `MoveError`, which is also an out-of-memory error where that is the cause.
    """
    path = next((str(path) for path, value in walk(obj, root) if value is part), None)
    name = say("an attribute of a tensor in {name}", name=root) if path is None else path
    told = {"name": name, "device": str(device), "type": type(cause).__name__, "cause": str(cause)}
    kind = _MoveOutOfMemory if isinstance(cause, torch.OutOfMemoryError) else MoveError
    return kind(
        say(
            "{name}, on {origin}, could not be moved to {device}; nothing was changed. {type}: {cause}",
            origin=str(part.device),
            **told,
        )
        if type(part) is Tensor
        else say(
            "{name}, of type {origin}, could not be moved to {device}; nothing was changed. {type}: {cause}",
            origin=type(part).__qualname__,
            **told,
        )
    )
