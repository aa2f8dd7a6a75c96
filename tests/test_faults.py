"""The record of a refused operation travels with its exception."""

import copy
import pickle
import weakref

import torch

from samedevice.faults import Fault, FaultOperand, attach_fault, fault_of


def test_an_exception_with_a_fault_can_be_sent_to_another_process():
    tensor = torch.ones(2)
    error = RuntimeError("Expected all tensors to be on the same device")
    attach_fault(error, Fault("aten::add", (FaultOperand("self", weakref.ref(tensor), "cpu", (2,), "torch.float32"),)))
    assert fault_of(pickle.loads(pickle.dumps(error))) == Fault("aten::add")
    assert str(copy.deepcopy(error)) == str(error)
