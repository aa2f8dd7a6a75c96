"""torch.autocast on a simulated device. Expected dtypes: PyTorch's documentation of CUDA's autocast operators."""

import pytest
import torch
import torch.utils.checkpoint
from torch import nn
from torch.nn import functional as F

import samedevice
from samedevice.simulation.amp import policies

HALF, FLOAT = torch.float16, torch.float32
CASES = {
    "linear": (lambda x, h: nn.Linear(4, 4).cuda()(x), HALF),
    "matmul": (lambda x, h: x @ x, HALF),
    "einsum": (lambda x, h: torch.einsum("ij,kj->ik", x, x), HALF),
    "conv": (lambda x, h: F.conv1d(x[None], torch.ones(2, 4, 1, device="cuda")), HALF),
    "baddbmm": (lambda x, h: torch.baddbmm(x[None], x[None], x[None]), HALF),
    "prelu": (lambda x, h: F.prelu(x, torch.ones(1, device="cuda")), HALF),
    "lstm": (lambda x, h: nn.LSTM(4, 4).cuda()(x[None])[0], HALF),
    "attention": (lambda x, h: F.scaled_dot_product_attention(*[x[None]] * 3), HALF),
    "softmax": (lambda x, h: torch.softmax(h, 0), FLOAT),
    "log_softmax": (lambda x, h: F.log_softmax(h, 0), FLOAT),
    "sum": (lambda x, h: h.sum(), FLOAT),
    "sum to half": (lambda x, h: h.sum(dtype=HALF), HALF),
    "cumsum": (lambda x, h: h.cumsum(0), FLOAT),
    "exp": (lambda x, h: h.exp(), FLOAT),
    "pow": (lambda x, h: h**2, FLOAT),
    "norm": (lambda x, h: h.norm(), FLOAT),
    "mse": (lambda x, h: F.mse_loss(h, h), FLOAT),
    "cross_entropy": (lambda x, h: F.cross_entropy(h, torch.zeros(4, dtype=torch.long, device="cuda")), FLOAT),
    "layer_norm": (lambda x, h: F.layer_norm(h, (4,)), FLOAT),
    "addcmul": (lambda x, h: torch.addcmul(x, h, h), FLOAT),
    "addcmul half": (lambda x, h: torch.addcmul(h, h, h), HALF),
    "relu keeps": (lambda x, h: h.relu(), HALF),
    "add promotes": (lambda x, h: h + x, FLOAT),
}


@pytest.mark.parametrize(("call", "dtype"), CASES.values(), ids=CASES)
def test_dtypes_are_those_of_cuda(cuda2, call, dtype):
    x = torch.rand(4, 4, device="cuda")
    with torch.autocast("cuda"):
        assert call(x, x.half()).dtype is dtype
    assert call(x, x).dtype in (FLOAT, HALF)
    assert (x @ x).dtype is FLOAT


def test_only_tensors_on_the_device_are_cast(cuda2):
    layer, x = nn.Linear(4, 4), torch.rand(2, 4)
    with torch.autocast("cuda"):
        assert layer(x).dtype is FLOAT
        assert torch.is_autocast_enabled("cuda")
        assert not torch.is_autocast_enabled("cpu")
        double = torch.rand(2, 2, dtype=torch.float64, device="cuda")
        assert (double @ double).dtype is torch.float64
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(x).dtype is torch.bfloat16


def test_dtype_nesting_and_threads(cuda2):
    x = torch.rand(2, 2, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (x @ x).dtype is torch.bfloat16
        with torch.autocast("cuda", enabled=False):
            assert (x @ x).dtype is FLOAT
        assert (x @ x).dtype is torch.bfloat16

    class Model(nn.Module):
        def forward(self, x):
            return x @ x.T

    with torch.autocast("cuda"):
        assert nn.DataParallel(Model())(torch.rand(4, 3)).dtype is HALF


def test_the_check_is_that_of_the_cast_operator(cuda2):
    with (
        torch.autocast("cuda"),
        pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*mat1"),
    ):
        nn.Linear(2, 2).cuda()(torch.ones(1, 2))
    probabilities = torch.rand(3, device="cuda")
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="are unsafe to autocast"):
        F.binary_cross_entropy(probabilities, probabilities)


def test_gradients_are_in_the_parameters_dtype(cuda2):
    model = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8).cuda()
    with torch.autocast("cuda"):
        loss = model(torch.rand(3, 2, 4, device="cuda")).square().mean()
    loss.backward()
    assert all(p.grad.dtype is FLOAT and p.grad.is_cuda for p in model.parameters())


def test_checkpointing_recomputes_under_autocast(cuda2):
    seen = []

    def forward(x):
        seen.append((x @ x).dtype)
        return x @ x

    with torch.autocast("cuda"):
        out = torch.utils.checkpoint.checkpoint(
            forward, torch.rand(2, 2, device="cuda", requires_grad=True), use_reentrant=False
        )
    out.sum().backward()
    assert seen == [HALF, HALF]


@pytest.mark.parametrize("fused", [False, True])
def test_grad_scaler(cuda2, fused):
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    assert scaler.is_enabled()
    before = model.weight.detach().clone()
    with torch.autocast("cuda"):
        loss = model(torch.rand(2, 4, device="cuda")).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    assert model.bias.grad.item() == pytest.approx(1)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(before, model.weight)
    assert scaler.get_scale() == 1024


def test_grad_scaler_skips_a_step_that_overflowed(cuda2):
    parameter = nn.Parameter(torch.ones(2, device="cuda"))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler = torch.amp.GradScaler()
    scaler.scale((parameter * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert parameter.tolist() == [1, 1]
    assert scaler.get_scale() == 65536 / 2


def test_grad_scaler_and_an_optimizer_without_gradients(cuda2):
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(nn.Linear(2, 1).cuda()(torch.ones(1, 2, device="cuda")).sum()).backward()
    stale = torch.optim.SGD(nn.Linear(2, 1).cuda().parameters(), lr=0.1)
    with pytest.raises(AssertionError, match=r"^No inf checks were recorded for this optimizer\.$"):
        scaler.step(stale)


def test_custom_functions(cuda2):
    class Double(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cuda", cast_inputs=FLOAT)
        def forward(ctx, x):
            return x @ x

        @staticmethod
        @torch.amp.custom_bwd(device_type="cuda")
        def backward(ctx, gradient):
            return gradient

    with torch.autocast("cuda"):
        assert Double.apply(torch.rand(2, 2, device="cuda").half()).dtype is FLOAT


def test_policies_come_from_the_installed_version():
    found = policies()
    assert found["addmm"] == "LOWER_PRECISION_FP"
    assert found["softmax.int"] == "FP32_SET_OPT_DTYPE"
    assert found["addcmul"] == "PROMOTE"
    assert len(found) > 100


@pytest.mark.skipif(not hasattr(torch.library, "get_kernel"), reason="needs torch 2.9")
def test_autocast_of_the_cpu_leaves_devices_alone(cuda2):
    here, there = torch.ones(2, 2), torch.ones(2, 2, device="cuda")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (here @ here).dtype is torch.bfloat16
        assert (there @ there).dtype is torch.float32
        with torch.autocast("cuda", dtype=torch.float16):
            assert (there @ there).dtype is torch.float16
            assert (here @ here).dtype is torch.bfloat16
    assert (here @ here).dtype is torch.float32


def test_autocast_of_the_cpu_is_as_before_after_a_simulation():
    with samedevice.simulate("cuda"), torch.autocast("cpu", dtype=torch.bfloat16):
        torch.ones(2, 2) @ torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
