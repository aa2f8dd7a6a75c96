"""Operators whose kernels are Python: what these do is simulated operator by operator."""

import uuid

import pytest
import torch

import samedevice


def defined(schema):
    """A library with one operator, and a name that no other test has."""
    name = f"test_{uuid.uuid4().hex}"
    library = torch.library.Library(name, "DEF")
    library.define(f"f{schema}")
    return library, getattr(torch.ops, name).f


def custom(function, **options):
    return torch.library.custom_op(f"test_{uuid.uuid4().hex}::f", mutates_args=(), **options)(function)


def with_ones(x: torch.Tensor) -> torch.Tensor:
    return x + torch.ones(2, device="cuda")


def with_host_ones(x: torch.Tensor) -> torch.Tensor:
    return x + torch.ones(2)


def on_host(x: torch.Tensor) -> torch.Tensor:
    return x.cpu()


def test_factories_inside_follow_their_device(cuda2):
    made = custom(with_ones)(torch.ones(2, device="cuda"))
    assert made.device == torch.device("cuda:0")
    assert made.tolist() == [2, 2]


def test_a_mix_inside_is_refused(cuda2):
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu"):
        custom(with_host_ones)(torch.ones(2, device="cuda"))


def test_results_are_where_the_kernel_put_them(cuda2):
    assert custom(on_host)(torch.ones(2, device="cuda")).device == torch.device("cpu")


def test_its_gradient_is_simulated_too(cuda2):
    operator = custom(with_ones)
    operator.register_autograd(lambda context, gradient: gradient * torch.ones(2, device="cuda"))
    x = torch.ones(2, device="cuda", requires_grad=True)
    operator(x).sum().backward()
    assert x.grad.device == torch.device("cuda:0")


def test_the_kernel_of_the_operands_device_runs(cuda2):
    library, operator = defined("(Tensor x) -> int")
    library.impl("f", lambda x: 1, "CPU")
    library.impl("f", lambda x: 2, "CUDA")
    assert operator(torch.ones(1)) == 1
    assert operator(torch.ones(1, device="cuda")) == 2


@pytest.mark.parametrize(("key", "device"), [("CPU", "cuda"), ("CUDA", "cpu")])
def test_no_kernel_for_the_operands_device(cuda2, key, device):
    library, operator = defined("(Tensor x) -> int")
    library.impl("f", lambda x: 1, key)
    with pytest.raises(NotImplementedError, match=f"arguments from the '{device.upper()}' backend"):
        operator(torch.ones(1, device=device))


def test_an_error_keeps_the_line_in_the_kernel(cuda2):
    with pytest.raises(RuntimeError) as caught:
        custom(with_host_ones)(torch.ones(2, device="cuda"))
    assert any(entry.name == "with_host_ones" for entry in caught.traceback)


def test_branches_of_cond_are_simulated(cuda2):
    x = torch.ones(3, device="cuda")
    chosen = torch.cond(x.sum() > 0, lambda x: x + torch.ones(3, device="cuda"), lambda x: x.clone(), (x,))
    assert chosen.device == x.device
    with pytest.raises(RuntimeError, match="same device"):
        torch.cond(x.sum() > 0, lambda x: x + torch.ones(3), lambda x: x.clone(), (x,))


def test_fake_tensors_on_a_device_need_no_device(cuda2):
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        x = torch.ones(2, device="cuda", requires_grad=True)
        total = x.sum()
    assert total.device.type == "cuda"
    with pytest.raises(samedevice.NotSimulated, match="fake tensors"), FakeTensorMode():
        torch.ones(2, device="cuda", requires_grad=True).sum().backward()
