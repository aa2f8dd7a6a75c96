"""What becomes of each kind of object. Each entry of KINDS is a row of the table in docs/moving.md."""

from __future__ import annotations

import argparse
import dataclasses
from types import SimpleNamespace
from typing import Any

import attrs
import pydantic
import pytest
import torch
from torch import nn

from samedevice import LeftBehind, move_to_device, register_container
from samedevice.errors import MoveError
from samedevice.trees.containers import unregister_container

KINDS = []
ROWS: list[tuple[str, str]] = []
KEPT = "the same type, its tensors moved"


def kind(name, becomes):
    """Add a test and its row: the kind of data, and what it becomes."""

    def add(test):
        KINDS.append(pytest.param(test, id=name))
        ROWS.append((name, becomes))
        return test

    return add


def t(*size):
    return torch.ones(size or (2,))


def is_moved(moved, original):
    return moved.device.type == "meta" and original.device.type == "cpu" and moved.shape == original.shape


def moved(obj):
    assert move_to_device(obj, "cpu") is obj
    new = move_to_device(obj, "meta")
    assert type(new) is type(obj)
    assert new is not obj
    return new


@dataclasses.dataclass
class Plain:
    x: Any
    name: str = "n"


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: Any
    name: str = "n"


@dataclasses.dataclass(slots=True)
class Slots:
    x: Any
    name: str = "n"


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    x: Any
    name: str = "n"


def check_dataclass(cls):
    data = cls(t())
    new = moved(data)
    assert is_moved(new.x, data.x)
    assert new.name == "n"


@kind("dataclass", KEPT)
def _():
    check_dataclass(Plain)


@kind("dataclass frozen", KEPT)
def _():
    check_dataclass(Frozen)


@kind("dataclass with slots", KEPT)
def _():
    check_dataclass(Slots)


@kind("dataclass frozen, with slots", KEPT)
def _():
    check_dataclass(FrozenSlots)


@dataclasses.dataclass
class Late:
    x: Any
    y: Any = dataclasses.field(init=False)


@kind("dataclass, field with `init=False`", "moved like the others")
def _():
    data = Late(t())
    data.y = t()
    assert is_moved(moved(data).y, data.y)


@kind("dataclass, attribute outside the fields", "moved like the fields; one that takes part in autograd too")
def _():
    data = Plain(t())
    data.extra = [t()]
    data.computed = t().requires_grad_() * 2
    new = moved(data)
    assert is_moved(new.extra[0], data.extra[0])
    assert is_moved(new.computed, data.computed)


@dataclasses.dataclass
class Doubling:
    x: Any
    scale: dataclasses.InitVar[int] = 2

    def __post_init__(self, scale):
        self.x = [*self.x, scale]


@kind("dataclass with `__post_init__` and `InitVar`", "neither runs again")
def _():
    data = Doubling([t()], scale=3)
    new = moved(data)
    assert len(new.x) == 2
    assert is_moved(new.x[0], data.x[0])


@attrs.define
class Attrs:
    x: Any = attrs.field()
    __private: int = 3


@attrs.frozen
class AttrsFrozen:
    x: Any


@kind("attrs", KEPT)
def _():
    data = Attrs(t())
    assert is_moved(moved(data).x, data.x)


@kind("attrs frozen", KEPT)
def _():
    data = AttrsFrozen([t()])
    assert is_moved(moved(data).x[0], data.x[0])


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True, extra="allow")
    x: torch.Tensor
    name: str = "n"
    _cache: Any = pydantic.PrivateAttr(default=None)


class FrozenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True, frozen=True)
    x: torch.Tensor


@kind("pydantic model", "the same type; extra and private attributes are moved too, and no validator runs")
def _():
    data = Model(x=t(), more=t())
    data._cache = t()
    new = moved(data)
    assert is_moved(new.x, data.x)
    assert is_moved(new.more, data.more)
    assert is_moved(new._cache, data._cache)
    assert new.model_fields_set == data.model_fields_set
    new.name = "other"
    new._cache = None
    assert "name" not in data.model_fields_set
    assert data._cache is not None
    assert new.model_copy().name == "other"


