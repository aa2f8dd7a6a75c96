"""Two buffers that were one until a move copied them, and one of which was written since: the other is behind.

A move replaces each buffer by a copy of its own, so a buffer that two modules share is shared no more. Tables that
nobody writes may well be two; only a write into one of them makes it a fault.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from samedevice.explaining.frames import UserFrame
from samedevice.explaining.live import device_of, element_count, name_of_class, storage_key, tensors_of_module
from samedevice.findings import Finding, Fix
from samedevice.texts import say
from samedevice.tracing.stacks import culprit_of, name_of
from samedevice.tracing.ties import where_tied

__all__ = ["SplitBuffers"]


class _Pair(NamedTuple):
    root: Any
    """A weak reference to the module that was moved."""
    paths: tuple[str, str]
    buffers: tuple[Any, Any]
    """Weak references."""
    versions: tuple[int, int]


class SplitBuffers:
    """The buffers that moves have split, held weakly."""

    def __init__(self) -> None:
        self._pairs: list[_Pair] = []

    def shared_in(self, module: Any) -> list[tuple[str, str]]:
        """Paths below `module` that are one and the same buffer, or two over the same memory."""
        first: dict[Any, str] = {}
        found = []
        for path, kind, tensor in tensors_of_module(module):
            key = storage_key(tensor) if kind == "buffer" and element_count(tensor) else None
            if key is not None and first.setdefault(key, path) != path:
                found.append((first[key], path))
        return found

    def note(self, module: Any, shared: list[tuple[str, str]]) -> None:
        """Remember those of `shared` that are two now."""
        now = {path: tensor for path, kind, tensor in tensors_of_module(module) if kind == "buffer"} if shared else {}
        for paths in shared:
            first, second = (now.get(path) for path in paths)
            if first is None or second is None or storage_key(first) == storage_key(second):
                continue
            buffers, versions = (weakref.ref(first), weakref.ref(second)), (first._version, second._version)
            self._pairs.append(_Pair(weakref.ref(module), paths, buffers, versions))

    def find(self, stack: list[UserFrame]) -> Iterator[Finding]:
        """Pairs of which exactly one was written since; each is told of once.

        Args:
            stack: the user's frames, innermost first.
        """
        for pair in list(self._pairs):
            root, first, second = pair.root(), pair.buffers[0](), pair.buffers[1]()
            if root is None or first is None or second is None:
                self._pairs.remove(pair)
                continue
            written = [now._version != before for now, before in zip((first, second), pair.versions, strict=True)]
            if written[0] != written[1] and device_of(first) == device_of(second):
                self._pairs.remove(pair)
                old = written.index(False)
                yield _finding(root, pair.paths[old], pair.paths[1 - old], (first, second)[old], stack)


def _finding(root: Any, old: str, new: str, tensor: torch.Tensor, stack: list[UserFrame]) -> Finding:
    model = name_of(root, stack, name_of_class(type(root)))
    return Finding(
        code="SD900",
        cause="other",
        severity="warning",
        message=say(
            "{model}.{old} and {model}.{new} were one buffer until the move; only {model}.{new} is written now",
            model=model,
            old=old,
            new=new,
        ),
        location=stack[0].location,
        culprit=culprit_of(f"{model}.{old}", where_tied(root, (old, new), stack[0]), device_of(tensor), tensor),
        reasons=(say("a move gives each module a copy of a buffer of its own; a module that both hold stays one"),),
        fix=Fix(
            say(
                "share the module that owns it, or the buffer after the move: {model}.{old} = {model}.{new}",
                model=model,
                old=old,
                new=new,
            )
        ),
    )
