"""All or nothing: what an error says, and that the input is as it was afterwards."""

from __future__ import annotations

import dataclasses
import enum
import unittest.mock

import pytest
import torch
from torch import nn

from samedevice import LeftBehind, MoveError, UnavailableDevice, UnknownDevice, move_to_device
from samedevice.errors import UsageError
from samedevice.trees.containers import register_container, unregister_container


@dataclasses.dataclass
class Target:
    boxes: object


class Unmovable:
    def to(self, device):
        raise ValueError("no way")


class Tracker:
    """Moves in place, as trackers and metrics do."""

    def __init__(self):
        self.total = torch.ones(2)
        self.history = [torch.ones(1), {"last": torch.ones(1)}]
        self.weight = nn.Parameter(torch.ones(1))
        self.device = "cpu"

    def to(self, device):
        self.total = self.total.to(device)
        self.history[1]["last"] = self.history[1]["last"].to(device)
        self.history[0] = self.history[0].to(device)
        self.device = str(device)
        self.moved = True
        return self


def test_the_error_names_the_place_and_chains_the_cause():
    batch = {"targets": [1, 2, 3, Target(Unmovable())]}
    with pytest.raises(MoveError) as raised:
        move_to_device(batch, "meta")
    assert str(raised.value) == (
        'batch["targets"][3].boxes, of type Unmovable, could not be moved to meta; nothing was changed. '
        "ValueError: no way"
    )
    assert isinstance(raised.value, RuntimeError)
    assert isinstance(raised.value.__cause__, ValueError)


def test_a_tensor_that_cannot_move_is_named_too():
    samples = [torch.ones(1, device="meta")]
    with pytest.raises(MoveError, match=r"samples\[0\], on meta, could not be moved to cpu.*Cannot copy out of meta"):
        move_to_device(samples, "cpu")


def test_one_of_several_views_that_cannot_move():
    whole = torch.ones(4, device="meta")
    with pytest.raises(MoveError, match=r"batch\[0\], on meta"):
        move_to_device([whole[:2], whole[1:]], "cpu")


def test_the_path_begins_with_the_caller_s_own_expression():
    self = Target({"x": Unmovable()})
    with pytest.raises(MoveError, match=r'self.boxes\["x"\], of type'):
        move_to_device(self.boxes, "meta")
    with pytest.raises(MoveError, match=r"batch\[0\], of type"):
        move_to_device([Unmovable()], "meta")
    with pytest.raises(MoveError, match="batch, of type"):
        move_to_device(Unmovable(), "meta"), move_to_device(self, "meta")


def test_what_was_moved_in_place_is_put_back():
    model, tracker, parameter = (
        nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)),
        Tracker(),
        nn.Parameter(torch.ones(2)),
    )
    parameter.grad = torch.ones(2)
    weight, running = model[0].weight, model[1].running_mean
    batch = {"x": torch.ones(1), "model": model, "tracker": tracker, "parameter": parameter, "bad": Unmovable()}
    before = dict(batch)
    with pytest.raises(MoveError):
        move_to_device(batch, "meta")
    assert all(batch[key] is before[key] for key in before)
    assert model[0].weight is weight
    assert model[1].running_mean is running
    assert not any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers()))
    assert not tracker.total.is_meta
    assert not tracker.history[0].is_meta
    assert not tracker.history[1]["last"].is_meta
    assert tracker.device == "cpu"
    assert not hasattr(tracker, "moved")
    assert not parameter.is_meta
    assert not parameter.grad.is_meta


def test_out_of_memory_is_still_that():
    class Huge:
        def to(self, device):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    with pytest.raises(torch.OutOfMemoryError, match=r"CUDA out of memory") as raised:
        move_to_device([Huge()], "meta")
    assert isinstance(raised.value, MoveError)


def test_an_interrupt_is_no_move_error():
    class Interrupted:
        def to(self, device):
            raise KeyboardInterrupt

    model = nn.Linear(1, 1)
    with pytest.raises(KeyboardInterrupt):
        move_to_device([model, Interrupted()], "meta")
    assert not model.weight.is_meta


def test_a_bad_device_is_refused_before_anything_moves():
    model = nn.Linear(1, 1)
    with pytest.raises(UnknownDevice, match='Did you mean "cuda"'):
        move_to_device(model, "gpu")
    with pytest.raises((UnavailableDevice), match="Available here: cpu"):
        move_to_device(model, "cuda:99")
    assert model.weight.device.type == "cpu"


def test_a_class_that_cannot_be_rebuilt_is_named():
    class Odd:
        def __init__(self):
            self.x = torch.ones(1)

    def refuse(obj, children):
        raise ValueError("not this one")

    register_container(Odd, children=lambda odd: {"x": odd.x}, rebuild=refuse)
    try:
        with pytest.raises(MoveError, match=r"batch\[0\], of type .*Odd, could not be moved to meta.*not this one"):
            move_to_device([Odd()], "meta")
    finally:
        unregister_container(Odd)


