"""A library computes from what the user's line gave it, and is refused: the name is that of what was given."""

import sys
import types

import pytest
import torch
from torch import nn

import samedevice
from samedevice.usercode import is_user_file


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

    assert explained(call)[1] == 'batch["input"]'


def test_a_view_of_it_that_was_copied():
    def call():
        model = nn.Sequential(nn.Flatten(0, 1), nn.Softmax(-1), nn.Linear(3, 1)).cuda()
        batch = {"input": torch.ones(3, 2, 4).mT}
        return model(input=batch["input"][..., :3])

    assert explained(call)[1] == 'batch["input"]'


def test_a_weight_that_a_parametrization_computes():
    def call():
        model = nn.Sequential(nn.Linear(3, 3), nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))).cuda()
        optimizer = torch.optim.SGD(model.parameters())
        model[1].cpu()
        output = model(torch.ones(2, 3, device="cuda"))
        return optimizer, output

    assert explained(call) == ("SD102", "model[1]")


def test_a_layer_by_name_of_a_sequential():
    def call():
        layers = {"first": nn.Linear(3, 3), "last": nn.Linear(3, 3)}
        model = nn.Sequential()
        for name, layer in layers.items():
            model.add_module(name, layer)
        del layers, layer
        model.cuda()
        model.last.cpu()
        return model(torch.ones(2, 3, device="cuda"))

    assert explained(call) == ("SD102", "model.last")


def test_a_layer_deep_inside_with_an_optimizer_beside():
    def call():
        model = nn.Linear(3, 3)
        for _ in range(14):
            model = nn.Sequential(model)
        model = nn.Sequential(model, nn.Linear(3, 3)).cuda()
        optimizer = torch.optim.SGD(model.parameters())
        model[0].cpu()
        output = model(torch.ones(2, 3, device="cuda"))
        return optimizer, output

    assert explained(call) == ("SD102", "model[0]")


def test_an_entry_of_a_tensordict():
    tensordict = pytest.importorskip("tensordict")

    def call():
        model = nn.Linear(3, 3).cuda()
        batch = tensordict.TensorDict({"x": torch.ones(2, 3)}, batch_size=[2])
        module = tensordict.nn.TensorDictModule(model, in_keys=["x"], out_keys=["y"])
        return module(batch)

    assert explained(call)[1] == 'batch["x"]'


def test_a_library_that_words_the_fault_anew():
    class Metric(nn.Module):
        def __init__(self):
            super().__init__()
            self._defaults = {"total": torch.zeros(())}
            self.total = torch.zeros(3)

    def call():
        metric = Metric()
        try:
            metric.total + torch.ones(3, device="cuda")
        except RuntimeError as error:
            raise RuntimeError("Encountered different devices in metric calculation") from error

    assert explained(call) == ("SD121", "metric.total")


@pytest.mark.parametrize(("name", "own"), [("torch.written_there", False), ("mine.written_there", True)])
def test_a_module_that_a_library_writes_elsewhere_is_not_the_users(tmp_path, monkeypatch, name, own):
    file = tmp_path / "written_there.py"
    module = types.ModuleType(name)
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, name, module)
    assert is_user_file(str(file)) is own
