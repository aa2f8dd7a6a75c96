"""Types that need a word of their own, by name, so that no library is imported for them.

What has a method `to` that is right needs no entry. These are the ones whose `to` would change the caller's object or
leave a part behind, and some that have none.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from samedevice.trees.attributes import AttributesOf
from samedevice.trees.kinds import ATOM, Container, Get, Kind
from samedevice.trees.path import Step, attribute, item

__all__ = ["instead_of_to", "without_to"]


class _Wrapped(AttributesOf):
    """UserDict, UserList and tokenizer batches: an inner `data` that is the object itself to its user.

    Source: transformers, `BatchEncoding.to` and `BatchFeature.to`, 5.24: both change the object that they are called
    on, and leave some nested values where they are.
    """

    def __init__(self, cls: type) -> None:
        super().__init__(cls, transparent="data")

    build = Container.build

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        super().finish(new, obj, get)
        if new.data is obj.data:
            new.data = copy.copy(obj.data)


class _PydanticModel(AttributesOf):
    """The fields lie in `__dict__`, private and extra ones in dicts in slots, which no two models may share."""

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        super().finish(new, obj, get)
        for _, member, value in self._set_slots(new):
            if isinstance(value, (dict, set)):
                member.__set__(new, value.copy())


class _Transform(AttributesOf):
    """A transform of torch.distributions keeps a weak reference to its inverse, which must not be the original's.

    Source: torch/distributions/transforms.py, `Transform.__getstate__`, 2.6 to 2.13, does the same for copies.
    """

    build = Container.build

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        super().finish(new, obj, get)
        new.__dict__["_inv"] = None


class _PackedSequence(Container):
    """`batch_sizes` stays: it must be on the CPU wherever the data is.

    Source: torch/nn/utils/rnn.py, `PackedSequence.to`, 2.6 to 2.13.
    """

    _MOVED = ("data", "sorted_indices", "unsorted_indices")

    def children(self, obj: Any) -> Iterable[Any]:
        return [getattr(obj, name) for name in self._MOVED]

    def steps(self, obj: Any) -> Iterable[Step]:
        return map(attribute, self._MOVED)

    def needed(self, obj: Any) -> Iterable[Any]:
        return self.children(obj)

    def begin(self, obj: Any, get: Get) -> Any:
        data, order, inverse = (get(id(child), child) for child in self.children(obj))
        return tuple.__new__(type(obj), (data, obj.batch_sizes, order, inverse))


class _Graph(Container):
    """PyG's `Data`, `HeteroData`, `Batch` …: the values in their stores.

    Source: torch_geometric/data/data.py and storage.py, 2.8: `Data.to` changes the caller's object and hides errors.
    """

    def children(self, obj: Any) -> Iterable[Any]:
        return [value for _, _, value in self._values(obj)]

    def steps(self, obj: Any) -> Iterable[Step | None]:
        for store, name, _ in self._values(obj):
            key = getattr(store, "_key", None)
            yield attribute(name) if key is None else item((*key, name) if isinstance(key, tuple) else (key, name))

    def begin(self, obj: Any, get: Get) -> Any:
        return copy.copy(obj)

    def finish(self, new: Any, obj: Any, get: Get) -> None:
        for old_store, new_store in zip(obj.stores, new.stores, strict=True):
            for name, value in list(old_store.items()):
                if get(id(value), value) is not value:
                    new_store[name] = get(id(value), value)

    def _values(self, obj: Any) -> Iterator[tuple[Any, str, Any]]:
        for store in obj.stores:
            for name, value in store.items():
                yield store, name, value


_Entry: TypeAlias = "Kind | type[AttributesOf]"

_BEFORE_TO: dict[str, _Entry] = {
    "torch.Size": ATOM,
    "torch.nn.utils.rnn.PackedSequence": _PackedSequence(),
    "torch_geometric.data.data.BaseData": _Graph(),
    "transformers.feature_extraction_utils.BatchFeature": _Wrapped,
    "transformers.tokenization_utils_base.BatchEncoding": _Wrapped,
}
_AFTER_TO: dict[str, _Entry] = {
    "argparse.Namespace": AttributesOf,
    "collections.UserDict": _Wrapped,
    "collections.UserList": _Wrapped,
    "pydantic.main.BaseModel": _PydanticModel,
    "pydantic.v1.main.BaseModel": _PydanticModel,
    "torch.distributions.distribution.Distribution": AttributesOf,
    "torch.distributions.transforms.Transform": _Transform,
    "types.SimpleNamespace": AttributesOf,
}


def instead_of_to(cls: type) -> Kind | None:
    """What `cls` is although it may have a method `to`, where it or a base has an entry; else None."""
    return _look_up(cls, _BEFORE_TO)


def without_to(cls: type) -> Kind | None:
    """What `cls` is when it has no method `to`, where it or a base has an entry; else None."""
    return _look_up(cls, _AFTER_TO)


def _look_up(cls: type, entries: dict[str, _Entry]) -> Kind | None:
    for base in cls.__mro__:
        found = entries.get(f"{base.__module__}.{base.__qualname__}")
        if found is not None:
            return found(cls) if isinstance(found, type) else found
    return None
