"""Rebuilding around new leaves: trees, shared parts, cycles of every kind. No tensor is needed for that."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from samedevice.trees.containers import register_container, unregister_container
from samedevice.trees.replace import PartError, replace, scan


class Leaf:
    """What moves itself."""

    def to(self, device):
        return self


@dataclass(frozen=True)
class Node:
    value: object
    next: object = None


def replaced(obj):
    """`obj` with every leaf replaced by the text "new"."""
    tree = scan(obj)
    return replace(tree, {id(leaf): "new" for leaf in tree.leaves})


def test_scan_finds_containers_inner_first_and_leaves_as_met():
    leaf = Leaf()
    inner = [leaf, "text"]
    outer = {"a": inner, "b": (leaf,)}
    tree = scan(outer)
    assert tree.leaves == [leaf, leaf]
    assert [id(node) for node in tree.nodes] == [id(inner), id(outer["b"]), id(outer)]
    assert not tree.cyclic


@pytest.mark.parametrize("value", [1, "x", None, object(), Leaf])
def test_what_is_no_container_is_its_own_root(value):
    assert replace(scan(value), {}) is value


def test_a_leaf_as_root():
    assert replaced(Leaf()) == "new"


def test_what_no_new_leaf_touches_is_kept():
    kept = [1, [2]]
    data = [kept, Leaf(), kept]
    new = replaced(data)
    assert new[0] is new[2] is kept
    assert new[1] == "new"
    assert isinstance(data[1], Leaf)


def test_a_cycle_through_a_tuple():
    ring = []
    data = (Leaf(), ring)
    ring.append(data)
    new = replaced(data)
    assert new[0] == "new"
    assert new[1][0] is new


def test_a_cycle_through_frozen_dataclasses():
    first = Node(Leaf())
    object.__setattr__(first, "next", Node(Leaf(), first))
    new = replaced(first)
    assert new.next.next is new
    assert (new.value, new.next.value) == ("new", "new")


def test_a_cycle_with_an_untouched_ring_beside_it():
    ring = [1]
    ring.append(ring)
    data = {"ring": ring, "leaf": Leaf()}
    data["self"] = data
    new = replaced(data)
    assert new["ring"] is ring
    assert new["self"] is new


def test_tuples_that_need_each_other_through_a_list():
    ring = []
    inner = (ring, Leaf())
    outer = (inner, ring)
    ring.append((outer, inner))
    new = replaced(outer)
    assert new[1][0][0] is new
    assert new[0] is new[1][0][1]


def test_a_doubly_linked_chain_takes_linear_time():
    first = node = {"leaf": None, "previous": None}
    for _ in range(20_000):
        node["next"] = {"previous": node}
        node = node["next"]
    node["leaf"] = Leaf()
    new = replaced(first)
    assert new["next"]["previous"] is new


class Custom:
    def __init__(self):
        self.part = [Leaf()]


def test_a_cycle_that_cannot_be_begun_is_an_error():
    register_container(Custom, children=lambda custom: {"part": custom.part}, rebuild=lambda custom, new: Custom())
    try:
        data = Custom()
        other = Custom()
        data.part, other.part = other, data
        other.part = (data, Leaf())
        with pytest.raises(PartError) as raised:
            replaced(data)
        assert "must exist before" in str(raised.value.__cause__)
    finally:
        unregister_container(Custom)


def test_the_part_that_could_not_be_rebuilt_is_named():
    def refuse(custom, new):
        raise ValueError("no")

    register_container(Custom, children=lambda custom: {"part": custom.part}, rebuild=refuse)
    try:
        data = [Custom()]
        with pytest.raises(PartError) as raised:
            replaced(data)
        assert raised.value.part is data[0]
    finally:
        unregister_container(Custom)
