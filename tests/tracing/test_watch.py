"""`watch()`: exceptions pass through explained, everything is undone, real operands are attached."""

import pytest
import torch
from torch import nn

from samedevice.faults import fault_of
from samedevice.simulation.simulate import simulate
from samedevice.tracing.watch import watch


def test_the_exception_goes_on_and_its_explanation_is_in_the_report():
    with simulate("cuda"):
        x = torch.zeros(2, device="cuda")
        y = torch.zeros(2)
        with pytest.raises(RuntimeError, match="same device") as info, watch() as watching:
            x + y
        (finding,) = watching.report.findings
    assert info.value.__traceback__ is not None
    assert (finding.culprit.name, finding.cause) == ("y", "factory-default-device")
    assert not watching.report.ok


def test_other_exceptions_are_no_findings():
    with pytest.raises(KeyError), watch() as watching:
        {}["x"]
    assert watching.report.ok


def test_everything_is_put_back():
    before = (
        nn.Module.__dict__["_apply"],
        torch.optim.Optimizer.__dict__["__init__"],
        torch.Tensor.__dict__["__deepcopy__"],
        torch.load,
    )
    with pytest.raises(RuntimeError, match="mine"), watch():
        raise RuntimeError("mine")
    after = (
        nn.Module.__dict__["_apply"],
        torch.optim.Optimizer.__dict__["__init__"],
        torch.Tensor.__dict__["__deepcopy__"],
        torch.load,
    )
    assert before == after
    assert len(torch.utils._python_dispatch._get_current_dispatch_mode_stack()) == 0


def test_a_real_operator_that_refuses_leaves_its_operands():
    with pytest.raises(RuntimeError) as info, watch():
        torch.mm(torch.zeros(2, 3), torch.zeros(2, 3))
    fault = fault_of(info.value)
    assert fault.operation == "aten::mm"
    assert [(one.argument, one.shape) for one in fault.operands] == [("self", (2, 3)), ("mat2", (2, 3))]


def test_training_under_watch_computes_the_same():
    def train():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(net.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        return [parameter.detach().clone() for parameter in net.parameters()]

    plain = train()
    with watch() as watching:
        watched = train()
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    assert watching.report.ok


def test_lazy_layers_are_moved_and_trained_under_watch():
    with simulate("cuda"), watch() as watching:
        net = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.Linear(4, 1)).to("cuda")
        net(torch.zeros(2, 3, device="cuda")).sum().backward()
        torch.optim.SGD(net.parameters(), lr=0.1).step()
    assert watching.report.ok


def test_an_uninitialised_parameter_left_behind_is_explained():
    net = nn.Sequential(nn.LazyLinear(4))
    net(torch.zeros(2, 3))
    with simulate("cuda"), pytest.raises(RuntimeError), watch() as watching:
        net(torch.zeros(2, 3, device="cuda"))
    assert watching.report.findings[0].location is not None
