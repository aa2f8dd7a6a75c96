"""Walking: everything once, with its path, at any depth, and what is opened only on request."""

from __future__ import annotations

from functools import partial

import numpy
import torch

from samedevice.trees.inside import INSIDE
from samedevice.trees.path import Path, attribute
from samedevice.trees.walk import walk


def paths(obj, **options):
    return [str(path) for path, _ in walk(obj, **options)]


def test_in_order_from_the_outside_in():
    x, y = torch.ones(1), torch.ones(1)
    assert [(str(path), value) for path, value in walk({"a": [x, 1], "b": y}) if isinstance(value, torch.Tensor)] == [
        ('batch["a"][0]', x),
        ('batch["b"]', y),
    ]
    assert paths({"a": [x, 1]}) == ["batch", 'batch["a"]', 'batch["a"][0]']


def test_the_root_can_be_a_path():
    assert paths([torch.ones(1)], root=Path("self") / attribute("data")) == ["self.data", "self.data[0]"]


def test_shared_once_and_cycles_ended():
    shared = [torch.ones(1)]
    ring = [shared, shared]
    ring.append(ring)
    assert paths(ring) == ["batch", "batch[0]", "batch[0][0]"]


def test_depth():
    data = torch.ones(1)
    for _ in range(50_000):
        data = {"next": data}
    assert sum(1 for _ in walk(data)) == 50_001


class Holder:
    def __init__(self, **values):
        vars(self).update(values)


class Moving(Holder):
    def to(self, device):
        return self


def test_what_is_opened_only_on_request():
    objects = numpy.array([[None, torch.ones(1)]], dtype=object)
    data = [
        Holder(x=[torch.ones(1)]),
        objects,
        partial(print, torch.ones(1), end=torch.ones(1)),
        Moving(y=torch.ones(1)),
    ]
    assert paths(data) == ["batch", "batch[0]", "batch[1]", "batch[2]", "batch[3]"]
    tensors = [str(path) for path, value in walk(data, kinds=INSIDE) if isinstance(value, torch.Tensor)]
    assert tensors == [
        "batch[0].x[0]",
        "batch[1][(0, 1)]",
        "batch[2].args[0]",
        'batch[2].keywords["end"]',
        "batch[3].y",
    ]
    assert paths(numpy.ones(3), kinds=INSIDE) == ["batch"]


def test_iterators_are_not_consumed():
    batches = iter([1, 2])
    assert paths([batches], kinds=INSIDE) == ["batch", "batch[0]"]
    assert next(batches) == 1
