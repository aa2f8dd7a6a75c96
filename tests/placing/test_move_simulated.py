"""Moving to a device that has memory of its own: values, gradients, what is moved in place, and putting it back."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from samedevice import MoveError, UnavailableDevice, move_to_device, simulate


class Unmovable:
    def to(self, device):
        raise ValueError("no way")


@pytest.fixture(autouse=True)
def two_gpus():
    with simulate("cuda:2"):
        yield


def test_a_name_without_index_is_the_current_device():
    assert move_to_device([torch.ones(1)], "cuda")[0].device == torch.device("cuda:0")
    with torch.cuda.device(1):
        assert move_to_device([torch.ones(1)], "cuda")[0].device == torch.device("cuda:1")


def test_a_device_that_is_not_there():
    with pytest.raises(UnavailableDevice, match="there are 2 cuda devices"):
        move_to_device([torch.ones(1)], "cuda:2")


def test_there_and_back():
    data = {"a": torch.arange(3.0), "b": (torch.ones(2),)}
    there = move_to_device(data, "cuda:1")
    assert move_to_device(there, "cuda:1") is there
    back = move_to_device(there, "cpu")
    assert torch.equal(back["a"], data["a"])
    assert back["b"][0].device.type == "cpu"


def test_views_see_each_other_s_writes():
    x = torch.arange(12.0).view(3, 4)
    rows = move_to_device([*x.unbind(0), x], "cuda")
    rows[3][1, 2] = 100
    assert rows[1][2].item() == 100
    assert x[1, 2].item() == 6
    assert all(row.device.type == "cuda" for row in rows)


def test_gradients_come_back_to_a_leaf():
    leaf = torch.ones(2, requires_grad=True)
    moved = move_to_device({"x": leaf}, "cuda")["x"]
    (moved * 3).sum().backward()
    assert leaf.grad.device.type == "cpu"
    assert leaf.grad.tolist() == [3, 3]


def test_a_parameter_and_a_module_stay_the_same_objects():
    model, parameter = nn.Linear(2, 2), nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    weight = model.weight
    optimizer = torch.optim.SGD([parameter, weight], lr=1.0)
    new = move_to_device({"model": model, "p": parameter, "tied": weight}, "cuda")
    assert new["model"] is model
    assert new["p"] is parameter
    assert new["tied"] is model.weight is weight
    assert {parameter.device.type, weight.device.type, parameter.grad.device.type} == {"cuda"}
    optimizer.step()
    assert parameter.tolist() == [0, 0]


def test_what_was_moved_in_place_is_put_back():
    model, parameter = nn.BatchNorm1d(2), nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    with pytest.raises(MoveError):
        move_to_device([model, parameter, Unmovable()], "cuda")
    assert {tensor.device.type for tensor in (*model.parameters(), *model.buffers())} == {"cpu"}
    assert (parameter.device.type, parameter.grad.device.type) == ("cpu", "cpu")
    assert parameter.tolist() == [1, 1]


def test_the_state_dict_of_an_optimizer_goes_there_without_its_step():
    parameter = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.AdamW([parameter])
    parameter.grad = torch.ones(2)
    optimizer.step()
    state = move_to_device(optimizer.state_dict(), "cuda")["state"][0]
    assert {key: value.device.type for key, value in state.items()} == {
        "step": "cpu",
        "exp_avg": "cuda",
        "exp_avg_sq": "cuda",
    }
