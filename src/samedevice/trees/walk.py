"""Every part of nested data with the path that leads to it: each shared object once, cycles ended, at any depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from samedevice.trees.containers import KINDS
from samedevice.trees.kinds import ATOM, Container, Kind
from samedevice.trees.path import Path

__all__ = ["walk"]


def walk(obj: Any, root: str | Path = "batch", *, kinds: Mapping[type, Kind] = KINDS) -> Iterator[tuple[Path, Any]]:
    """Walk nested data from the outside in, in its own order.

        for path, value in walk({"image": x}):        # path prints as batch["image"]

    Args:
        obj: nested data of any shape.
        root: what paths begin with: the caller's expression for `obj`, or the path to it.
        kinds: what each type is; another table may open more.

    Yields:
        A path and what is there, for all but atoms: leaves (tensors, modules, what has a `to` of its own), opaque
        objects, and containers too. An object that is reached twice comes once, by its first path.
    """
    start = Path(root) if isinstance(root, str) else root
    seen: dict[int, Any] = {}
    stack: list[Iterator[tuple[Path, Any]]] = [iter([(start, obj)])]
    while stack:
        for path, value in stack[-1]:
            kind = kinds[type(value)]
            if kind is ATOM or id(value) in seen:
                continue
            seen[id(value)] = value
            yield path, value
            if isinstance(kind, Container):
                stack.append(_opened(kind, path, value))
                break
        else:
            stack.pop()


def _opened(kind: Container, path: Path, obj: Any) -> Iterator[tuple[Path, Any]]:
    # Not zip(strict=True): a registered class may name its parts anew each time.
    return ((path / step, child) for step, child in zip(kind.steps(obj), kind.children(obj), strict=False))
