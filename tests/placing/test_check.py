"""`check` on live objects: what it finds, what it leaves alone, and that it runs no code of theirs."""

from __future__ import annotations

import copy
import functools
import json
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
import transformers
from torch import nn
from torch.nn.utils import parametrizations, prune
from torch.nn.utils.rnn import pack_sequence

import samedevice
from samedevice import UsageError, check


def found(report):
    return [(finding.cause, finding.culprit.name) for finding in report.findings]


class Table:
    """A helper object, as a sampler or a cache is."""

    __slots__ = ("name", "unset", "weights")

    def __init__(self):
        self.name = "table"
        self.weights = torch.zeros(2)


@dataclass
class Config:
    prior: torch.Tensor


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class Forgetful(nn.Module):
    """Holds everything that `.to()` passes by."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.pe = torch.zeros(5, 2)
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
        self.scales = {"a": nn.Parameter(torch.ones(2)), "b": nn.Parameter(torch.ones(2))}
        self.nested = ({"deep": deque([Pair(torch.zeros(1), torch.zeros(1))])},)
        self.table = Table()
        self.config = Config(torch.zeros(3))
        self.normal = torch.distributions.Normal(torch.zeros(2), torch.ones(2))
        object.__setattr__(self, "teacher", nn.Linear(2, 2))
        self.mask_cache = torch.zeros(2, 2)

    def forward(self, x):
        return self.linear(x)


def test_what_no_to_will_ever_move():
    report = check(Forgetful())
    assert found(report) == [
        ("plain-attribute", "model.pe"),
        ("plain-container", "model.layers"),
        ("plain-container", "model.scales"),
        ("plain-container", "model.nested"),
        ("plain-attribute", "model.table"),
        ("plain-attribute", "model.config"),
        ("plain-attribute", "model.normal"),
        ("second-model-not-moved", "model.teacher"),
        ("stale-cache", "model.mask_cache"),
    ]
    paths = {operand.name for finding in report.findings for operand in finding.operands}
    assert paths == {
        "model.pe",
        *(f"model.layers[{i}].{name}" for i in (0, 1) for name in ("weight", "bias")),
        'model.scales["a"]',
        'model.scales["b"]',
        'model.nested[0]["deep"][0].left',
        'model.nested[0]["deep"][0].right',
        "model.table.weights",
        "model.config.prior",
        "model.normal.loc",
        "model.normal.scale",
        "model.teacher.weight",
        "model.teacher.bias",
        "model.mask_cache",
    }
    assert {finding.severity for finding in report.findings} == {"warning"}


def test_the_line_and_the_edit_of_an_attribute():
    pe, layers = (f for f in check(Forgetful()).findings if f.culprit.name in ("model.layers", "model.pe"))
    source = Path(__file__).read_text().splitlines()
    assert source[pe.culprit.line - 1].strip() == pe.culprit.source == "self.pe = torch.zeros(5, 2)"
    assert pe.culprit.file == __file__
    (edit,) = pe.fix.edits
    assert edit.old == source[edit.line - 1]
    assert edit.new == '        self.register_buffer("pe", torch.zeros(5, 2), persistent=False)'
    (edit,) = layers.fix.edits
    assert edit.new == "        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])"
    assert pe.fix.safe
    assert not layers.fix.safe


def test_after_the_model_has_moved_what_stayed_is_an_error():
    with samedevice.simulate("cuda:2"):
        report = check(Forgetful().to("cuda"))
        assert {finding.severity for finding in report.findings} == {"error"}
        assert {finding.expected_device for finding in report.findings} == {"cuda:0"}
        assert report.findings[0].message == "model.pe is on cpu, the module that holds it is on cuda:0."


def test_an_integer_table_may_serve_as_an_index_from_the_cpu():
    model = nn.Linear(2, 2)
    model.order = torch.arange(2)
    with samedevice.simulate("cuda"):
        (finding,) = check(model.to("cuda")).findings
        assert finding.severity == "warning"


def weight_norm(module):
    with pytest.warns(FutureWarning):
        return nn.utils.weight_norm(module)


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LSTM(2, 3, num_layers=2),
        lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True),
        lambda: nn.BatchNorm2d(3),
        lambda: weight_norm(nn.Linear(2, 2)),
        lambda: nn.utils.spectral_norm(nn.Linear(2, 2)),
        lambda: parametrizations.weight_norm(nn.Linear(2, 2)),
        lambda: prune.l1_unstructured(nn.Linear(4, 4), "weight", 0.5),
        lambda: torch.optim.swa_utils.AveragedModel(nn.Linear(2, 2)),
        lambda: transformers.BertModel(
            transformers.BertConfig(
                hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=20
            )
        ),
        lambda: torch.compile(nn.Linear(2, 2)),
        lambda: torch.jit.trace(nn.Sequential(nn.Linear(2, 2)), torch.zeros(1, 2)),
        lambda: torch.jit.script(nn.Linear(2, 2)),
        lambda: torch.fx.symbolic_trace(nn.Linear(2, 2)),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_modules_that_are_right_are_silent_before_and_after_a_move(make):
    model = make()
    optimizer = torch.optim.AdamW(model.parameters())
    assert found(check(model, optimizer=optimizer)) == []
    with samedevice.simulate("cuda"):
        assert found(check(model.to("cuda"), optimizer=optimizer)) == []


@pytest.mark.filterwarnings("ignore:.*nested tensors.*:UserWarning")
def test_parameters_and_inputs_without_a_shape():
    ragged = [torch.zeros(2), torch.zeros(3)]
    nested = [torch.nested.nested_tensor(ragged, layout=layout) for layout in (torch.strided, torch.jagged)]
    report = check(nn.Sequential(nn.LazyLinear(2)), [*nested, torch.eye(2).to_sparse()])
    assert report.ok
    assert [placement.shape for placement in report.placements] == [(), (), (), (), (2, 2)]


def test_registered_modules_in_a_list_besides_are_no_fault():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model.order = [model[1], model[0]]
    model.tied = {"first": model[0].weight}
    assert check(model).ok


def test_an_object_that_owns_the_model_is_not_part_of_it():
    class Trainer:
        def __init__(self, model):
            self.model = model
            self.losses = [torch.zeros(1000)]

    model = nn.Linear(2, 2)
    model.trainer = Trainer(model)
    assert check(model).ok


def test_a_class_that_moves_its_attributes_itself_is_believed():
    class Metric(nn.Module):
        def __init__(self, works):
            super().__init__()
            self.total = torch.zeros(3)
            self.works = works

        def _apply(self, fn, recurse=True):
            if self.works:
                self.total = fn(self.total)
            return super()._apply(fn, recurse)

    with samedevice.simulate("cuda"):
        for works in (True, False):
            model = nn.Sequential(nn.Linear(2, 2), Metric(works))
            assert check(model).ok
            assert check(model.to("cuda")).ok == works


class Tripwire(nn.Module):
    """Every way in which looking at a module could run its code."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.armed = True

    @property
    def device(self):
        raise AssertionError("a property was called")

    def __getattr__(self, name):
        if self.__dict__.get("armed"):
            raise AssertionError(f"__getattr__({name!r}) was called")
        return super().__getattr__(name)

    def parameters(self, recurse=True):
        raise AssertionError("parameters() was called")

    named_parameters = named_modules = named_buffers = children = modules = parameters


