"""Operators that call functions: their Python is run, so each operator in it is seen and has a gradient."""

import warnings

import pytest
import torch

from samedevice.simulation.calls import torch_version

CUDA = torch.device("cuda:0")


@pytest.mark.usefixtures("cuda2")
class TestCond:
    def test_takes_the_branch_on_the_device(self):
        x = torch.ones(2, device="cuda", requires_grad=True)
        y = torch.cond(x.sum() > 1, lambda a: a * 3, lambda a: a, (x,))
        y.sum().backward()
        assert (y.device, y.tolist(), x.grad.device, x.grad.tolist()) == (CUDA, [3.0, 3.0], CUDA, [3.0, 3.0])

    def test_refuses_what_is_elsewhere_inside(self):
        x, constant = torch.ones(2, device="cuda"), torch.ones(2)
        with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu!"):
            torch.cond(x.sum() > 1, lambda a: a + constant, lambda a: a, (x,))

    def test_in_a_loop(self):
        from torch._higher_order_ops.while_loop import while_loop

        count, x = torch.zeros((), dtype=torch.int64, device="cuda"), torch.ones(2, device="cuda")
        _, y = while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (count, x))
        assert (y.device, y.tolist()) == (CUDA, [8.0, 8.0])


@pytest.mark.skipif(torch_version() < (2, 7), reason="up to 2.6 its masks assign a number under vmap")
def test_flex_attention_trains_on_the_device(cuda2):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    query = torch.randn(1, 1, 128, 16, device="cuda", requires_grad=True)
    mask = create_block_mask(lambda batch, head, q, k: q >= k, None, None, 128, 128, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is slow without a compiler
        result = flex_attention(query, query, query, block_mask=mask)
    result.sum().backward()
    assert result.device == query.grad.device == CUDA
