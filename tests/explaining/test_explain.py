"""The wall around explaining: it never raises, never runs the user's code, and leaves nothing behind."""

import gc
import json
import weakref

import pytest
import torch

from samedevice.explaining import explain as explain_module
from samedevice.explaining.explain import explain
from samedevice.faults import Fault, FaultOperand, attach_fault
from samedevice.findings import Report

MESSAGE = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"


def refuse(*tensors, devices=("cuda:0", "cpu"), operation="aten::add"):
    """What a device would do, without one: raise with the operands attached."""
    error = RuntimeError(MESSAGE)
    operands = tuple(
        FaultOperand(name, weakref.ref(tensor), device, tuple(tensor.shape), str(tensor.dtype))
        for name, tensor, device in zip(("self", "other"), tensors, devices, strict=True)
    )
    attach_fault(error, Fault(operation, operands))
    raise error


def caught(function, *arguments):
    with pytest.raises(Exception) as info:
        function(*arguments)
    return info.value


def test_what_is_no_device_fault_is_none():
    assert explain(ValueError("x")) is None
    assert explain(RuntimeError()) is None
    assert explain(RuntimeError(3, "y")) is None


def test_a_fault_alone_is_enough():
    def step(weights, inputs):
        return refuse(weights, inputs)

    finding = explain(caught(step, torch.zeros(2), torch.zeros(3)))
    assert finding.operation == "aten::add"
    assert finding.culprit.shape == (3,)
    assert [one.device for one in finding.operands] == ["cuda:0", "cpu"]


def test_a_fault_wrapped_by_a_framework_is_found():
    def step():
        try:
            refuse(torch.zeros(2), torch.zeros(3))
        except RuntimeError as error:
            raise ValueError("training failed") from error

    assert explain(caught(step)).raised.message == MESSAGE


class Hostile(RuntimeError):
    def __str__(self):
        raise AssertionError("__str__ ran")

    def __repr__(self):
        raise AssertionError("__repr__ ran")

    @property
    def message(self):
        raise AssertionError("a property ran")


class HostileLocal:
    def __getattr__(self, name):
        raise AssertionError("__getattr__ ran")

    def __eq__(self, other):
        raise AssertionError("__eq__ ran")

    def __bool__(self):
        raise AssertionError("__bool__ ran")

    __hash__ = None


def test_nothing_of_the_users_runs():
    def step(hostile):
        entries = [hostile, {"k": hostile}]  # noqa: F841
        raise Hostile(MESSAGE)

    assert explain(caught(step, HostileLocal())) is not None


def test_no_tensor_outlives_the_explanation():
    def step():
        kept = torch.zeros(3)
        step.watched = weakref.ref(kept)
        return refuse(torch.zeros(2), kept)

    error = caught(step)
    finding = explain(error)
    del error
    gc.collect()
    assert step.watched() is None
    assert finding.culprit.name == "kept"


def test_no_value_and_no_other_variable_is_told():
    def step():
        password = "hunter2"  # noqa: F841
        secret = torch.tensor([1234.5, 6789.25])
        return refuse(torch.zeros(2), secret)

    text = Report(findings=(explain(caught(step)),)).to_json()
    told = json.loads(text)["findings"][0]
    told.pop("location")
    told["culprit"].pop("source", None)
    assert "hunter2" not in json.dumps(told)
    assert "1234.5" not in json.dumps(told)
    assert "password" not in json.dumps(told)


def test_a_failure_inside_falls_back_to_the_message(monkeypatch):
    def broken(*arguments):
        raise KeyError("inside")

    monkeypatch.setattr(explain_module, "gather", broken)
    finding = explain(RuntimeError(MESSAGE))
    assert (finding.cause, finding.raised.message, finding.location) == ("other", MESSAGE, None)
    assert explain(ValueError("mine")) is None
    raised = explain(caught(lambda: refuse(torch.zeros(2), torch.zeros(3))))
    assert raised.operation == "aten::add"
    assert raised.location.function == "refuse"


def test_the_exception_is_left_as_it_was():
    error = caught(lambda: refuse(torch.zeros(2), torch.zeros(3)))
    before = error.__traceback__, error.__context__, error.args
    explain(error)
    assert (error.__traceback__, error.__context__, error.args) == before


def test_a_deep_traceback_and_a_wide_model_are_quick_enough_to_look_at():
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(1, 1)) for _ in range(250)))

    def deep(level, x):
        return deep(level - 1, x) if level else refuse(model[0][0].weight, x)

    finding = explain(caught(deep, 200, torch.zeros(3)))
    assert (finding.culprit.shape, finding.culprit.name) == ((3,), "x")