class Watched(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(f"{function} was called")


class Trap:
    def __init__(self):
        self.tensor = torch.zeros(2)

    def __getattribute__(self, name):
        if name in ("__dict__", "__class__"):
            return object.__getattribute__(self, name)
        raise AssertionError(f"{name} was read")


def test_no_code_of_the_users_is_run():
    model = Tripwire()
    model.__dict__["trap"] = Trap()
    model.__dict__["watched"] = torch.zeros(2).as_subclass(Watched)
    report = check(model)
    assert ("plain-attribute", "model.trap") in found(report)
    assert ("plain-attribute", "model.watched") in found(report)


def test_nothing_is_changed():
    model = Forgetful()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.zeros(1, 2)).sum().backward()
    optimizer.step()
    batch = {"x": torch.zeros(2), "y": [torch.zeros(2)]}
    before = {id(value): copy.copy(value) for value in (model.__dict__, optimizer.__dict__, optimizer.state, batch)}
    check(model, batch, optimizer, nn.CrossEntropyLoss(weight=torch.ones(2)))
    for value in (model.__dict__, optimizer.__dict__, optimizer.state, batch):
        assert value.keys() == before[id(value)].keys()
        assert all(value[key] is before[id(value)][key] for key in value)


def test_the_flow_on_a_machine_with_two_devices():
    with samedevice.simulate("cuda:2"):
        model = nn.Sequential(nn.Linear(2, 2))
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.zeros(1, 2)).sum().backward()
        optimizer.step()
        model.to("cuda:1")
        batch = {"image": torch.zeros(2, device="cuda:1"), "targets": [{"boxes": torch.zeros(4)}]}
        report = check(model, batch, optimizer, nn.CrossEntropyLoss(weight=torch.ones(2)))
    assert found(report) == [
        ("nested-batch", 'batch["targets"]'),
        ("criterion-not-moved", "criterion.weight"),
        ("optimizer-state", 'optimizer.state[model[0].weight]["exp_avg"]'),
    ]
    assert {finding.expected_device for finding in report.findings} == {"cuda:1"}
    assert len(report.findings[2].operands) == 4  # exp_avg and exp_avg_sq of weight and bias; `step` is right
    assert not report.ok
    assert report.outcome == "finding"


