"""Reads attributes and items of the user's objects by looking, never by calling.

Plain look-ups only: instance dicts, a module's parameters, buffers and submodules, slots, named tuple fields, the
items of the standard containers. Properties, `__getattr__`, `__getitem__` and everything else that could run code of
the user's yield `MISSING`.
"""

from __future__ import annotations

import types
from collections import UserDict
from collections.abc import Iterator
from typing import Any

from samedevice.explaining.live import gradient_of, instance_dict, is_generator, is_kind, is_module, is_tensor

__all__ = ["MISSING", "attribute", "is_container", "item", "kind_of", "members"]

MISSING: Any = type("Missing", (), {"__repr__": lambda _self: "MISSING"})()
"""What cannot be read without running code."""

_KEYS = (str, int, bool, float, bytes, type(None))
_OPAQUE = (
    *(types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType, type),
    *(str, bytes, int, float, complex, bool, type(None), types.FrameType, types.TracebackType, types.GeneratorType),
)
_MODULE_SLOTS = ("_parameters", "_buffers", "_modules")
_MODULE_INTERNALS = (
    *_MODULE_SLOTS,
    *("_non_persistent_buffers_set", "_is_full_backward_hook", "_compiled_call_impl", "training"),
)
_MOST_ITEMS = 512
"""A search looks at this many items of one container; what a list of a million holds is told by its beginning."""


def attribute(obj: object, name: str) -> Any:
    """The value of `obj.name` where plain look-up finds it, else `MISSING`."""
    own = instance_dict(obj)
    if name in own:
        return own[name]
    if is_module(obj):
        for slot in _MODULE_SLOTS:
            held = own.get(slot)
            if is_kind(held, dict) and name in held:
                return dict.__getitem__(held, name)
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
    data = instance_dict(obj).get("data") if UserDict in type(obj).__mro__ else None
    return _entry(data, key) if is_kind(data, dict) else MISSING


def members(obj: object) -> Iterator[tuple[str, Any, Any]]:
    """(kind, key, value) of everything that plain look-up finds inside `obj`.

    Args:
        obj: any object.

    Yields:
        `kind` is "parameter", "buffer", "submodule", "attribute" or "item"; `key` the attribute's name or item's key.
    """
    if (
        is_tensor(obj)
        or is_generator(obj)
        or type(obj) in _OPAQUE
        or is_kind(obj, type)
        or is_kind(obj, types.ModuleType)
    ):
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
    elif UserDict in type(obj).__mro__ and is_kind(own.get("data"), dict):
        yield from (("item", key, value) for key, value in _first(dict.items(own["data"])))
        own = {name: value for name, value in own.items() if name != "data"}
    if not is_module(obj):
        yield from (("attribute", name, value) for name, value in _first(own.items()))
        yield from (("attribute", name, value) for name, value in _slots(obj))


def _is_opaque(obj: object) -> bool:
    return type(obj) in _OPAQUE or is_kind(obj, type) or is_kind(obj, types.ModuleType)


def is_container(obj: object) -> bool:
    """Whether `obj` is a list, a tuple or a dict, of any class."""
    return is_kind(obj, list) or is_kind(obj, tuple) or is_kind(obj, dict)


def kind_of(owner: object, key: object) -> str:
    """How `owner` holds `key`: "parameter", "buffer", "submodule" or "attribute"."""
    own = instance_dict(owner)
    if is_module(owner):
        for slot, kind in zip(_MODULE_SLOTS, ("parameter", "buffer", "submodule"), strict=True):
            held = own.get(slot)
            if is_kind(held, dict) and key in held:
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
        if name not in _MODULE_INTERNALS and "_hooks" not in name:
            yield "attribute", name, value


def _class_attribute(obj: object, name: str) -> Any:
    for base in type(obj).__mro__:
        if name not in vars(base):
            continue
        found = vars(base)[name]
        if is_kind(found, types.MemberDescriptorType):
            try:
                return found.__get__(obj, type(obj))
            except AttributeError:
                return MISSING
        if is_kind(obj, tuple) and name in _fields(obj):
            return tuple.__getitem__(obj, _fields(obj).index(name))
        return MISSING if hasattr(type(found), "__get__") else found
    return MISSING


def _fields(obj: object) -> tuple[str, ...]:
    """The names of a named tuple's fields; () for other tuples."""
    found = next((vars(base)["_fields"] for base in type(obj).__mro__ if "_fields" in vars(base)), ())
    return found if type(found) is tuple else ()


def _slots(obj: object) -> Iterator[tuple[str, Any]]:
    for base in type(obj).__mro__:
        for name, found in list(vars(base).items()):
            if is_kind(found, types.MemberDescriptorType) and base.__module__ not in ("builtins", "torch._C"):
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
        if type(key) in (int, str) and str(key) in held:
            return dict.__getitem__(held, str(key))
    return MISSING


def _entry(mapping: dict[Any, Any], key: Any) -> Any:
    if is_tensor(key):
        return next((value for known, value in dict.items(mapping) if known is key), MISSING)
    if not _is_plain_key(key):
        return MISSING
    # One by one: a look-up by hash could call a stranger's `__eq__`.
    for known, value in dict.items(mapping):
        if type(known) is type(key) and known == key:
            return value
    return MISSING


def _element(sequence: list[Any] | tuple[Any, ...], key: Any) -> Any:
    if type(key) is not int:
        return MISSING
    try:
        return _sequence(sequence)[key]
    except IndexError:
        return MISSING


def _is_plain_key(key: object) -> bool:
    return type(key) in _KEYS or (type(key) is tuple and all(map(_is_plain_key, key)))


def _sequence(obj: list[Any] | tuple[Any, ...]) -> list[Any] | tuple[Any, ...]:
    """The elements, below a subclass's own `__iter__`."""
    return list.copy(obj) if isinstance(obj, list) else tuple.__getitem__(obj, slice(None))


def _first(pairs: Any) -> list[tuple[Any, Any]]:
    try:
        return [pair for _, pair in zip(range(_MOST_ITEMS), pairs, strict=False)]
    except RuntimeError:  # another thread changed the dict meanwhile
        return []
