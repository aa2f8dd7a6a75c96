"""Reads attributes and items of the user's objects by looking, never by calling.

Plain look-ups only: instance dicts, a module's parameters, buffers and submodules, slots, named tuple fields, the
items of the standard containers. Properties, `__getattr__`, `__getitem__` and everything else that could run code of
the user's yield `MISSING`.
"""

from __future__ import annotations

import enum
import itertools
import types
from collections import UserDict
from collections.abc import Iterator
from typing import Any

from samedevice.explaining.live import (
    gradient_of,
    instance_dict,
    is_generator,
    is_instance,
    is_kind,
    is_module,
    is_tensor,
    module_of_class,
    mro_of,
    namespace_of,
)

__all__ = ["MISSING", "attribute", "is_container", "item", "kind_of", "members"]

MISSING: Any = type("Missing", (), {"__repr__": lambda _self: "MISSING"})()
"""What cannot be read without running code."""

# By identity: `in` a tuple of classes would ask a metaclass for its `__eq__`.
_KEYS = frozenset(map(id, (str, int, bool, float, bytes, type(None))))
_OPAQUE = frozenset(
    id(kind)
    for kind in (
        *(types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType, type),
        *(str, bytes, int, float, complex, bool, type(None), types.FrameType, types.TracebackType, types.GeneratorType),
    )
)
_MODULE_SLOTS = ("_parameters", "_buffers", "_modules")
_MODULE_INTERNALS = (
    *_MODULE_SLOTS,
    *("_non_persistent_buffers_set", "_is_full_backward_hook", "_compiled_call_impl", "training"),
)
_MOST_ITEMS = 512
"""A search looks at this many items of one container; what a list of a million holds is told by its beginning."""
_MOST_KEYS = 100_000
"""A look-up by key compares this many keys, since it may not use their hashes."""


def attribute(obj: object, name: str) -> Any:
    """The value of `obj.name` where plain look-up finds it, else `MISSING`."""
    if is_kind(obj, type):
        return _of_class(obj, name)
    own = instance_dict(obj)
    found = _entry(own, name)
    if found is not MISSING:
        return found
    if is_module(obj):
        for slot in _MODULE_SLOTS:
            held = own.get(slot)
            found = _entry(held, name) if is_kind(held, dict) else MISSING
            if found is not MISSING:
                return found
    if is_tensor(obj):
        return _of_tensor(obj, name)
    return _class_attribute(obj, name)


def item(obj: object, key: Any) -> Any:
    """The value of `obj[key]` for the standard containers and a module's children, else `MISSING`."""
    if is_module(obj):
        return _child(obj, key)
    if is_kind(obj, dict):
        return _entry(obj, key)
    if is_kind(obj, list) or is_kind(obj, tuple):
        return _element(obj, key)
    data = instance_dict(obj).get(_wrapped(obj))
    return _entry(data, key) if is_kind(data, dict) else MISSING


def members(obj: object) -> Iterator[tuple[str, Any, Any]]:
    """(kind, key, value) of everything that plain look-up finds inside `obj`.

    Args:
        obj: any object.

    Yields:
        `kind` is "parameter", "buffer", "submodule", "attribute" or "item"; `key` the attribute's name or item's key.
    """
    if _is_opaque(obj) or is_tensor(obj) or is_generator(obj):
        return
    own = instance_dict(obj)
    if is_module(obj):
        yield from _module_members(own)
    elif is_kind(obj, dict):
        yield from (("item", key, value) for key, value in _first(dict.items(obj)))
    elif is_kind(obj, tuple) and _fields(obj):
        yield from (("attribute", name, value) for name, value in zip(_fields(obj), _sequence(obj), strict=False))
    elif is_kind(obj, list) or is_kind(obj, tuple):
        yield from (("item", index, value) for index, value in _first(enumerate(_sequence(obj))))
    elif is_kind(own.get(wrapped := _wrapped(obj)), dict):
        yield from (("item", key, value) for key, value in _first(dict.items(own[wrapped])))
        own = {name: value for name, value in own.items() if name != wrapped}
    if not is_module(obj):
        yield from (("attribute", name, value) for name, value in _first(own.items()) if type(name) is str)
        yield from (("attribute", name, value) for name, value in _slots(obj))


def _wrapped(obj: object) -> str:
    """The attribute in which a mapping that is no dict keeps its dict; "" where it is none."""
    if is_kind(obj, UserDict):
        return "data"
    return "_tensordict" if is_instance(obj, "tensordict", "TensorDict") else ""


def _is_opaque(obj: object) -> bool:
    return id(type(obj)) in _OPAQUE or is_kind(obj, type) or is_kind(obj, types.ModuleType)


def is_container(obj: object) -> bool:
    """Whether `obj` is a list, a tuple or a dict, of any class."""
    return is_kind(obj, list) or is_kind(obj, tuple) or is_kind(obj, dict)


