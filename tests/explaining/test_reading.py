"""Looking at the user's objects never runs the user's code."""

from collections import OrderedDict, UserDict, defaultdict, namedtuple

import pytest
import torch
from torch import nn

from samedevice.explaining.reading import MISSING, attribute, item, members


class Hostile:
    """Whatever is asked of it raises."""

    def __init__(self):
        object.__setattr__(self, "kept", 7)

    @property
    def computed(self):
        raise AssertionError("a property ran")

    def __getattr__(self, name):
        raise AssertionError("__getattr__ ran")

    def __getattribute__(self, name):
        raise AssertionError("__getattribute__ ran")

    def __getitem__(self, key):
        raise AssertionError("__getitem__ ran")

    def __eq__(self, other):
        raise AssertionError("__eq__ ran")

    def __hash__(self):
        raise AssertionError("__hash__ ran")

    def __repr__(self):
        raise AssertionError("__repr__ ran")

    def __iter__(self):
        raise AssertionError("__iter__ ran")


def test_nothing_of_a_hostile_object_runs():
    hostile = Hostile()
    assert attribute(hostile, "kept") == 7
    assert attribute(hostile, "computed") is MISSING
    assert attribute(hostile, "unknown") is MISSING
    assert item(hostile, 0) is MISSING
    assert list(members(hostile)) == [("attribute", "kept", 7)]


class HostileDict(dict):
    def __getitem__(self, key):
        raise AssertionError("__getitem__ ran")

    def items(self):
        raise AssertionError("items ran")

    def __missing__(self, key):
        raise AssertionError("__missing__ ran")


class HostileList(list):
    def __getitem__(self, key):
        raise AssertionError("__getitem__ ran")

    def __iter__(self):
        raise AssertionError("__iter__ ran")


def test_subclasses_of_containers_are_read_below_their_methods():
    assert item(HostileDict(a=1), "a") == 1
    assert item(HostileDict(a=1), "b") is MISSING
    assert list(members(HostileDict(a=1))) == [("item", "a", 1)]
    assert item(HostileList([5]), 0) == 5
    assert list(members(HostileList([5]))) == [("item", 0, 5)]


def test_a_strangers_key_is_not_compared():
    class Key:
        def __hash__(self):
            return hash("a")

        def __eq__(self, other):
            raise AssertionError("__eq__ ran")

    assert item({Key(): 1, "b": 2}, "a") is MISSING


Point = namedtuple("Point", "x y")


class Slotted:
    __slots__ = ("unset", "x")

    def __init__(self):
        self.x = 3


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [(Point(1, 2), "y", 2), (Slotted(), "x", 3), (Slotted(), "unset", MISSING), (type("C", (), {"k": 4})(), "k", 4)],
)
def test_attributes_without_a_dict(owner, name, value):
    assert attribute(owner, name) is value


@pytest.mark.parametrize(
    ("owner", "key", "value"),
    [
        (OrderedDict(a=1), "a", 1),
        (defaultdict(list, a=1), "b", MISSING),
        (UserDict(a=1), "a", 1),
        ([1, 2], -1, 2),
        ((1, 2), 5, MISSING),
        ({(1, "a"): 3}, (1, "a"), 3),
        ("text", 0, MISSING),
    ],
)
def test_items_of_standard_containers(owner, key, value):
    assert item(owner, key) is value


def test_a_default_dict_gains_no_entry():
    table = defaultdict(list)
    item(table, "a")
    assert table == {}


def test_a_module_shows_parameters_buffers_and_children_apart_from_attributes():
    net = nn.Sequential(nn.Linear(2, 2))
    net.register_buffer("mean", torch.zeros(1))
    net.table = torch.ones(1)
    kinds = {key: kind for kind, key, _ in members(net)}
    assert kinds == {"0": "submodule", "mean": "buffer", "table": "attribute"}
    assert item(net, 0) is item(net, -1) is net[0]
    assert attribute(net, "mean") is net.mean


def test_an_entry_is_found_by_a_parameter_as_key():
    p = nn.Parameter(torch.zeros(1))
    assert item({p: 1}, p) == 1


def test_a_gradient_is_read_of_leaves_only():
    p = nn.Parameter(torch.zeros(1))
    p.grad = torch.ones(1)
    assert attribute(p, "grad") is p.grad
    assert attribute(p * 2, "grad") is MISSING  # asking a non-leaf would warn
