"""The other table of kinds: opens what moving passes by, to find what is hidden there; it rebuilds nothing."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any

from samedevice.trees.attributes import AttributesOf, has_attributes, is_python_class
from samedevice.trees.containers import KINDS, is_tensor_or_module
from samedevice.trees.kinds import LEAF, OPAQUE, Container, Get, Kind
from samedevice.trees.path import Step, attribute, item

__all__ = ["INSIDE"]


class _LookedInto(Container):
    def begin(self, obj: Any, get: Get) -> Any:
        raise NotImplementedError(f"{type(obj).__name__} is only looked into")


class _Array(_LookedInto):
    """A numpy array of objects; one of numbers has no children."""

    def children(self, obj: Any) -> Iterable[Any]:
        return obj.flat if obj.dtype.hasobject and obj.dtype.fields is None else ()

    def steps(self, obj: Any) -> Iterable[Step]:
        # `flat` has a position, which numpy turns into one index a dimension.
        indices = (coordinates for coordinates, _ in self._enumerate(obj))
        return (item(index[0] if len(index) == 1 else index) for index in indices)

    def _enumerate(self, obj: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
        flat = obj.flat
        for _ in range(obj.size):
            yield flat.coords, next(flat)


class _Partial(_LookedInto):
    def children(self, obj: Any) -> Iterable[Any]:
        return (obj.func, obj.args, obj.keywords)

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(attribute, ("func", "args", "keywords"))


class _Inside(dict[type, Kind]):
    """Filled as types are met, like `KINDS`."""

    def __missing__(self, cls: type) -> Kind:
        kind = self[cls] = _kind_inside(cls)
        return kind


INSIDE = _Inside()
"""As `KINDS`, but plain objects, objects with their own `to`, object arrays and partials are opened too."""


def _kind_inside(cls: type) -> Kind:
    kind = KINDS[cls]
    if kind not in (OPAQUE, LEAF) or is_tensor_or_module(cls):
        return kind
    if any((base.__module__, base.__qualname__) == ("numpy", "ndarray") for base in cls.__mro__):
        return _Array()
    if issubclass(cls, functools.partial):
        return _Partial()
    opens = is_python_class(cls) and has_attributes(cls) and not issubclass(cls, Iterator)
    return AttributesOf(cls) if opens else OPAQUE
