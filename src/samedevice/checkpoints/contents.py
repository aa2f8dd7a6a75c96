"""The values that a read checkpoint is made of, and the walk that lists its tensors by key path."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from samedevice.errors import UnsafeCheckpoint
from samedevice.texts import say

__all__ = ["Entry", "Found", "Holder", "Inert", "Storage", "Tensor", "entries", "item_size"]

_SIZES = {
    **dict.fromkeys(("bool", "uint8", "int8", "qint8", "quint8", "bits8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16", "bits16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32", "qint32", "complex32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor in a checkpoint."""

    path: str
    """As code that reaches it from what `torch.load` returns, e.g. `["optimizer"]["state"][0]["exp_avg"]`."""
    device: str | None
    """Where it was saved from, and where it is loaded to without `map_location`; None: the format does not say."""
    shape: tuple[int, ...] | None
    dtype: str
    bytes: int
    """Of its elements; what it views may be larger."""
    storage_bytes: int
    kind: str = "tensor"
    """tensor, parameter or storage."""


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """A stretch of data in the file: compared by identity, since two of the same size are two."""

    dtype: str
    device: str | None
    bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """A tensor, its data unread."""

    storages: tuple[Storage, ...]
    dtype: str
    device: str | None
    shape: tuple[int, ...] | None
    kind: str = "tensor"

    @property
    def bytes(self) -> int:
        """The size of its elements."""
        total = sum(storage.bytes for storage in self.storages)
        if self.shape is None or len(self.storages) != 1:
            return total
        # Not more than there is: expanded tensors have more elements, and some dtypes pack two in a byte.
        return min(total, math.prod(self.shape) * item_size(self.dtype))


class Inert:
    """An object of a class that was not imported: it keeps what the pickle gave it and can do nothing."""

    def __new__(cls, *arguments: Any, **named: Any) -> Inert:
        """Keep the arguments."""
        made = super().__new__(cls)
        made.parts = [*arguments, *named.values()]
        made.items = {}
        return made

    parts: list[Any]
    items: dict[Any, Any]

    def __setstate__(self, state: Any) -> None:
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, Mapping):
                self.items.update({f".{key}": value for key, value in part.items()})
            elif part is not None:
                self.parts.append(part)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Refuse."""
        raise UnsafeCheckpoint(say("it would call a {type} when it is loaded", type=type(self).__name__))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.items[key] = value

    def append(self, value: Any) -> None:
        """As a list takes it."""
        self.parts.append(value)

    add = append

    def extend(self, values: Any) -> None:
        """As a list takes them."""
        self.parts.extend(values)

    update = extend


@dataclass
class Found:
    """What was read: the top object, and the classes that its pickle names."""

    root: Any
    classes: set[str] = field(default_factory=set)


@dataclass
class Holder:
    """Counts each storage once."""

    seen: set[int] = field(default_factory=set)
    bytes: int = 0

    def hold(self, storages: tuple[Storage, ...]) -> None:
        """Count those that are new."""
        for storage in storages:
            if id(storage) not in self.seen:
                self.seen.add(id(storage))
                self.bytes += storage.bytes


def item_size(dtype: str) -> int:
    """Bytes of one element; a dtype that is not known counts as one byte, as the 8-bit floats and quantized ones do."""
    return _SIZES.get(dtype, 1)


def entries(root: Any, holder: Holder) -> Iterator[Entry]:
    """List the tensors below `root` in the order in which they stand, each under the first path that leads to it.

    Args:
        root: what a checkpoint holds.
        holder: adds up the storages.
    """
    pending: list[tuple[str, Any]] = [("", root)]
    seen: set[int] = set()
    while pending:
        path, value = pending.pop()
        if isinstance(value, Tensor | Storage):
            yield _entry(path, value, holder)
        elif id(value) not in seen:
            seen.add(id(value))
            pending += [(path + step, child) for step, child in reversed(list(_children(value)))]


def _children(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Inert):
        yield from _children(value.parts)
        yield from (
            (key, child) if str(key).startswith(".") else (_step(key), child) for key, child in value.items.items()
        )
    elif isinstance(value, Mapping):
        yield from ((_step(key), child) for key, child in value.items())
    elif isinstance(value, list | tuple):
        yield from ((f"[{index}]", child) for index, child in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from (("{…}", child) for child in value)


def _step(key: Any) -> str:
    return f"[{json.dumps(key, ensure_ascii=False) if isinstance(key, str) else repr(key)}]"


def _entry(path: str, value: Tensor | Storage, holder: Holder) -> Entry:
    if isinstance(value, Storage):
        holder.hold((value,))
        return Entry(path, value.device, None, value.dtype, value.bytes, value.bytes, "storage")
    holder.hold(value.storages)
    stored = sum(storage.bytes for storage in value.storages)
    return Entry(path, value.device, value.shape, value.dtype, value.bytes, stored, value.kind)