def test_every_placement_is_listed_by_name():
    model = nn.ModuleDict({"head": nn.Linear(1, 1, bias=False), "2nd": nn.BatchNorm1d(1, affine=False)})
    optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
    model["head"](torch.ones(1, 1)).sum().backward()
    optimizer.step()
    batch = samedevice.Location, {"x": torch.zeros(1, 3)}, pack_sequence([torch.zeros(2, 1)])
    report = check(model, batch, optimizer)
    assert {(placement.path, placement.kind) for placement in report.placements} == {
        ('model["head"].weight', "parameter"),
        ('model["2nd"].running_mean', "buffer"),
        ('model["2nd"].running_var', "buffer"),
        ('model["2nd"].num_batches_tracked', "buffer"),
        ('batch[1]["x"]', "input"),
        ("batch[2].data", "input"),
        ('model["head"].weight', "held parameter"),
        ('optimizer.state[model["head"].weight]["momentum_buffer"]', "state"),
    }
    image = next(placement for placement in report.placements if placement.path == 'batch[1]["x"]')
    assert (image.device, image.shape, image.dtype) == ("cpu", (1, 3), "torch.float32")


def test_step_where_it_must_not_be():
    with samedevice.simulate("cuda"):
        model = nn.Linear(2, 2, device="cuda")
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.zeros(1, 2, device="cuda")).sum().backward()
        optimizer.step()
        assert check(model, optimizer=optimizer).ok
        for state in optimizer.state.values():
            state["step"] = state["step"].to("cuda")
        (finding,) = check(model, optimizer=optimizer).findings
        assert (finding.severity, finding.culprit.name) == ("warning", 'optimizer.state[model.weight]["step"]')
        for group in optimizer.param_groups:
            group["capturable"] = True
        assert check(model, optimizer=optimizer).ok
        for state in optimizer.state.values():
            state["step"] = state["step"].cpu()
        (finding,) = check(model, optimizer=optimizer).findings
        assert (finding.severity, finding.expected_device) == ("error", "cuda:0")


def test_parameters_that_were_replaced_after_the_optimizer_was_made():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = torch.optim.SGD(model.parameters())
    model[1] = nn.Linear(2, 3)
    (finding,) = check(model, optimizer=optimizer).findings
    assert finding.cause == "optimizer-stale-params"
    assert [operand.name for operand in finding.operands] == [
        f'optimizer.param_groups[0]["params"][{i}]' for i in (2, 3)
    ]
    assert "model[1].weight and model[1].bias" in finding.reasons[1]


def test_frozen_parameters_need_no_optimizer_and_two_optimizers_share_a_model():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].requires_grad_(False)
    first, second = (torch.optim.SGD(part.parameters()) for part in model[1:])
    assert check(model, optimizer=[first, second]).ok
    assert found(check(model, optimizer=first)) == [("optimizer-stale-params", "model[2].weight")]
    assert check(optimizer={"first": first}).ok


def test_a_learnable_criterion_shares_the_optimizer():
    model, criterion = nn.Linear(2, 2), nn.PReLU()
    optimizer = torch.optim.SGD([*model.parameters(), *criterion.parameters()])
    assert check(model, None, optimizer, criterion).ok


def test_a_gradient_that_was_left_behind():
    with samedevice.simulate("cuda"):
        model = nn.Linear(2, 2)
        model(torch.zeros(1, 2)).sum().backward()
        for parameter in model.parameters():
            parameter.data = parameter.data.to("cuda")
        assert ("other", "model.weight.grad") in found(check(model))


def test_models_on_several_devices_on_purpose():
    with samedevice.simulate("cuda:2"):
        model = nn.Sequential(nn.Linear(2, 2, device="cuda:0"), nn.Linear(2, 2, device="cuda:1"))
        report = check(model, {"x": torch.zeros(1, 2, device="cuda:0")})
        assert report.ok
        assert report.notes == ("The model is on several devices (cuda:0 and cuda:1); that is taken as on purpose.",)
        assert found(check(model, device="cuda:0", multi_device=False)) == [("split-model", "model[1]")]
        assert found(check(model, {"x": torch.zeros(1, 2)})) == [("input-not-moved", "batch")]
        model[1].register_buffer("late", torch.zeros(2))
        assert found(check(model)) == [("split-model", "model[1].late")]
        model.cpu()[0].to("cuda:0")
        assert found(check(model)) == [("split-model", "model[1]")]
        model.hf_device_map = {"0": 0, "1": "cpu"}
        assert check(model).ok


