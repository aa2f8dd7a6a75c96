"""What goes wrong while watching is no business of the program that is watched."""

import pytest
import torch
from torch import nn

from samedevice.tracing.watch import watch


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_parameter_that_has_no_sizes_moves_as_ever():
    net = nn.Module()
    net.rows = nn.Parameter(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]))
    with watch() as watching:
        net.to(torch.float64)
    assert net.rows.dtype == torch.float64
    assert watching.report.findings == ()


def test_a_module_whose_contents_cannot_be_read_moves_as_ever():
    class Odd(torch.Tensor):
        @property
        def layout(self):
            raise ValueError("no layout")

    net = nn.Linear(2, 2)
    net._parameters["weight"] = torch.ones(2, 2).as_subclass(Odd)
    with watch():
        assert net.double() is net