@kind("pydantic model frozen", KEPT)
def _():
    data = FrozenModel(x=t())
    assert is_moved(moved(data).x, data.x)


class Unknown:
    def __init__(self):
        self.x = t()


@kind("plain object", "the very same object, its tensors left behind; `strict=True` tells")
def _():
    data = [Unknown(), t()]
    assert moved(data)[0] is data[0]
    with pytest.raises(LeftBehind, match=r"data\[0\].x: a tensor on cpu"):
        move_to_device(data, "meta", strict=True)


@kind("plain object of a registered class", KEPT)
def _():
    register_container(Unknown)
    try:
        data = [Unknown(), t()]
        assert is_moved(moved(data)[0].x, data[0].x)
    finally:
        unregister_container(Unknown)


@kind("SimpleNamespace, argparse.Namespace", KEPT)
def _():
    for cls in (SimpleNamespace, argparse.Namespace):
        data = cls(x=t(), n=1)
        assert is_moved(moved(data).x, data.x)


@kind("nn.Module", "the same object, moved in place as `Module.to` does")
def _():
    data = {"model": nn.Linear(2, 2), "x": t()}
    assert move_to_device(data, "cpu") is data
    new = move_to_device(data, "meta")
    assert new["model"] is data["model"]
    assert new["model"].weight.is_meta


@kind("torch.distributions", KEPT + ", with base distributions and transforms")
def _():
    normal = torch.distributions.Normal(t(), t())
    new = moved(normal)
    assert is_moved(new.loc, normal.loc)
    assert new.sample().device.type == "meta"
    scaled = torch.distributions.TransformedDistribution(
        normal, [torch.distributions.AffineTransform(t(), t()), torch.distributions.ExpTransform()]
    )
    inverse = scaled.transforms[0].inv
    new = moved(scaled)
    assert is_moved(new.transforms[0].loc, scaled.transforms[0].loc)
    assert is_moved(new.base_dist.scale, normal.scale)
    assert new.transforms[0].inv.inv is new.transforms[0]
    assert inverse.inv is scaled.transforms[0]


@kind("optimizer", "the very same object: `sync_optimizer` is for it; `strict=True` tells")
def _():
    parameter = nn.Parameter(t())
    optimizer = torch.optim.Adam([parameter])
    data = {"optimizer": optimizer, "x": t()}
    assert moved(data)["optimizer"] is optimizer
    assert optimizer.param_groups[0]["params"][0] is parameter
    assert parameter.is_leaf
    assert not parameter.is_meta
    with pytest.raises(LeftBehind, match="sync_optimizer"):
        move_to_device(data, "meta", strict=True)


class Counting:
    """An object with its own `to`, in the ways that people write one."""

    def __init__(self):
        self.calls = 0
        self.x = t()


class InPlace(Counting):
    def to(self, device, non_blocking=False):
        self.calls += 1
        self.x = self.x.to(device)


class WithoutNonBlocking(Counting):
    def to(self, device):
        self.calls += 1
        new = type(self)()
        new.x = self.x.to(device)
        return new


class Raising(Counting):
    def to(self, device, non_blocking=False):
        self.calls += 1
        raise TypeError("inside")


@kind("an object whose `.to()` returns None", "the same object, moved in place by its own `to`")
def _():
    data = [InPlace()]
    assert move_to_device(data, "meta")[0] is data[0]
    assert data[0].x.is_meta
    assert data[0].calls == 1


@kind("an object whose `.to()` takes no non_blocking", "what its `to` returns, called once")
def _():
    for non_blocking in (False, True):
        data = [WithoutNonBlocking()]
        new = move_to_device(data, "meta", non_blocking=non_blocking)
        assert is_moved(new[0].x, data[0].x)
        assert data[0].calls == 1


