"""Apple's devices: what they alone refuse, in their words (aten/src/ATen/mps and native/mps, 2.6 to 2.14)."""

import numpy as np
import pytest
import torch
from torch import nn

import samedevice
from samedevice.errors import NotSimulated

DOUBLE = (
    "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
    "Please use float32 instead."
)


@pytest.fixture
def mps():
    with samedevice.simulate("mps") as machine:
        yield machine


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, device="mps", dtype=torch.float64),
        lambda: torch.empty(2, device="mps", dtype=torch.float64),
        lambda: torch.rand(2, device="mps", dtype=torch.float64),
        lambda: torch.tensor([1.0], device="mps", dtype=torch.float64),
        lambda: torch.tensor(np.zeros(2), device="mps"),
        lambda: torch.as_tensor(np.zeros(2), device="mps"),
        lambda: torch.from_numpy(np.zeros(2)).to("mps"),
        lambda: torch.zeros(2).to("mps", torch.float64),
        lambda: torch.zeros(2, device="mps").double(),
        lambda: torch.zeros(2, device="mps").to(torch.float64),
        lambda: torch.zeros(2, device="mps").type(torch.float64),
        lambda: torch.zeros(2, device="mps").new_zeros(2, dtype=torch.float64),
        lambda: torch.zeros(2, device="mps").new_tensor([1.0], dtype=torch.float64),
        lambda: torch.zeros_like(torch.zeros(2, device="mps"), dtype=torch.float64),
        lambda: torch.zeros(2, device="mps").sum(dtype=torch.float64),
        lambda: nn.Linear(2, 2).double().to("mps"),
        lambda: nn.Linear(2, 2).to("mps").double(),
        lambda: nn.Linear(2, 2, device="mps", dtype=torch.float64),
        lambda: nn.Linear(2, 2).to("mps", torch.float64),
    ],
)
def test_no_float64(mps, make):
    with pytest.raises(TypeError) as raised:
        make()
    assert str(raised.value) == DOUBLE


def test_no_float64_under_a_default_of_float64(mps):
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(TypeError, match="framework doesn't support float64"):
            torch.zeros(2, device="mps")
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_float64_tensor_elsewhere_is_none_of_its_business(mps):
    x = torch.zeros(2, device="mps")
    assert torch.zeros(2, dtype=torch.float64).double().device.type == "cpu"
    assert x.cpu().double().dtype is torch.float64
    assert (x * torch.tensor(2.0, dtype=torch.float64)).dtype is torch.float32
    assert x.copy_(torch.ones(2, dtype=torch.float64)).tolist() == [1.0, 1.0]
    assert torch.zeros(2, dtype=torch.complex64, device="mps").is_mps


def test_other_devices_have_float64():
    for kind in ("cuda", "xpu"):
        with samedevice.simulate(kind):
            assert torch.zeros(2, device=kind).double().device.type == kind


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda m, c: nn.Linear(2, 2).to("mps")(c), "Tensor for argument input is on cpu but expected on mps"),
        (lambda m, c: nn.Linear(2, 2)(m), "Tensor for argument weight is on cpu but expected on mps"),
        (
            lambda m, c: nn.functional.linear(m, m, torch.zeros(2)),
            "Tensor for argument bias is on cpu but expected on mps",
        ),
        (
            lambda m, c: m @ c,
            "Tensor for argument #2 'mat2' is on CPU, but expected it to be on GPU (while checking arguments for mm)",
        ),
        (
            lambda m, c: torch.mm(c, m),
            "Tensor for argument #1 'mat1' is on CPU, but expected it to be on GPU (while checking arguments for mm)",
        ),
        (
            lambda m, c: torch.addmm(m, m, c),
            "Tensor for argument #3 'mat2' is on CPU, but expected it to be on GPU "
            "(while checking arguments for addmm_out_mps_impl)",
        ),
        (
            lambda m, c: nn.Conv2d(1, 1, 1).to("mps")(c[None, None]),
            "slow_conv2d_forward_mps: input(device='cpu') and weight(device=mps:0')  must be on the same device",
        ),
        (
            lambda m, c: nn.Conv2d(1, 1, 1)(m[None, None]),
            "Input type (MPSFloatType) and weight type (torch.FloatTensor) should be the same",
        ),
        (
            lambda m, c: nn.Embedding(3, 2).to("mps")(torch.tensor([0])),
            "Placeholder storage has not been allocated on MPS device!",
        ),
        (lambda m, c: torch.cat([m, c]), "Placeholder storage has not been allocated on MPS device!"),
        (
            lambda m, c: m + c,
            "Expected all tensors to be on the same device, but found at least two devices, mps:0 and cpu!",
        ),
    ],
)
def test_refusals_in_its_words(mps, call, says):
    m, c = torch.zeros(2, 2, device="mps"), torch.zeros(2, 2)
    with pytest.raises(RuntimeError) as raised:
        call(m, c)
    assert str(raised.value) == says


def test_training_runs(mps):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2)).to("mps")
    optimizer = torch.optim.AdamW(model.parameters())
    x, y = torch.randn(3, 1, 4, 4, device="mps"), torch.tensor([0, 1, 0], device="mps")
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert {p.grad.device for p in model.parameters()} == {torch.device("mps:0")}


def test_there_is_one_whatever_the_index(mps):
    assert torch.zeros(1, device="mps:1").device == torch.zeros(1).to("mps:3").device == torch.device("mps:0")
    assert torch.zeros(1, device="mps").type() == "torch.mps.FloatTensor"
    assert not hasattr(torch.mps, "FloatTensor")


def test_its_module_answers_or_refuses_in_one_sentence(mps):
    torch.mps.profiler.start()
    torch.mps.profiler.stop()
    if hasattr(torch.mps.profiler, "is_capturing_metal"):
        assert torch.mps.profiler.is_capturing_metal() is False
    assert torch.mps.recommended_max_memory() > torch.mps.driver_allocated_memory()
    torch.mps.set_per_process_memory_fraction(0.5)
    if hasattr(torch.mps, "compile_shader"):
        with pytest.raises(NotSimulated, match=r"^torch\.mps\.compile_shader has no counterpart"):
            torch.mps.compile_shader("kernel void f() {}")


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, dtype=torch.complex128, device="mps"),
        lambda: torch.ones(2, dtype=torch.complex128).to("mps"),
        lambda: torch.ones(2, device="mps").to(torch.complex128),
    ],
)
def test_wide_complex_numbers_are_refused(mps, make):
    words = "^Trying to convert ComplexDouble to the MPS backend but it does not have support for that dtype.$"
    with pytest.raises(TypeError, match=words):
        make()
    assert torch.ones(2, dtype=torch.complex64, device="mps").is_mps


def test_memory_that_does_not_suffice(mps):
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 40, device="mps")
    assert type(caught.value) is RuntimeError
    assert str(caught.value) == (
        "MPS backend out of memory (MPS allocated: 0 bytes, other allocations: 0 bytes, max allowed: 48.00 GiB). Tried "
        "to allocate 4096.00 GiB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for "
        "memory allocations (may cause system failure)."
    )
