"""What a type is to a tree, asked once a type: built in, registered by the user, known by name, or told by its shape.

`KINDS[type(obj)]` is the answer. `register_container` lets a user open a class of their own.
"""

from __future__ import annotations

import enum
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar, overload

from samedevice.errors import UsageError
from samedevice.texts import say
from samedevice.trees.attributes import AttributesOf, has_attributes, is_python_class
from samedevice.trees.kinds import ATOM, LEAF, OPAQUE, Container, Get, Kind
from samedevice.trees.path import Step, attribute
from samedevice.trees.standard import standard
from samedevice.trees.third_party import instead_of_to, without_to

__all__ = ["KINDS", "is_tensor_or_module", "register_container", "unregister_container"]

Class = TypeVar("Class", bound=type)

_ATOMS = (
    *(str, bytes, bytearray, int, float, complex, type(None), type(...), range, slice, memoryview, array),
    *(type, FunctionType, BuiltinFunctionType, MethodType, ModuleType),
)
_MOST_TYPES = 4096
"""Past this many the table begins anew, so that classes made on the fly do not live for ever."""


class _Registered(Container):
    """A class with its user's own functions."""

    def __init__(
        self, children: Callable[[Any], Mapping[str, Any]], rebuild: Callable[[Any, dict[str, Any]], Any]
    ) -> None:
        self._named = children
        self._rebuild = rebuild

    def children(self, obj: Any) -> Iterable[Any]:
        """The parts, which must be the same objects each time: parts made for the occasion could not be recognised.

        Raises:
            UsageError: they are not.
        """
        parts = self._named(obj)
        again = self._named(obj)
        for name, part in parts.items():
            if again[name] is not part and KINDS[type(part)] is not ATOM:
                raise UsageError(
                    say(
                        "the children given for {type} make a new {name!r} each time",
                        type=type(obj).__qualname__,
                        name=name,
                    )
                )
        return parts.values()

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(attribute, self._named(obj))

    def needed(self, obj: Any) -> Iterable[Any]:
        return self.children(obj)

    def begin(self, obj: Any, get: Get) -> Any:
        return self._rebuild(obj, {name: get(id(child), child) for name, child in self._named(obj).items()})


_registered: dict[type, _Registered | None] = {}
"""None: opened by its attributes, each subclass by its own."""


class _Kinds(dict[type, Kind]):
    """The table of kinds, filled as types are met."""

    def __missing__(self, cls: type) -> Kind:
        if len(self) >= _MOST_TYPES:
            self.clear()
        kind = self[cls] = _kind_of(cls)
        return kind


KINDS = _Kinds()


def _kind_of(cls: type) -> Kind:
    for base in cls.__mro__:
        if base in _registered:
            return _registered[base] or AttributesOf(cls)
    if issubclass(cls, _ATOMS):
        return ATOM
    if issubclass(cls, enum.Enum):
        # There is one of each member, even where its class is a dataclass too.
        return OPAQUE
    return instead_of_to(cls) or (LEAF if _moves_itself(cls) else without_to(cls) or standard(cls) or _by_shape(cls))


def is_tensor_or_module(cls: type) -> bool:
    """Whether it is PyTorch's own to move, told by the names of its bases: torch is not imported here."""
    names = (f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__)
    return any(name in ("torch.Tensor", "torch.nn.modules.module.Module") for name in names)


def _moves_itself(cls: type) -> bool:
    """Whether the class has a method `to`; a field of that name, or a proxy that has every name, has none."""
    return callable(next((vars(base)["to"] for base in cls.__mro__ if "to" in vars(base)), None))


def _by_shape(cls: type) -> Kind:
    declared = hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__attrs_attrs__")
    collects = issubclass(cls, (Mapping, Sequence, Set)) and is_python_class(cls) and has_attributes(cls)
    return AttributesOf(cls) if declared or collects else OPAQUE


@overload
def register_container(cls: Class, /) -> Class: ...


@overload
def register_container(
    cls: Class,
    /,
    *,
    children: Callable[[Any], Mapping[str, Any]],
    rebuild: Callable[[Any, dict[str, Any]], Any],
) -> Class: ...


def register_container(
    cls: Class,
    /,
    *,
    children: Callable[[Any], Mapping[str, Any]] | None = None,
    rebuild: Callable[[Any, dict[str, Any]], Any] | None = None,
) -> Class:
    """Have a class of your own opened by `move_to_device`, `check` and all others; subclasses are opened with it.

        @samedevice.register_container
        class Batch:                          # moved attribute by attribute; neither __init__ nor __setattr__ runs
            def __init__(self, images): self.images = images

        samedevice.register_container(        # a class that keeps its data where Python does not see it
            Table, children=lambda table: {"rows": table.rows()}, rebuild=lambda table, new: Table(new["rows"]))

    Args:
        cls: the class. Its own method `to` is no longer called.
        children: the parts of an object by their names, without changing it; asked more than once.
        rebuild: a new object from the original and its new parts, by the same names.

    Returns:
        The class, so that this can decorate it.

    Raises:
        UsageError: the class is registered or built in already, or a tensor or module, or only one of the two functions
            is given.
    """
    if not isinstance(cls, type):
        raise UsageError(say("register_container takes a class, not {value}", value=repr(cls)))
    name = cls.__qualname__
    if cls in _registered:
        raise UsageError(say("{type} is registered already; unregister_container({type}) first", type=name))
    if is_tensor_or_module(cls):
        raise UsageError(say("{type} is a tensor or a module, which moves as PyTorch moves it", type=name))
    if not is_python_class(cls):
        raise UsageError(say("{type} is a type of Python itself, which moves as it always does", type=name))
    if (children is None) != (rebuild is None):
        raise UsageError(say("{type}: children and rebuild go together; give both or neither", type=name))
    _registered[cls] = None if children is None or rebuild is None else _Registered(children, rebuild)
    KINDS.clear()
    return cls


def unregister_container(cls: type) -> None:
    """Take back `register_container(cls)`.

    Args:
        cls: a class that was registered.

    Raises:
        UsageError: it was not.
    """
    if cls not in _registered:
        raise UsageError(say("{type} was not registered", type=cls.__qualname__))
    del _registered[cls]
    KINDS.clear()
