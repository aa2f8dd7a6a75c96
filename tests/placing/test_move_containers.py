"""What becomes of each kind of container. Each entry of KINDS is a row of the table in docs/moving.md."""

from __future__ import annotations

from collections import Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from collections.abc import Mapping
from types import MappingProxyType

import pytest
import torch

from samedevice import move_to_device

KINDS = []
ROWS: list[tuple[str, str]] = []


def kind(name, becomes):
    """Add a test and its row: the kind of data, and what it becomes."""

    def add(test):
        KINDS.append(pytest.param(test, id=name))
        ROWS.append((name, becomes))
        return test

    return add


KEPT = "the same type, its tensors moved"


def t(*size):
    return torch.ones(size or (2,))


def is_moved(moved, original):
    return moved.device.type == "meta" and original.device.type == "cpu" and moved.shape == original.shape


def moved(obj):
    """Move to meta, and make sure that a move to where everything is already gives the very same object."""
    assert move_to_device(obj, "cpu") is obj
    new = move_to_device(obj, "meta")
    assert type(new) is type(obj)
    assert new is not obj
    return new


@kind("dict", KEPT)
def _():
    data = {"a": t(), "b": {"c": t(), "d": 1}}
    new = moved(data)
    assert list(new) == ["a", "b"]
    assert is_moved(new["a"], data["a"])
    assert is_moved(new["b"]["c"], data["b"]["c"])
    assert new["b"]["d"] == 1


@kind("dict with keys of any type", "the same; keys stay as they are, tensors too")
def _():
    key = t()
    data = {1: t(), ("a", 2): t(), None: t(), key: t()}
    new = moved(data)
    assert list(new)[:3] == [1, ("a", 2), None]
    assert list(new)[3] is key
    assert all(value.is_meta for value in new.values())


@kind("list", KEPT)
def _():
    data = [t(), [t(), "x"]]
    new = moved(data)
    assert is_moved(new[0], data[0])
    assert is_moved(new[1][0], data[1][0])


@kind("OrderedDict", KEPT + ", in its order")
def _():
    data = OrderedDict(a=t(), b=1)
    data.move_to_end("a")
    new = moved(data)
    assert list(new) == ["b", "a"]
    new.move_to_end("b")
    assert list(new) == ["a", "b"]
    assert is_moved(new["a"], data["a"])


@kind("defaultdict", KEPT + ", with its factory")
def _():
    data = defaultdict(list, a=[t()])
    new = moved(data)
    assert new["missing"] == []
    assert is_moved(new["a"][0], data["a"][0])
    assert "missing" not in data


@kind("Counter", "the same counts")
def _():
    data = {"count": Counter(a=2), "x": t()}
    assert moved(data)["count"] is data["count"]
    weights = Counter(a=t())
    assert is_moved(moved(weights)["a"], weights["a"])


@kind("UserDict", KEPT)
def _():
    data = UserDict(a=t(), b=[t()])
    new = moved(data)
    assert is_moved(new["a"], data["a"])
    new["c"] = 1
    assert "c" not in data


@kind("UserList", KEPT)
def _():
    data = UserList([t(), 1])
    assert is_moved(moved(data)[0], data[0])


@kind("MappingProxyType", "a read-only view of a new dict")
def _():
    data = MappingProxyType({"a": t(), "b": 1})
    new = moved(data)
    assert is_moved(new["a"], data["a"])
    assert new["b"] == 1


class Named(Mapping):
    def __init__(self, name, values):
        self.name = name
        self._values = dict(values)

    def __getitem__(self, key):
        return self._values[key]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)


@kind("a Mapping with a constructor of its own", "the same type, opened by its attributes; no `__init__` runs")
def _():
    data = Named("train", {"a": t()})
    new = moved(data)
    assert new.name == "train"
    assert is_moved(new["a"], data["a"])


class Tagged(dict):
    def __init__(self, required, **values):
        super().__init__(**values)
        self.tag = required

    def __setitem__(self, key, value):
        raise AssertionError("ran again")


