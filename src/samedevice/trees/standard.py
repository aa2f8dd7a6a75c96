"""Python's own containers, and subclasses of them: their contents as the base class keeps them, and their attributes.

Contents are read and written with the methods of the base class (`dict.__setitem__`, not the subclass's), so that no
validation, default or counting of a subclass runs a second time: `Counter.update` would add, a typed list would refuse.
Where `children` is the C method itself, no Python frame is made for each container; that is a third of a scan's time.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from itertools import chain
from types import MappingProxyType
from typing import Any

from samedevice.trees.attributes import AttributesOf, empty, has_attributes
from samedevice.trees.kinds import Container, Get
from samedevice.trees.path import Step, attribute, element, item

__all__ = ["standard"]


class _Dict(Container):
    """Exactly `dict`, or the contents of a subclass. Keys stay as they are."""

    children = staticmethod(dict.values)  # type: ignore[assignment]

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(item, dict.keys(obj))

    def begin(self, obj: Any, get: Get) -> Any:
        return empty(type(obj))

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        for key, value in dict.items(obj):
            dict.__setitem__(new, key, get(id(value), value))


class _PlainDict(_Dict):
    def build(self, obj: Any, children: list[Any]) -> Any:
        return dict(zip(obj, children, strict=True))


class _OrderedDict(_Dict):
    """Kept apart since its order lives beside the dict: only its own methods read and write both."""

    children = staticmethod(OrderedDict.values)  # type: ignore[assignment]

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(item, OrderedDict.keys(obj))

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        for key, value in OrderedDict.items(obj):
            OrderedDict.__setitem__(new, key, get(id(value), value))


class _DefaultDict(_Dict):
    def begin(self, obj: Any, get: Get) -> Any:
        new = empty(type(obj))
        new.default_factory = obj.default_factory
        return new


class _List(Container):
    children = staticmethod(list.__iter__)  # type: ignore[assignment]

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(item, range(list.__len__(obj)))

    def begin(self, obj: Any, get: Get) -> Any:
        return empty(type(obj))

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        list.extend(new, [get(id(child), child) for child in list.__iter__(obj)])


class _PlainList(_List):
    def build(self, obj: Any, children: list[Any]) -> Any:
        return children


class _Tuple(Container):
    """Tuples and namedtuples, made below their `__new__`."""

    children = staticmethod(tuple.__iter__)  # type: ignore[assignment]

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(item, range(tuple.__len__(obj)))

    def needed(self, obj: Any) -> Iterable[Any]:
        return tuple.__iter__(obj)

    def begin(self, obj: Any, get: Get) -> Any:
        return tuple.__new__(type(obj), [get(id(child), child) for child in tuple.__iter__(obj)])

    def build(self, obj: Any, children: list[Any]) -> Any:
        return tuple.__new__(type(obj), children)


class _NamedTuple(_Tuple):
    def steps(self, obj: Any) -> Iterable[Step]:
        return map(attribute, type(obj)._fields)


class _StructSequence(_Tuple):
    """What C code returns, `torch.return_types.max` or `os.stat_result`: only a call of the type makes one."""

    def begin(self, obj: Any, get: Get) -> Any:
        return type(obj)([get(id(child), child) for child in obj])

    def build(self, obj: Any, children: list[Any]) -> Any:
        return type(obj)(children)


class _Set(Container):
    children = staticmethod(set.__iter__)  # type: ignore[assignment]

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(element, range(set.__len__(obj)))

    def begin(self, obj: Any, get: Get) -> Any:
        return empty(type(obj))

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        set.update(new, [get(id(child), child) for child in set.__iter__(obj)])


class _FrozenSet(Container):
    children = staticmethod(frozenset.__iter__)  # type: ignore[assignment]

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(element, range(frozenset.__len__(obj)))

    def needed(self, obj: Any) -> Iterable[Any]:
        return frozenset.__iter__(obj)

    def begin(self, obj: Any, get: Get) -> Any:
        return frozenset.__new__(type(obj), [get(id(child), child) for child in frozenset.__iter__(obj)])


class _Deque(Container):
    children = staticmethod(deque.__iter__)  # type: ignore[assignment]

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(item, range(deque.__len__(obj)))

    def begin(self, obj: Any, get: Get) -> Any:
        new = deque.__new__(type(obj))
        # The maximum length can only be given here; a subclass's own __init__ is passed over.
        deque.__init__(new, (), obj.maxlen)
        return new

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        deque.extend(new, [get(id(child), child) for child in deque.__iter__(obj)])


class _MappingProxy(Container):
    """A read-only view of a mapping becomes a read-only view of a new dict."""

    def children(self, obj: Any) -> Iterable[Any]:
        yield from obj.values()

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(item, obj)

    def needed(self, obj: Any) -> Iterable[Any]:
        return self.children(obj)

    def begin(self, obj: Any, get: Get) -> Any:
        new = obj.copy()
        new.update({key: get(id(value), value) for key, value in obj.items()})
        return MappingProxyType(new)


class _WithAttributes(Container):
    """A subclass: the contents of its base, and attributes of its own."""

    def __init__(self, contents: Container, attributes: AttributesOf) -> None:
        self._contents = contents
        self._attributes = attributes

    def children(self, obj: Any) -> Iterable[Any]:
        return chain(self._contents.children(obj), self._attributes.children(obj))

    def steps(self, obj: Any) -> Iterable[Step | None]:
        return chain(self._contents.steps(obj), self._attributes.steps(obj))

    def needed(self, obj: Any) -> Iterable[Any]:
        return self._contents.needed(obj)

    def begin(self, obj: Any, get: Get) -> Any:
        return self._contents.begin(obj, get)

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        self._contents.finish(new, obj, get)
        self._attributes.finish(new, obj, get)


_EXACT: dict[type, Container] = {dict: _PlainDict(), list: _PlainList(), tuple: _Tuple()}
_BASES: dict[type, Container] = {
    # A subclass stands before its base.
    OrderedDict: _OrderedDict(),
    defaultdict: _DefaultDict(),
    dict: _Dict(),
    list: _List(),
    tuple: _Tuple(),
    set: _Set(),
    frozenset: _FrozenSet(),
    deque: _Deque(),
    MappingProxyType: _MappingProxy(),
}


def standard(cls: type) -> Container | None:
    """How to open `cls`, where it is one of Python's own containers or a subclass of one; else None."""
    if cls in _EXACT:
        return _EXACT[cls]
    base = next((base for base in _BASES if issubclass(cls, base)), None)
    if base is None:
        return None
    contents = _tuple_like(cls) if base is tuple else _BASES[base]
    return _WithAttributes(contents, AttributesOf(cls)) if has_attributes(cls) else contents


def _tuple_like(cls: type) -> Container:
    if hasattr(cls, "n_sequence_fields"):
        return _StructSequence()
    return _NamedTuple() if hasattr(cls, "_fields") and hasattr(cls, "_make") else _Tuple()
