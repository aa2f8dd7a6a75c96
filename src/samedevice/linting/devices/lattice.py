"""Joining values: what is known after two branches, or of all items of a list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeGuard

from samedevice.linting.devices.places import CPU, Location, parse_place, resolve
from samedevice.linting.devices.values import (
    NOTHING,
    UNKNOWN,
    Constant,
    Device,
    Either,
    Mapping,
    Module,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["as_place", "is_given", "join", "join_all", "same_place"]

_MOST_OPTIONS = 4
_DEEPEST = 8


def as_place(value: Value) -> Location | None:
    """The place that a value names where PyTorch wants a device, or None."""
    if isinstance(value, Device):
        return value.place
    if isinstance(value, Constant) and isinstance(value.value, str):
        return parse_place(value.value)
    if isinstance(value, Symbol):
        return value.target
    return None


def is_given(value: Value | None) -> TypeGuard[Value]:
    """Whether an argument is there and not `None`, which PyTorch takes for one that is left out."""
    return value is not None and not (isinstance(value, Constant) and value.value is None)


def same_place(a: Location | None, b: Location | None) -> bool:
    """Whether both are known and one place."""
    if a is None or b is None:
        return False
    a, b = resolve(a), resolve(b)
    return a is b or a == b


def join_all(values: Iterable[Value]) -> Value:
    """What is known of every one of `values`."""
    joined: Value | None = None
    for value in values:
        joined = value if joined is None else join(joined, value)
        if joined is UNKNOWN:
            break
    return UNKNOWN if joined is None else joined


def join(a: Value, b: Value, depth: int = 0) -> Value:
    """What is known of a value that is `a` or `b`; of what is nested deeply, nothing.

    Devices are the exception to caution: where one of them is the CPU the other one is meant, because "cuda where
    available, else cpu" is one device as far as a bug on CUDA is concerned.
    """
    if a is b or b is NOTHING:
        return a
    if depth > _DEEPEST:
        return UNKNOWN
    if a is NOTHING:
        return b
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _join_tensors(a, b)
    if isinstance(a, (Module, Either)) and isinstance(b, (Module, Either)):
        return _join_modules(a, b)
    if isinstance(a, Constant) and isinstance(b, Constant) and a.value == b.value and type(a.value) is type(b.value):
        return a
    if isinstance(a, Device | Constant) and isinstance(b, Device | Constant):
        return _join_devices(a, b)
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        return _join_sequences(a, b, depth + 1)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        shared = {key: join(a.entries[key], b.entries[key], depth + 1) for key in a.entries.keys() & b.entries.keys()}
        return Mapping(shared, join(a.element, b.element, depth + 1), a.held, a.node, a.cls)
    return _join_with_none(a, b)


def _join_tensors(a: Tensor, b: Tensor) -> Tensor:
    sources = a.sources | b.sources
    scalar = a.scalar if a.scalar == b.scalar else None
    certain = a.certain and b.certain
    if same_place(a.place, b.place) and a.owner is b.owner:
        # A parameter in one branch and a buffer in the other is registered in both; what is plain in one is not known.
        kind = a.kind if a.kind == b.kind else "buffer"
        if a.kind != b.kind and "plain" in (a.kind, b.kind):
            return Tensor(None, scalar=scalar, certain=certain, sources=sources)
        return replace(a, scalar=scalar, certain=certain, sources=sources, kind=kind)
    return Tensor(None, scalar=scalar, certain=certain, sources=sources)


def _join_modules(a: Module | Either, b: Module | Either) -> Value:
    options = dict.fromkeys(
        [*(a.options if isinstance(a, Either) else (a,)), *(b.options if isinstance(b, Either) else (b,))]
    )
    return Either(tuple(options)) if 1 < len(options) <= _MOST_OPTIONS else UNKNOWN


def _join_devices(a: Device | Constant, b: Device | Constant) -> Value:
    first, second = as_place(a), as_place(b)
    if first is None or second is None:
        return UNKNOWN
    if first == CPU:
        return b
    if second == CPU or same_place(first, second):
        return a
    return Device(None)


def _join_sequences(a: Sequence, b: Sequence, depth: int) -> Sequence:
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        items = tuple(join(x, y, depth) for x, y in zip(a.items, b.items, strict=True))
        return Sequence(items, join_all(items), a.held, a.node, a.mutable)
    # An empty list tells nothing about what a filled one holds.
    if a.items == ():
        return replace(b, items=None)
    if b.items == ():
        return replace(a, items=None)
    return Sequence(None, join(a.element, b.element, depth), a.held, a.node, a.mutable)


def _join_with_none(a: Value, b: Value) -> Value:
    for value, other in ((a, b), (b, a)):
        if isinstance(value, Constant) and value.value is None and isinstance(other, Tensor):
            return replace(other, certain=False)
    return UNKNOWN