def test_a_model_that_a_device_map_has_spread():
    accelerate = pytest.importorskip("accelerate")
    with samedevice.simulate("cuda:2"):
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2))
        accelerate.dispatch_model(model, device_map={"0": 0, "1": 1, "2": "cpu"}, main_device=0)
        report = check(model, torch.zeros(1, 2))
        assert report.ok
        assert report.notes == (
            "The model is on several devices (cuda:0, cuda:1 and meta); that is taken as on purpose.",
            "The model moves its inputs itself, so the batch may be anywhere.",
        )
        assert check(model, device="cuda:0").ok


def test_data_parallel_moves_its_inputs_and_wants_its_module_on_the_first_device():
    with samedevice.simulate("cuda:2"):
        model = nn.DataParallel(nn.Linear(2, 2).cuda(0), device_ids=[0, 1])
        assert check(model, torch.zeros(4, 2)).ok
        model.module.to("cuda:1")
        assert found(check(model)) == [("dataparallel-misplaced", "model")]


def test_lengths_stay_on_the_cpu_for_recurrent_models():
    with samedevice.simulate("cuda"):
        batch = {"x": torch.zeros(2, 3, device="cuda"), "lengths": torch.tensor([3, 2])}
        assert check(nn.LSTM(3, 3).cuda(), batch).ok
        assert found(check(nn.Linear(3, 3).cuda(), batch)) == [("nested-batch", 'batch["lengths"]')]
        batch["lengths"] = batch["lengths"].float()
        assert not check(nn.LSTM(3, 3).cuda(), batch).ok


def test_weights_in_a_partial_criterion():
    with samedevice.simulate("cuda"):
        criterion = functools.partial(nn.functional.cross_entropy, weight=torch.ones(2))
        assert found(check(nn.Linear(2, 2).cuda(), criterion=criterion)) == [
            ("criterion-not-moved", 'criterion.keywords["weight"]')
        ]
        (finding,) = check(nn.Linear(2, 2).cuda(), criterion=criterion).findings
        exec(finding.fix.summary, {"criterion": criterion})
        assert check(nn.Linear(2, 2).cuda(), criterion=criterion).ok
        assert check(nn.Linear(2, 2).cuda(), criterion=nn.functional.cross_entropy).ok


def test_third_party_batches_by_the_names_that_their_users_know():
    import tensordict
    import torch_geometric.data

    graph = torch_geometric.data.Data(x=torch.zeros(2, 3), edge_index=torch.zeros(2, 1, dtype=torch.long))
    batch = {
        "graph": graph,
        "td": tensordict.TensorDict({"obs": torch.zeros(2)}, batch_size=[2]),
        "text": transformers.BatchEncoding({"input_ids": torch.zeros(1, 2)}),
    }
    paths = [placement.path for placement in check(batch=batch).placements]
    assert paths == [
        'batch["graph"].x',
        'batch["graph"].edge_index',
        'batch["td"]["obs"]',
        'batch["text"]["input_ids"]',
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": 3}, "model is of type int; give a module, or a list, tuple or dict of modules"),
        ({"model": [nn.ReLU(), "x"]}, "model[1] is of type str; give a module, or a list, tuple or dict of modules"),
        ({"optimizer": "sgd"}, "optimizer is of type str; give an optimizer, or a list, tuple or dict of optimizers"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(UsageError) as raised:
        check(**arguments)
    assert str(raised.value) == message


def test_the_report_prints_in_every_form():
    model = nn.Sequential(nn.Linear(2, 2))
    model.table = torch.zeros(3)
    report = check(model)
    assert "model: 2 parameters on cpu" in str(report)
    assert json.loads(report.to_json())["findings"][0]["culprit"]["name"] == "model.table"
    assert report.to_mermaid().startswith("flowchart LR\n")


def test_without_a_model_the_rest_of_the_batch_is_the_measure():
    with samedevice.simulate("cuda"):
        (finding,) = check(batch=[torch.ones(1), torch.ones(1, device="cuda")]).findings
    assert finding.message == "batch[0] is on cpu, the rest of the batch is on cuda:0."
