"""The whole flow at once, on simulated CUDA."""

from __future__ import annotations

import functools
from collections import OrderedDict

import pytest
import torch
from torch import nn

import samedevice
from samedevice import MoveError, UnavailableDevice, UnknownDevice, unify


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.pe = torch.ones(2)

    def forward(self, x):
        return self.linear(x) + self.pe


def step(model, optimizer, criterion, batch):
    optimizer.zero_grad()
    criterion(model(batch["x"]), batch["target"]["label"]).backward()
    optimizer.step()


def training(model=None):
    model = model or nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    batch = OrderedDict(x=torch.randn(3, 2), target={"label": torch.tensor([0, 1, 1])})
    return model, batch, torch.optim.Adam(model.parameters()), nn.CrossEntropyLoss(weight=torch.ones(2))


def test_training_goes_on_after_the_whole_flow_has_moved():
    with samedevice.simulate("cuda:2"):
        model, batch, optimizer, criterion = training()
        step(model, optimizer, criterion, batch)
        parameters = list(model.parameters())
        report, moved = unify("cuda:1", model, batch, optimizer, criterion)
        assert report.ok, report
        assert {placement.device for placement in report.placements if placement.kind != "host state"} == {"cuda:1"}
        assert all(one is other for one, other in zip(parameters, model.parameters(), strict=True))
        assert type(moved) is OrderedDict
        assert batch["x"].device.type == "cpu"
        assert report.notes == (
            "Moved to cuda:1: model, 9 tensors from cpu.",
            "Moved to cuda:1: criterion, 1 tensor from cpu.",
            "Moved to cuda:1: the batch.",
            "Moved to its parameters: 12 tensors of the optimizer.",
        )
        step(model, optimizer, criterion, moved)


def test_the_second_time_nothing_is_moved():
    with samedevice.simulate("cuda:2"):
        model, batch, optimizer, criterion = training()
        step(model, optimizer, criterion, batch)
        _, moved = unify("cuda", model, batch, optimizer, criterion)
        tensors = [*model.state_dict(keep_vars=True).values(), *criterion.buffers()]
        tensors += [value for state in optimizer.state.values() for value in state.values()]
        report, again = unify("cuda", model, moved, optimizer, criterion)
        after = [*model.state_dict(keep_vars=True).values(), *criterion.buffers()]
        after += [value for state in optimizer.state.values() for value in state.values()]
        assert report.ok
        assert report.notes == ()
        assert again is moved
        assert all(one is other for one, other in zip(tensors, after, strict=True))


def test_what_cannot_be_moved_is_reported_with_the_reason():
    with samedevice.simulate("cuda"):
        model, batch, optimizer, _ = training(Encoder())
        criterion = functools.partial(nn.functional.cross_entropy, weight=torch.ones(2))
        report, _ = unify("cuda", model, batch, optimizer, criterion)
        assert [(f.cause, f.culprit.name, f.severity) for f in report.findings] == [
            ("plain-attribute", "model.pe", "error"),
            ("criterion-not-moved", 'criterion.keywords["weight"]', "error"),
        ]
        assert "no buffer" in report.findings[0].reasons[0]
        assert model.pe.device.type == "cpu"
        assert report.to_mermaid().count(":::failed") == 2


def test_a_plain_attribute_on_the_device_itself_is_no_fault():
    model = Encoder()
    report, _ = unify("cpu", model)
    assert report.ok
    assert report.notes == ("model.pe will not follow a later `.to()`, and is in place now.",)


@pytest.mark.parametrize(
    ("device", "error"), [("gpu", UnknownDevice), ("cuda:7", UnavailableDevice), ("cuda:x", UnknownDevice)]
)
def test_a_bad_device_is_refused_before_anything_moves(device, error):
    with samedevice.simulate("cuda:2"):
        model, batch, optimizer, criterion = training()
        with pytest.raises(error):
            unify(device, model, batch, optimizer, criterion)
        assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}


def test_a_model_on_several_devices_is_left_alone_unless_told_otherwise():
    with samedevice.simulate("cuda:2"):
        model = nn.Sequential(nn.Linear(2, 2, device="cuda:0"), nn.Linear(2, 2, device="cuda:1"))
        report, batch = unify("cuda:0", model, torch.zeros(1, 2))
        assert report.ok
        assert [str(parameter.device) for parameter in model.parameters()] == ["cuda:0"] * 2 + ["cuda:1"] * 2
        assert str(batch.device) == "cuda:0"
        report, _ = unify("cuda:0", model, multi_device=False)
        assert report.ok
        assert {str(parameter.device) for parameter in model.parameters()} == {"cuda:0"}
        left = nn.Sequential(nn.Linear(2, 2, device="cuda:0"), nn.Linear(2, 2))
        unify("cuda:0", left, multi_device=True)
        assert left[1].weight.device.type == "cpu"
        unify("cuda:0", left)
        assert left[1].weight.device.type == "cuda"


def test_several_models_and_optimizers():
    with samedevice.simulate("cuda"):
        models = {"G": nn.Linear(2, 2), "D": nn.Linear(2, 2)}
        optimizers = [torch.optim.SGD(model.parameters(), momentum=0.9) for model in models.values()]
        for model, optimizer in zip(models.values(), optimizers, strict=True):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        report, batch = unify("cuda", models, None, optimizers)
        assert report.ok
        assert batch is None
        assert report.notes == (
            'Moved to cuda:0: model["G"], 2 tensors from cpu.',
            'Moved to cuda:0: model["D"], 2 tensors from cpu.',
            "Moved to its parameters: 4 tensors of the optimizer.",
        )


def test_lengths_stay_for_a_recurrent_model():
    with samedevice.simulate("cuda"):
        batch = {"x": torch.zeros(2, 3), "lengths": torch.tensor([2, 1])}
        report, moved = unify("cuda", nn.GRU(3, 3), batch)
        assert report.ok
        assert moved["x"].device.type == "cuda"
        assert moved["lengths"] is batch["lengths"]
        _, moved = unify("cuda", nn.Linear(3, 3), batch)
        assert moved["lengths"].device.type == "cuda"


class Stubborn(nn.Linear):
    def _apply(self, fn, recurse=True):
        raise RuntimeError("not today")


def test_an_error_half_way_names_the_part_and_leaves_it_as_it_was():
    with samedevice.simulate("cuda"):
        models = {"first": nn.Linear(2, 2), "second": nn.Sequential(nn.Linear(2, 2), Stubborn(2, 2))}
        with pytest.raises(MoveError) as raised:
            unify("cuda", models)
        assert str(raised.value).startswith('model["second"], of type Sequential, could not be moved to cuda:0')
        assert str(raised.value).endswith("RuntimeError: not today")
        assert models["second"][0].weight.device.type == "cpu"
