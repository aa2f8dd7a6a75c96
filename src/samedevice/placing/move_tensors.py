"""Moves plain tensors, and lets those that share memory share it afterwards too.

`Tensor.to` gives each tensor memory of its own: the 64 rows of `x.unbind(0)` become 64 copies that no longer see each
other's writes, and an expanded scalar becomes a full tensor. Here

- tensors that lie on overlapping or adjoining stretches of one storage move as one copy of that stretch, and are views
  of it again, as long as the stretch is at most twice what the tensors themselves hold (else two columns of a big table
  would drag the table along);
- an expanded tensor moves unexpanded and is expanded again;
- a tensor that takes part in autograd moves as `Tensor.to` does, so that gradients find their way back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from samedevice.trees.replace import PartError

__all__ = ["move_tensors"]

_MOST_WASTE = 2
"""A stretch of memory moves as a whole while it is at most this many times what the tensors on it hold."""


def move_tensors(
    tensors: Iterable[Tensor],
    device: torch.device,
    non_blocking: bool,
    new: dict[int, Any],
    moved_before: dict[int, Tensor] | None = None,
) -> None:
    """Move tensors of exactly the type `Tensor`; each may come several times.

    Args:
        tensors: what to move, none of it on `device` yet.
        device: where to.
        non_blocking: as for `Tensor.to`.
        new: receives each moved tensor under the id of its original.
        moved_before: tensors that were moved before, by the id of their original. One that turns out to share its
            memory is moved again, with the others.

    Raises:
        PartError: a tensor could not be moved.
    """
    alone: dict[int, Tensor] = {}
    together: dict[int, dict[int, Tensor]] = {}
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()._cdata
        except (RuntimeError, NotImplementedError):
            # Sparse tensors and those of torch.func have no storage of their own; a negative number is no address.
            storage = -id(tensor)
        first = alone.setdefault(storage, tensor)
        if first is not tensor:
            together.setdefault(storage, {id(first): first})[id(tensor)] = tensor
    for storage, sharing in together.items():
        del alone[storage]
        for stretch in _stretches(sharing.values()):
            if len(stretch) == 1:
                alone[-id(stretch[0])] = stretch[0]
            else:
                _move_stretch(stretch, device, non_blocking, new)
    if moved_before:
        new.update((id(tensor), moved_before[id(tensor)]) for tensor in alone.values() if id(tensor) in moved_before)
    _move_each([tensor for tensor in alone.values() if id(tensor) not in new], device, non_blocking, new)


def _move_each(tensors: Iterable[Tensor], device: torch.device, non_blocking: bool, new: dict[int, Any]) -> None:
    tensor = None
    strided = torch.strided
    try:
        for tensor in tensors:
            if tensor.layout is strided and not tensor.is_contiguous() and _is_expanded(tensor):
                new[id(tensor)] = _unexpanded(tensor).to(device, non_blocking=non_blocking).expand(tensor.size())
            elif non_blocking:
                new[id(tensor)] = tensor.to(device, non_blocking=True)
            else:
                new[id(tensor)] = tensor.to(device)
    except Exception as error:
        raise PartError(tensor) from error


def _is_expanded(tensor: Tensor) -> bool:
    return not (tensor.requires_grad or tensor.is_nested) and 0 in tensor.stride() and tensor.numel() > 0


def _unexpanded(tensor: Tensor) -> Tensor:
    for dimension, stride in enumerate(tensor.stride()):
        if stride == 0:
            tensor = tensor.narrow(dimension, 0, 1)
    return tensor


def _stretches(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Group tensors of one storage: each group moves as a whole, a tensor by itself on its own."""
    views = []
    for tensor in tensors:
        if _can_be_viewed_again(tensor):
            views.append((*_extent(tensor), tensor))
        else:
            yield [tensor]
    views.sort(key=lambda view: view[:2])
    group: list[Tensor] = []
    group_start = group_end = 0
    for start, end, tensor in views:
        if group and start > group_end:
            yield from _worth_sharing(group, group_end - group_start)
            group = []
        if not group:
            group_start = group_end = start
        group.append(tensor)
        group_end = max(group_end, end)
    if group:
        yield from _worth_sharing(group, group_end - group_start)


def _worth_sharing(group: list[Tensor], length: int) -> Iterator[list[Tensor]]:
    if length <= _MOST_WASTE * sum(map(_bytes_held, group)):
        yield group
    else:
        yield from ([tensor] for tensor in group)


def _can_be_viewed_again(tensor: Tensor) -> bool:
    return bool(tensor.numel()) and not (
        tensor.requires_grad or tensor.is_conj() or tensor.is_neg() or tensor.is_quantized or tensor.is_nested
    )


def _extent(tensor: Tensor) -> tuple[int, int]:
    """Where in its storage a tensor begins and ends, in bytes."""
    start = int(tensor.storage_offset())
    last = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
    return start * tensor.element_size(), (start + last + 1) * tensor.element_size()


def _bytes_held(tensor: Tensor) -> int:
    sizes = (size for size, stride in zip(tensor.size(), tensor.stride(), strict=True) if stride)
    return math.prod(sizes) * tensor.element_size()


def _move_stretch(group: list[Tensor], device: torch.device, non_blocking: bool, new: dict[int, Any]) -> None:
    """Move the memory under all of `group` once, and view it again as each of them."""
    tensor = group[0]
    try:
        extents = [_extent(tensor) for tensor in group]
        # The smallest dtype can stand for all, from where the largest one is aligned.
        smallest = min(group, key=Tensor.element_size)
        aligned = max(map(Tensor.element_size, group))
        start = min(start for start, _ in extents) // aligned * aligned
        end = max(end for _, end in extents)
        size = smallest.element_size()
        memory = smallest.as_strided(((end - start) // size,), (1,), start // size).to(
            device, non_blocking=non_blocking
        )
        for tensor, (begin, _) in zip(group, extents, strict=True):
            offset = (begin - start) // tensor.element_size()
            new[id(tensor)] = _as_dtype(memory, tensor).as_strided(tensor.size(), tensor.stride(), offset)
    except Exception as error:
        raise PartError(tensor) from error


def _as_dtype(memory: Tensor, like: Tensor) -> Tensor:
    if memory.dtype == like.dtype:
        return memory
    ratio = like.element_size() // memory.element_size()
    return memory[: len(memory) // ratio * ratio].view(like.dtype)