@kind("dict subclass with attributes", "the same type; tensors in attributes are moved too")
def _():
    data = Tagged(["tag", t()], a=t())
    new = moved(data)
    assert new.tag[0] == "tag"
    assert is_moved(new.tag[1], data.tag[1])
    assert is_moved(new["a"], data["a"])


@kind("tuple", KEPT)
def _():
    data = (t(), 1, (t(),))
    new = moved(data)
    assert is_moved(new[0], data[0])
    assert is_moved(new[2][0], data[2][0])


@kind("empty containers", "the very same object")
def _():
    data = [{}, [], (), set(), frozenset(), deque(), OrderedDict()]
    assert move_to_device(data, "meta") is data
    assert all(new is old for new, old in zip(moved([data, t()])[0], data, strict=True))


Boxes = namedtuple("Boxes", ["corners", "scores"])


class Labelled(Boxes):
    pass


@kind("namedtuple, also with attributes", "the same type and fields, attributes moved too")
def _():
    data = Boxes(t(4), [t()])
    new = moved(data)
    assert is_moved(new.corners, data.corners)
    assert is_moved(new.scores[0], data.scores[0])
    labelled = Labelled(t(), t())
    labelled.extra = t()
    new = moved(labelled)
    assert is_moved(new.corners, labelled.corners)
    assert is_moved(new.extra, labelled.extra)


@kind("torch.return_types.max", KEPT)
def _():
    data = torch.ones(3, 2).max(dim=0)
    new = moved(data)
    assert is_moved(new.values, data.values)
    assert is_moved(new.indices, data.indices)


@kind("torch.Size", "the very same object")
def _():
    size = torch.Size([2, 3])
    assert moved([size, t()])[0] is size


@kind("set of tensors", KEPT)
def _():
    data = {t(1), t(2)}
    new = moved(data)
    assert sorted(x.shape[0] for x in new) == [1, 2]
    assert all(x.is_meta for x in new)
    assert not any(x.is_meta for x in data)


@kind("frozenset of tensors", KEPT)
def _():
    new = moved(frozenset({t(1), t(2)}))
    assert sorted(x.shape[0] for x in new) == [1, 2]
    assert all(x.is_meta for x in new)


@kind("deque", KEPT + ", with its maxlen")
def _():
    data = deque([t(), 1], maxlen=3)
    new = moved(data)
    assert new.maxlen == 3
    assert is_moved(new[0], data[0])


class Typed(list):
    def __init__(self, kind, values):
        super().__init__(values)
        self.kind = kind

    def append(self, value):
        raise AssertionError("ran again")

    extend = append


@kind("list subclass with a constructor of its own", "the same type with its attributes; no `__init__` runs")
def _():
    data = Typed("boxes", [t(), t()])
    new = moved(data)
    assert new.kind == "boxes"
    assert [is_moved(a, b) for a, b in zip(new, data, strict=True)] == [True, True]


class Pair(tuple):
    __slots__ = ()

    def __new__(cls, left, right):
        return super().__new__(cls, (left, right))


@kind("tuple subclass with a constructor of its own", "the same type; no `__new__` runs")
def _():
    data = Pair(t(), "b")
    assert is_moved(moved(data)[0], data[0])


class Slotted(dict):
    __slots__ = ("__hidden", "extra", "unset")

    def __init__(self):
        self.__hidden = t()
        self.extra = 1

    def hidden(self):
        return self.__hidden


@kind("container subclass with slots", "slots are moved as attributes are")
def _():
    data = Slotted()
    new = moved(data)
    assert is_moved(new.hidden(), data.hidden())
    assert new.extra == 1
    assert not hasattr(new, "unset")


@pytest.mark.parametrize("test", KINDS)
def test_kind(test):
    test()


def test_the_documentation_says_the_same(documented_rows):
    assert documented_rows("Containers") == ROWS
