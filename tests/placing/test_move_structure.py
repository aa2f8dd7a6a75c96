"""Shared parts, cycles, depth, things that are no tensors. Each entry of KINDS is a row of docs/moving.md."""

from __future__ import annotations

import array
import enum
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

from samedevice import LeftBehind, move_to_device

KINDS = []
ROWS: list[tuple[str, str]] = []


def kind(name, becomes):
    """Add a test and its row: the kind of data, and what it becomes."""

    def add(test):
        KINDS.append(pytest.param(test, id=name))
        ROWS.append((name, becomes))
        return test

    return add


def t(*size):
    return torch.ones(size or (2,))


@kind("one tensor twice", "moved once, there twice")
def _():
    x = t()
    new = move_to_device({"a": x, "b": [x]}, "meta")
    assert new["a"] is new["b"][0]
    assert new["a"].is_meta


@kind("one container twice", "rebuilt once, there twice")
def _():
    shared = [t()]
    new = move_to_device((shared, {"again": shared}), "meta")
    assert new[0] is new[1]["again"]
    assert new[0] is not shared


@kind("cycles, through containers of any kind", "closed again")
def _():
    ring = [t()]
    ring.append((ring, {"back": ring}))
    new = move_to_device(ring, "meta")
    assert new[1][0] is new
    assert new[1][1]["back"] is new
    assert ring[1][0] is ring
    assert move_to_device(ring, "cpu") is ring
    empty_ring = []
    empty_ring.append(empty_ring)
    assert move_to_device(empty_ring, "meta") is empty_ring


@kind("depth 100,000", "no recursion")
def _():
    for wrap in (lambda inner: [inner], lambda inner: {"next": inner}, lambda inner: (inner,)):
        data = t()
        for _ in range(100_000):
            data = wrap(data)
        assert move_to_device(data, "cpu") is data
        new = move_to_device(data, "meta")
        for _ in range(100_000):
            new = new["next"] if type(new) is dict else new[0]
        assert new.is_meta


@kind("state dict of an optimizer", "moved; each `step` stays on the CPU unless its group is capturable or fused")
def _():
    parameter = nn.Parameter(t())
    optimizer = torch.optim.Adam([parameter])
    parameter.grad = t()
    optimizer.step()
    state_dict = optimizer.state_dict()
    new = move_to_device({"optimizer": state_dict, "epoch": 1}, "meta")["optimizer"]
    assert new["state"][0]["exp_avg"].is_meta
    assert new["state"][0]["step"] is state_dict["state"][0]["step"]
    state_dict["param_groups"][0]["capturable"] = True
    assert move_to_device(state_dict, "meta")["state"][0]["step"].is_meta


class Colour(enum.IntEnum):
    RED = 1


@kind("None, str, int, float, bool, complex, bytes, bytearray", "the very same object")
def _():
    unchanged(None, "s", 1, 1.5, True, 1j, b"abc", bytearray(b"ab"))


@kind("range, slice, memoryview, array.array", "the very same object")
def _():
    unchanged(range(3), slice(1, 2), memoryview(b"ab"), array.array("f", [1.0]))


@kind("enum, Path, torch.device, torch.dtype, function, module", "the very same object")
def _():
    unchanged(Colour.RED, Path("a"), torch.device("cpu"), torch.float32, len, t, torch)


@kind("numpy array", "the very same array")
def _():
    unchanged(numpy.ones(3), numpy.float64(1))


@kind("numpy array of objects", "the very same array, tensors in it left behind; `strict=True` tells")
def _():
    objects = numpy.array([None, None], dtype=object)
    objects[1] = t()
    unchanged(objects)
    with pytest.raises(LeftBehind, match=r"objects\[1\]: a tensor on cpu"):
        move_to_device(objects, "meta", strict=True)


@kind("generator, iterator", "the very same object, not consumed; `strict=True` tells")
def _():
    batches = (x for x in [t()])
    unchanged(batches)
    with pytest.raises(LeftBehind, match="batches: a generator, which cannot be looked into"):
        move_to_device(batches, "meta", strict=True)
    assert next(batches).device.type == "cpu"


def unchanged(*values):
    for value in values:
        assert move_to_device(value, "meta") is value
        assert move_to_device([value, t()], "meta")[0] is value


@pytest.mark.parametrize("test", KINDS)
def test_kind(test):
    test()


def test_the_documentation_says_the_same(documented_rows):
    assert documented_rows("Structure, and things that are no tensors") == ROWS