def test_a_class_that_cannot_be_opened_is_named():
    class Odd:
        pass

    register_container(Odd, children=lambda odd: {"x": torch.ones(1)}, rebuild=lambda odd, new: odd)
    try:
        with pytest.raises(MoveError, match="make a new 'x' each time") as raised:
            move_to_device([Odd()], "meta")
        assert isinstance(raised.value.__cause__, UsageError)
    finally:
        unregister_container(Odd)


class Holder:
    def __init__(self, **values):
        vars(self).update(values)


def test_strict_lists_all_that_would_stay_and_moves_nothing():
    model = nn.Linear(1, 1)
    model.table = torch.ones(2)
    batch = {"holder": Holder(x=torch.ones(1), inner=[torch.ones(1)]), "model": model, torch.ones(1): 1}
    with pytest.raises(LeftBehind) as raised:
        move_to_device(batch, "meta", strict=True)
    assert str(raised.value).splitlines()[:5] == [
        "moving to meta would leave behind:",
        "  batch: a key is a tensor on cpu",
        '  batch["holder"].x: a tensor on cpu',
        '  batch["holder"].inner[0]: a tensor on cpu',
        '  batch["model"].table: a tensor on cpu',
    ]
    assert not model.weight.is_meta


def test_strict_is_silent_where_nothing_stays():
    batch = {"x": torch.ones(1), "holder": Holder(x=torch.ones(1, device="meta"), n=1), "path": object(), "n": None}
    assert move_to_device(batch, "meta", strict=True)["x"].is_meta
    assert move_to_device([Holder(model=nn.Linear(1, 1))], "cpu", strict=True)


def test_strict_shortens_a_long_list():
    holders = [Holder(x=torch.ones(1)) for _ in range(14)]
    with pytest.raises(LeftBehind, match="and 4 more"):
        move_to_device(holders, "meta", strict=True)


def test_non_blocking_is_passed_on_where_it_is_safe():
    asked = []

    class Recording:
        def to(self, device, non_blocking=False):
            asked.append((device.type, non_blocking))
            return self

    for device in ("meta", "cpu"):
        move_to_device([Recording()], device, non_blocking=True)
    assert asked == [("meta", True), ("cpu", False)]
    assert move_to_device([torch.ones(2), torch.ones(1).expand(3)], "meta", non_blocking=True)[1].is_meta


def test_a_device_by_keyword_only():
    class Stored:
        def to(self, *, device, non_blocking=False):
            return device

    assert move_to_device([Stored()], "meta")[0] == torch.device("meta")


class Refuses(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("not to be touched")


class WithoutInit(nn.Module):
    def __init__(self):
        self.__dict__["scale"] = torch.ones(1)


@pytest.mark.parametrize("odd", [torch.ones(1).as_subclass(Refuses), WithoutInit()], ids=["subclass", "module"])
def test_what_cannot_even_be_asked_is_named(odd):
    kind = type(odd).__name__
    with pytest.raises(MoveError, match=rf'batch\["a"\]\[1\], of type {kind}, could not be moved to meta'):
        move_to_device({"a": [torch.ones(1), odd]}, "meta")


class Constant(enum.Enum):
    EYE = torch.eye(2)


@dataclasses.dataclass
class Shape:
    corners: torch.Tensor


class Figure(Shape, enum.Enum):
    SQUARE = torch.zeros(4)


@pytest.mark.parametrize("member", [Constant.EYE, Figure.SQUARE])
def test_a_member_of_an_enum_stays_the_only_one_of_its_name(member):
    assert move_to_device([member, torch.ones(1)], "meta")[0] is member
    with pytest.raises(LeftBehind, match=r"batch\[0\]\._value_.*: a tensor on cpu"):
        move_to_device([member], "meta", strict=True)


@pytest.mark.parametrize("cls", [torch.Tensor, nn.Parameter, nn.Linear])
def test_tensors_and_modules_cannot_be_registered(cls):
    with pytest.raises(UsageError, match=f"{cls.__name__} is a tensor or a module"):
        register_container(cls)


@pytest.mark.parametrize("spec", [torch.Tensor, nn.Module])
def test_a_mock_that_says_it_is_a_tensor_or_a_module_is_passed_by(spec):
    stand_in = unittest.mock.NonCallableMock(spec=spec)
    assert move_to_device([stand_in, torch.ones(1)], "meta", strict=False)[0] is stand_in
    move_to_device([stand_in, torch.ones(1)], "meta", strict=True)
