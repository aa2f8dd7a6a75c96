"""What a type is to a tree, and the registry."""

from __future__ import annotations

import pytest
import torch

import samedevice
from samedevice.errors import UsageError
from samedevice.trees.containers import KINDS, unregister_container
from samedevice.trees.kinds import ATOM, LEAF, OPAQUE, Container
from samedevice.trees.replace import replace, scan


class Base:
    def __init__(self, x):
        self.x = x


class Derived(Base):
    __slots__ = ("y",)

    def to(self, device):
        raise AssertionError("not called once registered")


@pytest.fixture
def registered():
    assert samedevice.register_container(Base) is Base
    yield
    unregister_container(Base)


@pytest.mark.parametrize(
    ("cls", "kind"),
    [
        *[(cls, ATOM) for cls in (str, int, bool, type(None), bytes, range, type, torch.Size)],
        *[(cls, LEAF) for cls in (torch.Tensor, torch.nn.Parameter, torch.nn.Linear)],
        *[(cls, OPAQUE) for cls in (object, torch.device, torch.optim.SGD, type(iter([])))],
    ],
)
def test_kinds(cls, kind):
    assert KINDS[cls] is kind


def test_a_registered_class_and_those_below_it_are_opened(registered):
    assert isinstance(KINDS[Base], Container)
    data = Derived(torch.ones(1))
    data.y = [torch.ones(1)]
    new = samedevice.move_to_device(data, "meta")
    assert type(new) is Derived
    assert new.x.is_meta
    assert new.y[0].is_meta


def test_a_class_is_registered_once(registered):
    with pytest.raises(UsageError, match=r"Base is registered already; unregister_container\(Base\) first"):
        samedevice.register_container(Base)


def test_registration_ends():
    samedevice.register_container(Base)
    unregister_container(Base)
    assert KINDS[Base] is OPAQUE
    with pytest.raises(UsageError, match="Base was not registered"):
        unregister_container(Base)


def test_functions_of_one_s_own():
    samedevice.register_container(Base, children=lambda base: {"x": base.x}, rebuild=lambda base, new: Base(new["x"]))
    try:
        tree = scan([Base(torch.ones(1))])
        assert replace(tree, {id(tree.leaves[0]): "new"})[0].x == "new"
    finally:
        unregister_container(Base)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((dict,), {}, "dict is a type of Python itself"),
        ((3,), {}, "takes a class, not 3"),
        ((Base,), {"children": vars}, "children and rebuild go together"),
    ],
)
def test_what_cannot_be_registered(arguments, options, message):
    with pytest.raises(UsageError, match=message):
        samedevice.register_container(*arguments, **options)
    assert KINDS[Base] is OPAQUE


def test_classes_made_on_the_fly_are_forgotten():
    for index in range(5000):
        KINDS[type(f"Made{index}", (), {})]
    assert len(KINDS) <= 4096
