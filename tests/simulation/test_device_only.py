"""Operators that only devices have."""

import pytest
import torch
from torch.nn import functional as F

from samedevice.errors import NotSimulated


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("affine", [True, False])
def test_the_parts_of_synchronised_batch_norm_make_batch_norm(cuda2, dtype, affine):
    """Two processes' halves of a batch, put together as `SyncBatchNorm` does, are the whole batch's."""
    x = torch.randn(6, 3, 2, device="cuda", dtype=dtype)
    weight, bias = (torch.randn(3, device="cuda") for _ in range(2)) if affine else (None, None)
    halves = [torch.batch_norm_stats(half, 1e-5) for half in (x[:2], x[2:])]
    means, deviations = (torch.stack(values) for values in zip(*halves, strict=True))
    running = torch.zeros(3, device="cuda"), torch.ones(3, device="cuda")
    counts = torch.tensor([4.0, 8.0], device="cuda")
    mean, invstd = torch.batch_norm_gather_stats_with_counts(x, means, deviations, *running, 0.1, 1e-5, counts)
    y = torch.batch_norm_elemt(x, weight, bias, mean, invstd, 1e-5)

    leaf = x.detach().double().requires_grad_()
    given = [None if value is None else value.double().requires_grad_() for value in (weight, bias)]
    expected_running = torch.zeros(3, device="cuda").double(), torch.ones(3, device="cuda").double()
    expected = F.batch_norm(leaf, *expected_running, *given, True, 0.1, 1e-5)
    close = {"atol": 3e-2, "rtol": 3e-2} if dtype is torch.bfloat16 else {"atol": 1e-4, "rtol": 1e-4}
    torch.testing.assert_close(y.double(), expected, **close)
    for found, wanted in zip(running, expected_running, strict=True):
        torch.testing.assert_close(found.double(), wanted, **close)
    assert (y.dtype, y.device) == (dtype, x.device)

    gradient = torch.randn_like(y)
    expected.backward(gradient.double())
    sums, products, of_weight, of_bias = torch.batch_norm_backward_reduce(
        gradient, x, mean, invstd, weight, True, affine, affine
    )
    of_input = torch.batch_norm_backward_elemt(gradient, x, mean, invstd, weight, sums, products, counts.int())
    torch.testing.assert_close(of_input.double(), leaf.grad, **close)
    if affine:
        torch.testing.assert_close(of_weight.double(), given[0].grad, **close)
        torch.testing.assert_close(of_bias.double(), given[1].grad, **close)
    assert of_input.device == sums.device == x.device


def test_the_others_say_so_in_one_sentence(cuda2):
    x = torch.randn(1, 2, 4, 8, device="cuda")
    with pytest.raises(
        NotSimulated, match=r"^aten::cudnn_convolution has no kernel for the CPU, which computes what a"
    ):
        torch.cudnn_convolution(
            x, torch.randn(2, 2, 1, 1, device="cuda"), (0, 0), (1, 1), (1, 1), 1, False, False, True
        )
    with pytest.raises(NotSimulated, match=r"^aten::_scaled_dot_product_flash_attention has no kernel"):
        torch.ops.aten._scaled_dot_product_flash_attention(x, x, x)
    with pytest.raises(NotImplementedError, match="from the 'CPU' backend"):
        torch.ops.aten._scaled_dot_product_flash_attention(x.cpu(), x.cpu(), x.cpu())
