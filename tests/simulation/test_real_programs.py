"""What programs of other people's libraries did that simulated runs once got wrong."""

import pytest
import torch
from torch.nn import functional as F

import samedevice


@pytest.mark.parametrize("activation", [F.silu, F.mish])
def test_an_operator_with_a_kernel_of_its_own_beside_a_composite_one_runs_that(activation):
    """`silu_backward` made of other operators rounds otherwise than the CPU's kernel."""

    def gradient(device):
        torch.manual_seed(0)
        x = torch.randn(2, 8, 32).to(device).requires_grad_()
        (activation(x) * torch.randn(2, 8, 32).to(device)).sum().backward()
        return x.grad.cpu()

    plain = gradient("cpu")
    with samedevice.simulate("cuda"):
        assert torch.equal(gradient("cuda"), plain)


class TwoResults(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, first, second):
        ctx.seen.append((str(first.device), str(second.device)))
        return first * 2 + second * 3


@pytest.mark.parametrize("used", [0, 1])
def test_zeros_for_a_result_without_a_gradient_are_where_the_result_is(cuda2, used):
    x = torch.ones(3, device="cuda:1", requires_grad=True)
    results = TwoResults.apply(x)
    results[0].grad_fn.seen = seen = []
    results[used].sum().backward()
    assert seen == [("cuda:1", "cuda:1")]
    assert x.grad.tolist() == [2.0 + used] * 3
    assert x.grad.device == torch.device("cuda:1")
