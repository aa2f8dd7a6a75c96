"""Laws of moving, on made-up nests: the structure stays, what is shared stays shared, both ways give one answer."""

from __future__ import annotations

from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from samedevice import move_to_device
from samedevice.placing.careful_move import careful_move
from samedevice.placing.quick_move import quick_move

META = torch.device("meta")
Point = namedtuple("Point", ["x", "y"])


@dataclass
class Sample:
    value: object


def nests():
    leaves = st.one_of(
        st.builds(lambda n: torch.ones(n), st.integers(0, 3)),
        st.builds(lambda n: torch.ones(n, device="meta"), st.integers(1, 3)),
        st.builds(lambda: torch.ones(1).expand(3)),
        st.integers(),
        st.text(max_size=2),
        st.none(),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.text(max_size=2), inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.builds(Point, inner, inner),
            st.builds(Sample, inner),
            st.lists(inner, max_size=2).map(deque),
            st.dictionaries(st.integers(), inner, max_size=2).map(OrderedDict),
            # The same object twice.
            inner.map(lambda part: [part, {"again": part}]),
        ),
        max_leaves=12,
    )


def parts(obj):
    """What is in nested data, each object by the number of its first appearance."""
    numbers, result = {}, []

    def visit(obj):
        known = id(obj) in numbers
        number = numbers.setdefault(id(obj), len(numbers))
        keep.append(obj)
        result.append((type(obj), number, tuple(obj.shape) if isinstance(obj, torch.Tensor) else None))
        if known or isinstance(obj, (str, int, torch.Tensor)) or obj is None:
            return
        if isinstance(obj, dict):
            result.append(list(obj))
        children = [obj.value] if isinstance(obj, Sample) else obj.values() if isinstance(obj, dict) else obj
        for child in children:
            visit(child)

    keep = []
    visit(obj)
    return result


def tensors(obj):
    if isinstance(obj, torch.Tensor):
        return [obj]
    if isinstance(obj, (str, int)) or obj is None:
        return []
    children = [obj.value] if isinstance(obj, Sample) else obj.values() if isinstance(obj, dict) else obj
    return [tensor for child in children for tensor in tensors(child)]


laws = settings(deadline=None, max_examples=100, derandomize=True)


@laws
@given(nests())
def test_structure_and_sharing_stay(data):
    before = parts(data)
    new = move_to_device(data, "meta")
    assert parts(new) == before
    assert parts(data) == before
    assert all(tensor.is_meta for tensor in tensors(new))


@laws
@given(nests())
def test_moving_twice_changes_nothing_the_second_time(data):
    new = move_to_device(data, "meta")
    assert move_to_device(new, "meta") is new


@laws
@given(nests())
def test_the_quick_way_gives_the_careful_answer(data):
    try:
        quick = quick_move(data, META, False, {})
    except Exception:
        return
    careful = careful_move(data, META, False, {})
    assert parts(quick) == parts(careful)
    assert (quick is data) == (careful is data)


@laws
@given(nests())
def test_the_careful_way_takes_up_what_the_quick_one_moved(data):
    done = {}
    try:
        quick_move(data, META, False, done)
    except Exception:
        before = {id(original): copy for original, copy in done.values()}
        assert parts(careful_move(data, META, False, before)) == parts(careful_move(data, META, False, {}))


def test_what_does_not_change_keeps_its_identity():
    kept, there = {"n": [1, 2]}, [torch.ones(1, device="meta")]
    data = {"x": torch.ones(1), "kept": kept, "there": there}
    new = move_to_device(data, "meta")
    assert new["kept"] is kept
    assert new["there"] is there


def test_shared_parts_without_tensors_do_not_multiply():
    data = [1]
    for _ in range(60):
        data = [data, data]
    assert move_to_device(data, "meta") is data


@pytest.mark.parametrize("count", [3, 200])
def test_many_shared_lists(count):
    shared = [torch.ones(1)]
    new = move_to_device([shared] * count, "meta")
    assert all(part is new[0] for part in new)