def kind_of(owner: object, key: object) -> str:
    """How `owner` holds `key`: "parameter", "buffer", "submodule" or "attribute"."""
    own = instance_dict(owner)
    if is_module(owner):
        for slot, kind in zip(_MODULE_SLOTS, ("parameter", "buffer", "submodule"), strict=True):
            held = own.get(slot)
            if is_kind(held, dict) and _entry(held, key) is not MISSING:
                return kind
    return "attribute"


def _of_tensor(tensor: object, name: str) -> Any:
    if name == "data":
        return tensor  # for every question asked here: the same storage, the same device
    gradient = gradient_of(tensor) if name == "grad" else None
    return MISSING if gradient is None else gradient


def _module_members(own: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for slot, kind in zip(_MODULE_SLOTS, ("parameter", "buffer", "submodule"), strict=True):
        held = own.get(slot)
        if is_kind(held, dict):
            yield from ((kind, name, value) for name, value in dict.items(held) if value is not None)
    for name, value in own.items():
        if type(name) is str and name not in _MODULE_INTERNALS and "_hooks" not in name:
            yield "attribute", name, value


def _of_class(kind: type, name: str) -> Any:
    """A plain attribute of a class; a member of an enum."""
    for base in mro_of(kind):
        members = namespace_of(base).get("_member_map_") if is_kind(kind, enum.EnumMeta) else None
        if is_kind(members, dict) and name in members:
            return dict.__getitem__(members, name)
        if name in namespace_of(base):
            return _plain(namespace_of(base)[name])
    return MISSING


def _class_attribute(obj: object, name: str) -> Any:
    for base in mro_of(type(obj)):
        if name not in namespace_of(base):
            continue
        found = namespace_of(base)[name]
        if is_kind(found, types.MemberDescriptorType):
            try:
                return found.__get__(obj, type(obj))
            except (AttributeError, TypeError):
                return MISSING
        if is_kind(obj, tuple) and name in _fields(obj):
            return _element(obj, _fields(obj).index(name))
        return _plain(found)
    return MISSING


def _plain(found: Any) -> Any:
    """What a class holds under a name, unless it is a descriptor, which only running it would evaluate."""
    descriptor = any("__get__" in namespace_of(base) for base in mro_of(type(found)))
    return MISSING if descriptor else found


def _fields(obj: object) -> tuple[str, ...]:
    """The names of a named tuple's fields; () for other tuples."""
    spaces = map(namespace_of, mro_of(type(obj)))
    found = next((space["_fields"] for space in spaces if "_fields" in space), ())
    return found if type(found) is tuple and all(type(name) is str for name in found) else ()


def _slots(obj: object) -> Iterator[tuple[str, Any]]:
    for base in mro_of(type(obj)):
        if module_of_class(base) in ("builtins", "torch._C"):
            continue
        for name, found in list(namespace_of(base).items()):
            if is_kind(found, types.MemberDescriptorType):
                value = _class_attribute(obj, name)
                if value is not MISSING:
                    yield name, value


def _child(module: object, key: Any) -> Any:
    own = instance_dict(module)
    for slot in ("_modules", "_parameters"):
        held = own.get(slot)
        if not is_kind(held, dict):
            continue
        if type(key) is int and key < 0:
            key += len(held)
        found = _entry(held, str(key)) if type(key) is int or type(key) is str else MISSING
        if found is not MISSING:
            return found
    return MISSING


def _entry(mapping: dict[Any, Any], key: Any) -> Any:
    plain = _is_plain_key(key)
    # One by one: a look-up by hash could call a stranger's `__eq__`.
    try:
        for known, value in itertools.islice(dict.items(mapping), _MOST_KEYS):
            if known is key or (plain and type(known) is type(key) and _is_plain_key(known) and known == key):
                return value
    except RuntimeError:  # another thread changed the dict meanwhile
        pass
    return MISSING


def _element(sequence: list[Any] | tuple[Any, ...], key: Any) -> Any:
    if type(key) is not int:
        return MISSING
    read: Any = list.__getitem__ if is_kind(sequence, list) else tuple.__getitem__
    try:
        return read(sequence, key)
    except IndexError:
        return MISSING


def _is_plain_key(key: object) -> bool:
    return id(type(key)) in _KEYS or (type(key) is tuple and len(key) < 16 and all(map(_is_plain_key, key)))


def _sequence(obj: list[Any] | tuple[Any, ...]) -> list[Any] | tuple[Any, ...]:
    """The elements, below a subclass's own `__iter__`."""
    read: Any = list.__getitem__ if is_kind(obj, list) else tuple.__getitem__
    found: list[Any] | tuple[Any, ...] = read(obj, slice(_MOST_ITEMS))
    return found


def _first(pairs: Any) -> list[tuple[Any, Any]]:
    try:
        return list(itertools.islice(pairs, _MOST_ITEMS))
    except RuntimeError:  # another thread changed the dict meanwhile
        return []
