"""`torch.use_deterministic_algorithms(True)`: what a device refuses, and the CPU does not."""

import re

import pytest
import torch
from torch.nn import functional as F

WORDS = (
    "{} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. You can"
)


@pytest.fixture
def deterministic(cuda2):
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def ones(*shape, device="cuda"):
    return torch.ones(shape, device=device, requires_grad=True)


def places(device):
    return torch.tensor([0, 1], device=device)


REFUSED = {
    "adaptive_avg_pool2d_backward_cuda": lambda d: (
        F.adaptive_avg_pool2d(ones(1, 1, 4, 4, device=d), 2).sum().backward()
    ),
    "max_pool3d_with_indices_backward_cuda": lambda d: F.max_pool3d(ones(1, 1, 4, 4, 4, device=d), 2).sum().backward(),
    "upsample_bicubic2d_backward_out_cuda": lambda d: (
        F.interpolate(ones(1, 1, 4, 4, device=d), scale_factor=2, mode="bicubic").sum().backward()
    ),
    "grid_sampler_2d_backward_cuda": lambda d: (
        F.grid_sample(ones(1, 1, 4, 4, device=d), torch.zeros(1, 2, 2, 2, device=d), align_corners=False)
        .sum()
        .backward()
    ),
    "nll_loss2d_forward_out_cuda_template": lambda d: F.cross_entropy(
        ones(1, 3, 2, 2, device=d), torch.zeros(1, 2, 2, dtype=torch.long, device=d)
    ),
    "embedding_bag_backward_cuda_max": lambda d: (
        F.embedding_bag(places(d), ones(3, 2, device=d), places(d)[:1], mode="max").sum().backward()
    ),
    "_bincount_cuda": lambda d: torch.bincount(places(d), torch.ones(2, device=d)),
    "_histc_cuda with floating point input": lambda d: torch.histc(torch.ones(4, device=d), bins=2, min=0, max=1),
    "median CUDA with indices output": lambda d: torch.ones(4, device=d).median(0),
    "scatter_reduce_cuda_prod_": lambda d: torch.zeros(3, device=d).scatter_reduce(
        0, places(d), torch.ones(2, device=d), reduce="prod"
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kernel", "program"), REFUSED.items(), ids=REFUSED)
def test_a_kernel_without_order_is_refused_on_a_device_alone(deterministic, kernel, program):
    program("cpu")
    with pytest.raises(RuntimeError, match=re.escape(WORDS.format(kernel))):
        program("cuda")
    torch.use_deterministic_algorithms(False)
    program("cuda")


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.bincount(places("cuda")),
        lambda: torch.histc(places("cuda"), bins=2, min=0, max=1),
        lambda: torch.ones(4, device="cuda").median(),
        lambda: F.embedding_bag(places("cuda"), ones(3, 2), places("cuda")[:1]).sum().backward(),
        lambda: torch.zeros(3, device="cuda").scatter_reduce(0, places("cuda"), torch.ones(2, device="cuda"), "amax"),
        lambda: F.interpolate(ones(1, 1, 4, 4), scale_factor=2, mode="bilinear").sum().backward(),
        lambda: F.pad(ones(1, 1, 4, 4), [1] * 4, mode="replicate").sum().backward(),
        lambda: torch.zeros(3, device="cuda").scatter_add(0, places("cuda"), torch.ones(2, device="cuda")),
    ],
)
def test_a_kernel_with_order_runs(deterministic, program):
    program()


def test_a_script_may_ask_for_a_warning(deterministic):
    torch.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match=r"^_bincount_cuda does not have a deterministic implementation") as caught:
        torch.bincount(places("cuda"), torch.ones(2, device="cuda"))
    assert len(caught) == 1
