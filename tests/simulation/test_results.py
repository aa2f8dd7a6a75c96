"""Where operators put their results, forward and backward, and what they refuse."""

import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import samedevice
from samedevice import messages
from samedevice.faults import fault_of
from samedevice.simulation.calls import torch_version

CUDA1 = torch.device("cuda:1")


@pytest.fixture(scope="module", autouse=True)
def _machine():
    with samedevice.simulate("cuda:2"):
        yield


RESULTS = {
    "arithmetic": lambda x: x * 2 + x,
    "reduction": lambda x: x.sum(),
    "two results": lambda x: x.max(0).indices,
    "in place": lambda x: x.add_(1),
    "out": lambda x: torch.add(x, x, out=torch.empty_like(x)),
    "comparison": lambda x: x > 0,
    "indexing": lambda x: x[torch.tensor([0, 1])],
    "mask": lambda x: x[x > 0.5],
    "list in": lambda x: torch.cat([x, x]),
    "list out": lambda x: x.split(1)[2],
    "foreach": lambda x: torch._foreach_add([x, x], 1)[1],
    "nonzero": lambda x: x.nonzero(),
    "unique": lambda x: x.unique(return_counts=True)[1],
    "sort": lambda x: x.sort().values,
    "random like": lambda x: torch.rand_like(x),
    "bernoulli": lambda x: x.bernoulli(),
    "dropout": lambda x: F.dropout(x, 0.5),
    "one hot": lambda x: F.one_hot(x.long(), 4),
    "block diagonal": lambda x: torch.block_diag(x, x),
    "padding": lambda x: F.pad(x, (1, 1)),
    "interpolation": lambda x: F.interpolate(x[None, None], scale_factor=2),
    "decomposition": lambda x: torch.linalg.svd(x).S,
    "inverse": lambda x: torch.linalg.inv(x + 3 * torch.eye(3, device=x.device)),
    "fourier": lambda x: torch.fft.rfft(x),
    "to sparse": lambda x: x.to_sparse(),
    "from sparse": lambda x: x.to_sparse().to_dense(),
    "sparse product": lambda x: x.to_sparse() @ x,
    "quantile": lambda x: x.quantile(0.5),
    "histogram": lambda x: torch.histc(x, 4),
    "cumulative": lambda x: x.cumprod(0).cumsum(1),
    "triangle": lambda x: x.tril(),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "normalised": lambda x: F.layer_norm(x, (3,)),
    "attention": lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "number on the left": lambda x: 1 - x,
    "scalar beside it": lambda x: torch.tensor(2.0) * x,
    "number taken out": lambda x: torch.full_like(x, x.sum().item()),
    "checkpointed": lambda x: checkpoint(torch.exp, x.requires_grad_(), use_reentrant=False),
}


@pytest.mark.parametrize("compute", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("device", ["cpu", "cuda:0", "cuda:1"])
def test_results_are_where_the_operands_are(compute, context, device):
    if context is torch.inference_mode and compute is RESULTS["checkpointed"]:
        pytest.skip("needs gradients")
    with context():
        x = torch.rand(3, 3, device=device)
        assert compute(x).device == torch.device(device)


def blamed(argument, device, other, method):
    """The message of the generated check, as the installed PyTorch words it."""
    values = {"argument": argument, "device": device, "other_device": other, "method": f"wrapper_CUDA_{method}"}
    return re.escape(messages.format("same-device", version=torch_version(), **values))


MIXED = {
    "addition": (lambda c, p: c + p, "found at least two devices, cuda:0 and cpu!"),
    "product": (lambda c, p: p @ c, blamed("mat2", "cuda:0", "cpu", "mm")),
    "linear": (lambda c, p: F.linear(c, p), blamed("mat2", "cpu", "cuda:0", "mm")),
    "joining": (lambda c, p: torch.stack([c, p]), blamed("tensors", "cpu", "cuda:0", "cat")),
    "indexing": (
        lambda c, p: p[c.long()],
        r"indices should be either on cpu or on the same device as the indexed tensor \(cpu\)",
    ),
    "foreach": (lambda c, p: torch._foreach_add([p, c], [p, p]), "cuda:0 and cpu!"),
}


@pytest.mark.parametrize(("compute", "message"), MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_operands_on_two_devices_are_refused(compute, message, context):
    with context(), pytest.raises(RuntimeError, match=message) as caught:
        compute(torch.rand(3, 3, device="cuda"), torch.rand(3, 3))
    fault = fault_of(caught.value)
    assert fault is not None
    assert {operand.device for operand in fault.operands} == {"cpu", "cuda:0"}


def backwards():
    yield "cumprod", lambda x: x.cumprod(0)
    yield "prod", lambda x: x.prod(1)
    yield "max", lambda x: x.max(0).values
    yield "median", lambda x: x.median(0).values
    yield "topk", lambda x: x.topk(2).values
    yield "index", lambda x: x[torch.tensor([0, 0, 1])]
    yield "gather", lambda x: x.gather(0, torch.zeros(1, 3, dtype=torch.long, device=x.device))
    yield "select", lambda x: x.select(0, 1)
    yield "unfold", lambda x: x.unfold(0, 2, 1)
    yield "as_strided", lambda x: x.as_strided((2, 2), (1, 2))
    yield "expand", lambda x: x.sum().expand(3)
    yield "repeat", lambda x: x.repeat(2, 2)
    yield "norm", lambda x: x.norm(dim=1)
    yield "svd", lambda x: torch.linalg.svdvals(x)
    yield "solve", lambda x: torch.linalg.solve(x + 3 * torch.eye(3, device=x.device), x)
    yield "pad", lambda x: F.pad(x[None], (1, 1), mode="reflect")
    yield "pool", lambda x: F.max_pool2d(x[None], 2)
    yield "conv", lambda x: F.conv2d(x[None, None], torch.ones(1, 1, 2, 2, device=x.device))
    yield "embedding", lambda x: F.embedding(torch.zeros(2, dtype=torch.long, device=x.device), x)
    yield "half", lambda x: x.half().float()
    yield "where", lambda x: torch.where(x > 0.5, x, 0.0)
    yield "cdist", lambda x: torch.cdist(x, x + 1)
    yield "ctc", lambda x: F.ctc_loss(x[:, None].log_softmax(-1), torch.ones(1, 1, dtype=torch.long), [3], [1])
    yield "grid", lambda x: F.grid_sample(x[None, None], x[None, :, :2, None].expand(1, 3, 2, 2), align_corners=False)
    yield "gru", lambda x: nn.GRU(3, 2).to(x.device)(x)[0]
    yield "cross entropy", lambda x: F.cross_entropy(x, torch.zeros(3, dtype=torch.long, device=x.device))
    yield "kl", lambda x: F.kl_div(x.log(), x, reduction="sum")
    yield "roll", lambda x: x.roll(1).flip(0)
    yield "stack", lambda x: torch.stack([x, x]).unbind()[0]
    yield "rfft", lambda x: torch.fft.rfft(x).abs()
    yield "trace", lambda x: x.trace() + x.diagonal().sum()
    yield "logsumexp", lambda x: x.logsumexp(0)


@pytest.mark.parametrize("compute", [c for _, c in backwards()], ids=[name for name, _ in backwards()])
def test_backward_stays_on_its_device(compute):
    x = torch.rand(3, 3, device="cuda:1", requires_grad=True)
    y = compute(x).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    assert first.device == CUDA1
    y.backward()
    assert x.grad.device == CUDA1
    x.grad.add_(torch.ones(3, 3, device="cuda:1"))
