"""Objects opened by their attributes: dataclasses, attrs classes, namespaces, and what a list subclass has besides.

Attributes are read from `__dict__` and from slots and written the same way, below `__getattr__`, `__setattr__`,
properties and `__init__`. So frozen classes can be rebuilt, fields with `init=False` and attributes outside the fields
come along, and no `__post_init__` runs twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import MemberDescriptorType
from typing import Any

from samedevice.trees.kinds import Container, Get
from samedevice.trees.path import Step, attribute

__all__ = ["AttributesOf", "empty", "has_attributes", "is_python_class"]

_HEAP_TYPE = 1 << 9
"""`Py_TPFLAGS_HEAPTYPE`: set for classes made by a `class` statement."""


def is_python_class(cls: type) -> bool:
    """Whether a `class` statement made it, rather than C code."""
    return bool(cls.__flags__ & _HEAP_TYPE)


def empty(cls: type) -> Any:
    """A new instance on which no code of the class has run: neither `__new__` nor `__init__` of a Python class."""
    return _native(cls).__new__(cls)


def _native(cls: type) -> Any:
    return next(base for base in cls.__mro__ if not is_python_class(base))


def has_attributes(cls: type) -> bool:
    """Whether instances can have attributes of their own, in a `__dict__` or in slots."""
    return bool(cls.__dictoffset__ or _slots(cls))


def _slots(cls: type) -> dict[str, MemberDescriptorType]:
    """The slots of all bases, by the names that reach them from outside: `__x` is `_Base__x`."""
    return {
        name: member
        for base in reversed(cls.__mro__)
        if "__slots__" in vars(base)
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    }


class AttributesOf(Container):
    """The objects of one class, opened by their attributes."""

    def __init__(self, cls: type, *, transparent: str | None = None) -> None:
        """Look the slots of `cls` up once; the attribute named `transparent` has no step of its own in a path."""
        self._cls = cls
        self._slots = _slots(cls)
        self._has_dict = bool(cls.__dictoffset__)
        self._native = _native(cls)
        self._transparent = transparent

    def children(self, obj: Any) -> Iterable[Any]:
        """The values of `__dict__` and of the slots that are set."""
        if not self._slots:
            return obj.__dict__.values() if self._has_dict else ()
        return [value for _, value in self.items(obj)]

    def steps(self, obj: Any) -> Iterable[Step | None]:
        """`.name` for each."""
        return (None if name == self._transparent else attribute(name) for name, _ in self.items(obj))

    def begin(self, obj: Any, get: Get) -> Any:
        """An empty instance."""
        return self._native.__new__(self._cls)

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        """Set every attribute, below any `__setattr__`."""
        if self._has_dict:
            new.__dict__.update({name: get(id(value), value) for name, value in obj.__dict__.items()})
        for _, member, value in self._set_slots(obj) if self._slots else ():
            member.__set__(new, get(id(value), value))

    def build(self, obj: Any, children: list[Any]) -> Any:
        """Both steps at once."""
        if self._slots or self._native is not object:
            return super().build(obj, children)
        new: Any = object.__new__(self._cls)
        object.__setattr__(new, "__dict__", dict(zip(obj.__dict__, children, strict=True)))
        return new

    def items(self, obj: Any) -> Iterator[tuple[str, Any]]:
        """The name and value of each attribute that is set."""
        if self._has_dict:
            yield from obj.__dict__.items()
        for name, _, value in self._set_slots(obj):
            yield name, value

    def _set_slots(self, obj: Any) -> Iterator[tuple[str, MemberDescriptorType, Any]]:
        for name, member in self._slots.items():
            try:
                value = member.__get__(obj)
            except AttributeError:
                continue
            yield name, member, value