@kind("an object whose `.to()` raises", "MoveError with its path, called once")
def _():
    data = {"a": [Raising()]}
    for non_blocking in (False, True):
        data["a"][0].calls = 0
        with pytest.raises(MoveError, match=r'data\["a"\]\[0\], of type Raising'):
            move_to_device(data, "meta", non_blocking=non_blocking)
        assert data["a"][0].calls == 1


class AddressedTo:
    to = "someone"


@kind("an attribute `to` that is no method", "nothing is called")
def _():
    letter = AddressedTo()
    letter.to = lambda device: None
    assert moved([letter, t()])[0] is letter


@kind("a class as a value", "the very same class")
def _():
    assert moved([nn.Linear, t()])[0] is nn.Linear


@kind("BatchEncoding, BatchFeature", "a new one, nested values moved, encodings kept; the caller's stays")
def _():
    transformers = pytest.importorskip("transformers")
    for cls in (transformers.BatchEncoding, transformers.BatchFeature):
        data = cls({"input_ids": t(), "nested": [{"mask": t()}, (t(),)], "n": 1})
        new = moved(data)
        assert is_moved(new["input_ids"], data["input_ids"])
        assert is_moved(new["nested"][0]["mask"], data["nested"][0]["mask"])
        assert is_moved(new["nested"][1][0], data["nested"][1][0])
        assert getattr(new, "encodings", None) is getattr(data, "encodings", None)


@kind("ModelOutput (transformers)", KEPT + ", as items and as attributes")
def _():
    outputs = pytest.importorskip("transformers.modeling_outputs")
    data = outputs.BaseModelOutput(last_hidden_state=t(), hidden_states=(t(), t()))
    new = moved(data)
    assert is_moved(new["last_hidden_state"], data["last_hidden_state"])
    assert new.last_hidden_state is new["last_hidden_state"]
    assert is_moved(new.hidden_states[1], data.hidden_states[1])
    assert list(new) == list(data)


@kind("PyG Data, HeteroData, Batch", "a new one, nested values moved; the caller's stays")
def _():
    data_module = pytest.importorskip("torch_geometric.data")
    data = data_module.Data(x=t(3, 2), edge_index=torch.zeros(2, 4, dtype=torch.long), extra=(t(), [t()]))
    new = moved(data)
    assert is_moved(new.x, data.x)
    assert isinstance(new.extra, tuple)
    assert is_moved(new.extra[1][0], data.extra[1][0])
    hetero = data_module.HeteroData()
    hetero["paper"].x = t(3, 2)
    hetero["paper", "cites", "paper"].edge_index = torch.zeros(2, 4, dtype=torch.long)
    new = moved(hetero)
    assert is_moved(new["paper"].x, hetero["paper"].x)
    assert is_moved(new["paper", "cites", "paper"].edge_index, hetero["paper", "cites", "paper"].edge_index)
    batch = data_module.Batch.from_data_list([data, data])
    assert is_moved(moved(batch).x, batch.x)
    assert moved(batch).num_graphs == 2


@kind("TensorDict", "what its own `to` returns: batch size and names kept")
def _():
    tensordict = pytest.importorskip("tensordict")
    data = tensordict.TensorDict({"a": t(2, 3), "b": {"c": t(2)}}, batch_size=[2], names=["batch"])
    new = move_to_device([data], "meta")[0]
    assert is_moved(new["a"], data["a"])
    assert is_moved(new["b", "c"], data["b", "c"])
    assert (new.batch_size, new.names) == (data.batch_size, data.names)


@kind("tensorclass", "what its own `to` returns")
def _():
    tensordict = pytest.importorskip("tensordict")

    @tensordict.tensorclass
    class Sample:
        x: torch.Tensor
        name: str

    data = Sample(x=t(), name="a", batch_size=[])
    new = move_to_device([data], "meta")[0]
    assert type(new) is Sample
    assert is_moved(new.x, data.x)
    assert new.name == "a"


@pytest.mark.parametrize("test", KINDS)
def test_kind(test):
    test()


def test_the_documentation_says_the_same(documented_rows):
    assert documented_rows("Objects") == ROWS
