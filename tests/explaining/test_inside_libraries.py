"""A library computes from what the user's line gave it, and is refused: the name is that of what was given."""

import pytest
import torch
from torch import nn

import samedevice


def explained(call):
    with samedevice.simulate("cuda"), pytest.raises(RuntimeError), samedevice.watch() as watching:
        call()
    (finding,) = watching.report.findings
    return finding.code, finding.culprit.name


def test_an_entry_of_a_batch_that_is_given_whole():
    def call():
        model = nn.Sequential(nn.Softmax(-1), nn.Linear(3, 1)).cuda()
        batch = {"input": torch.ones(2, 3)}
        return model(**batch)

    assert explained(call) == ("SD108", 'batch["input"]')


def test_a_view_of_it_that_was_copied():
    def call():
        model = nn.Sequential(nn.Flatten(0, 1), nn.Softmax(-1), nn.Linear(3, 1)).cuda()
        batch = {"input": torch.ones(3, 2, 4).mT}
        return model(input=batch["input"][..., :3])

    assert explained(call) == ("SD108", 'batch["input"]')


def test_a_weight_that_a_parametrization_computes():
    def call():
        model = nn.Sequential(nn.Linear(3, 3), nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))).cuda()
        optimizer = torch.optim.SGD(model.parameters())
        model[1].cpu()
        output = model(torch.ones(2, 3, device="cuda"))
        return optimizer, output

    assert explained(call) == ("SD102", "model[1]")
