"""The short way for what most batches are: a tree of containers and plain tensors in which nothing is met twice.

One recursion moves and rebuilds, with no bookkeeping for shared parts: a shared part or a cycle with a tensor in it
shows as a storage that is met again, one without as running out of fuel. Then, and at whatever else is
unusual, `careful_move` gives the answer. It must be the same answer wherever this way gives one; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from samedevice.trees.containers import KINDS
from samedevice.trees.kinds import ATOM, LEAF, OPAQUE

__all__ = ["Detour", "quick_move"]

_MOST_CONTAINERS = 100_000
_DEEPEST = 100
_PLAIN = frozenset({str, int, float, bool, type(None)})


class Detour(Exception):
    """The data needs the careful way."""


def quick_move(
    obj: Any,
    device: torch.device,
    non_blocking: bool,
    done: dict[torch.UntypedStorage, tuple[Tensor, Tensor]],
    fuel: Iterator[int] | None = None,
    depth: int = _DEEPEST,
) -> Any:
    """Move nested data the short way.

    It is one loop on purpose: a call for each tensor would cost a tenth of the move.

    Args:
        obj: nested data.
        device: where to.
        non_blocking: as for `Tensor.to`.
        done: receives each tensor that is moved, and what became of it, under its storage.
        fuel: one for each container that may still be entered.
        depth: how many containers may still lie within each other.

    Returns:
        The data with its tensors on `device`; the same object where all are there.

    Raises:
        Detour: the data needs the careful way.
        Exception: so it does where anything else is raised. Nothing is changed in either case.
    """
    cls = type(obj)
    kind: Any = None
    pairs: Iterable[tuple[Any, Any]]
    if cls is dict:
        if "param_groups" in obj:
            # An optimizer's state dict, where some tensors stay.
            raise Detour
        pairs = obj.items()
    elif cls is list or cls is tuple:
        pairs = enumerate(obj)
    elif cls is Tensor:
        return quick_move((obj,), device, non_blocking, done)[0]
    else:
        kind = KINDS[cls]
        if kind is ATOM or kind is OPAQUE:
            return obj
        if kind is LEAF:
            raise Detour
        children = list(kind.children(obj))
        pairs = enumerate(children)
    changed: Any = None
    # Looked up for each call, not at import: a simulation puts its own in the class.
    to, is_contiguous, storage_of = Tensor.to, Tensor.is_contiguous, Tensor.untyped_storage
    for key, child in pairs:
        child_class = type(child)
        if child_class is Tensor:
            # After the first that moves the others are expected to: `to` finds those that are there.
            if not done and child.device == device:
                continue
            if (not is_contiguous(child) and 0 in child.stride()) or child.__dict__:
                # An expanded tensor, one with attributes.
                raise Detour
            # A storage has one Python object as long as that lives: torch 2.6 to 2.14.
            storage = storage_of(child)
            if storage in done:
                # Two tensors that share it, or one that is met twice.
                raise Detour
            moved = to(child, device, non_blocking=True) if non_blocking else to(child, device)
            if moved is child:
                continue
            done[storage] = child, moved
        elif child_class in _PLAIN:
            continue
        else:
            if not depth:
                raise Detour
            next(fuel := fuel or iter(range(_MOST_CONTAINERS)))
            moved = quick_move(child, device, non_blocking, done, fuel, depth - 1)
            if moved is child:
                continue
        if changed is None:
            changed = children if kind is not None else obj.copy() if cls is dict else list(obj)
        changed[key] = moved
    if changed is None:
        return obj
    if kind is not None:
        return kind.build(obj, changed)
    return tuple(changed) if cls is tuple else changed
