"""A module that moves what it is given, says so once a line, and can be let alone again."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import samedevice
from samedevice import UsageError, align_inputs


@dataclass(frozen=True)
class Batch:
    image: torch.Tensor
    masks: list


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x, *rest, batch=None, scale=1.0):
        found = [x, *rest, *([batch.image, *batch.masks] if batch else [])]
        assert {tensor.device for tensor in found} == {self.linear.weight.device}
        return self.linear(sum(found)) * scale


@pytest.fixture(autouse=True)
def _simulated():
    with samedevice.simulate("cuda:2"):
        yield


def test_inputs_of_every_kind_arrive_on_the_device():
    model = Model().cuda()
    align_inputs(model)
    batch = Batch(torch.ones(1, 2), [torch.ones(1, 2)])
    with pytest.warns(UserWarning, match="align_inputs") as caught:
        out = model(torch.ones(1, 2), torch.ones(1, 2), batch=batch, scale=2.0)
    assert out.device.type == "cuda"
    assert batch.image.device.type == "cpu"
    (warning,) = caught
    assert str(warning.message) == (
        "Model is on cuda:0 and was given x, args[0], batch.image and 1 more on cpu: moved by align_inputs. "
        "Mend: move them to cuda:0 before the call."
    )
    assert warning.filename == __file__


def test_it_warns_once_for_each_line():
    model = Model().cuda()
    align_inputs(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            model(torch.ones(1, 2))
        model(torch.ones(1, 2))
    assert len(caught) == 2
    assert caught[0].lineno + 1 == caught[1].lineno


def test_it_is_silent_and_changes_nothing_where_inputs_are_in_place():
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, data):
            return data

    model = Keeps().cuda()
    align_inputs(model)
    data = {"x": torch.ones(2, device="cuda"), "n": 3}
    assert model(data) is data


def test_it_can_be_taken_off():
    model = Model().cuda()
    aligned = align_inputs(model)
    aligned.remove()
    aligned.remove()
    assert not model._forward_pre_hooks
    with align_inputs(model) as aligned, pytest.warns(UserWarning, match="was given x on cpu"):
        aligned(torch.ones(1, 2))
    with pytest.raises(AssertionError):
        model(torch.ones(1, 2))


def test_the_handle_stands_for_the_module():
    aligned = align_inputs(Model()).cuda()
    model = align_inputs(Model().cuda())
    assert aligned.training
    assert [name for name, _ in model.named_parameters()] == ["linear.weight", "linear.bias"]
    with pytest.warns(UserWarning, match="was given x on cpu"):
        assert model(torch.ones(1, 2)).device.type == "cuda"
    with pytest.raises(AttributeError):
        model.no_such_thing


def test_it_follows_the_module_to_another_device():
    model = Model().cuda()
    align_inputs(model)
    model.to("cuda:1")
    with pytest.warns(UserWarning, match="on cuda:1 and was given x on cuda:0"):
        assert str(model(torch.ones(1, 2, device="cuda:0")).device) == "cuda:1"


def test_on_several_devices_the_first_parameter_decides():
    class Split(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(2, 2, device="cuda:1")
            self.second = nn.Linear(2, 2, device="cuda:0")

        def forward(self, x):
            return self.second(self.first(x).to("cuda:0"))

    model = Split()
    align_inputs(model)
    with pytest.warns(UserWarning, match="on cuda:1"):
        assert str(model(torch.ones(1, 2)).device) == "cuda:0"


def test_lengths_stay_for_a_recurrent_model():
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(2, 3, batch_first=True)

        def forward(self, x, lengths):
            return self.lstm(pack_padded_sequence(x, lengths, batch_first=True))[0].data

    model = Tagger().cuda()
    align_inputs(model)
    with pytest.warns(UserWarning, match="given x on cpu"):
        assert model(torch.ones(2, 3, 2), torch.tensor([3, 2])).device.type == "cuda"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(torch.ones(2, 3, 2, device="cuda"), torch.tensor([3, 2]))


def test_a_module_without_tensors_takes_what_it_is_given():
    model = nn.Identity()
    align_inputs(model)
    x = torch.ones(2)
    assert model(x) is x


def test_a_copy_is_aligned_too_and_check_believes_it():
    model = copy.deepcopy(align_inputs(Model().cuda()).model)
    assert samedevice.check(model, {"x": torch.ones(2)}).ok
    with pytest.warns(UserWarning, match="was given x on cpu"):
        model(torch.ones(1, 2))


def test_only_modules_can_be_aligned():
    with pytest.raises(UsageError, match="not function"):
        align_inputs(lambda x: x)
