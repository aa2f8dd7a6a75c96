"""Operators seen by the dispatch mode: where results are, and what C++ allocates for itself."""

import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from samedevice.faults import fault_of
from samedevice.simulation import observers

CPU, CUDA, CUDA1 = torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")


@pytest.fixture
def c(cuda2):
    return torch.rand(3, 3, device="cuda")


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
    "checkpointed": lambda x: torch.utils.checkpoint.checkpoint(torch.exp, x.requires_grad_(), use_reentrant=False),
}


@pytest.mark.parametrize("compute", RESULTS.values(), ids=RESULTS)
@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("device", ["cpu", "cuda:0", "cuda:1"])
def test_results_are_where_the_operands_are(cuda2, compute, context, device):
    if context is torch.inference_mode and compute is RESULTS["checkpointed"]:
        pytest.skip("needs gradients")
    with context():
        x = torch.rand(3, 3, device=device)
        assert compute(x).device == torch.device(device)


MIXED = {
    "addition": (lambda c, p: c + p, "found at least two devices, cuda:0 and cpu!"),
    "product": (lambda c, p: p @ c, "got mat2 is on cuda:0, different from other tensors on cpu"),
    "linear": (lambda c, p: F.linear(c, p), "got mat2 is on cpu, different from other tensors on cuda:0"),
    "joining": (lambda c, p: torch.stack([c, p]), "got tensors is on cpu, different from other tensors on cuda:0"),
    "indexing": (
        lambda c, p: p[c.long()],
        r"indices should be either on cpu or on the same device as the indexed tensor \(cpu\)",
    ),
    "foreach": (lambda c, p: torch._foreach_add([p, c], [p, p]), "cuda:0 and cpu!"),
}


@pytest.mark.parametrize(("compute", "message"), MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_operands_on_two_devices_are_refused(cuda2, compute, message, context):
    with context(), pytest.raises(RuntimeError, match=message) as caught:
        compute(torch.rand(3, 3, device="cuda"), torch.rand(3, 3))
    fault = fault_of(caught.value)
    assert fault is not None
    assert {operand.device for operand in fault.operands} == {"cpu", "cuda:0"}


def test_lists_may_mix_devices_across_their_positions(c):
    results = torch._foreach_mul([c, torch.ones(2)], 2)
    assert [result.device for result in results] == [CUDA, CPU]
    norms = torch._foreach_norm([torch.ones(2), c])
    assert [norm.device for norm in norms] == [CPU, CUDA]


class TestFactories:
    """`device=` says where; C++'s own allocations follow what they are combined with."""

    @pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
    @pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda:1"), 1, "cpu", None])
    def test_all(self, cuda2, device):
        expected = CPU if device is None else cuda2.complete(device)
        made = [
            torch.zeros(2, device=device),
            torch.ones(2, device=device),
            torch.empty(2, device=device),
            torch.full((2,), 1.0, device=device),
            torch.rand(2, device=device),
            torch.randn(2, device=device),
            torch.randint(3, (2,), device=device),
            torch.randperm(3, device=device),
            torch.arange(3, device=device),
            torch.linspace(0, 1, 3, device=device),
            torch.eye(2, device=device),
            torch.tril_indices(2, 2, device=device),
            torch.hann_window(4, device=device),
            torch.empty_strided((2,), (1,), device=device),
            torch.scalar_tensor(1.0, device=device),
            torch.tensor([1.0], device=device),
            torch.as_tensor([1.0], device=device),
            torch.asarray([1.0], device=device),
            torch.fft.fftfreq(3, device=device),
            torch.sparse_coo_tensor([[0]], [1.0], (2,), device=device),
            nn.Linear(2, 2, device=device).weight,
            nn.LSTM(2, 2, device=device).weight_ih_l0,
        ]
        assert {tensor.device for tensor in made} == {expected}

    def test_from_tensors(self, c):
        p = torch.ones(2)
        assert torch.as_tensor(c) is c
        assert torch.as_tensor(c, device="cpu").device == torch.asarray(c, device="cpu").device == CPU
        assert torch.as_tensor(p, device="cuda").device == torch.asarray(p, device="cuda").device == CUDA
        with pytest.warns(UserWarning, match="To copy construct"):
            assert torch.tensor(c).device == CUDA
        assert torch.from_numpy(p.numpy()).device == CPU

    def test_numbers_read_from_tensors(self, c):
        zero = torch.tensor(0.0, device="cuda")
        assert torch.linspace(zero, torch.tensor(1.0), 3).device == CPU
        assert torch.linspace(zero, zero + 1, 3, device="cuda:1").device == CUDA1
        assert torch.full((2,), zero).device == torch.arange(zero + 2).device == CPU

    @pytest.mark.parametrize(
        "make", [lambda: torch.Tensor(2), lambda: torch.FloatTensor(2), lambda: torch.LongTensor([1, 2])]
    )
    def test_legacy_ones_are_on_the_cpu_and_stay_there(self, c, make):
        made = make()
        made.fill_(1)
        with pytest.raises(RuntimeError, match="cuda:0 and cpu"):
            c[0, :2] + made
        assert made.device == CPU

    def test_default_device(self, cuda2):
        with torch.device("cuda"):
            assert torch.zeros(1).device == torch.tensor(1.0).device == nn.Linear(1, 1).weight.device == CUDA
            assert torch.zeros(1, device="cpu").device == torch.from_numpy(torch.ones(1).cpu().numpy()).device == CPU
            with torch.device("cuda:1"):
                assert torch.ones(1).device == CUDA1
            with torch.device("cpu"):
                assert torch.ones(1).device == CPU
        torch.set_default_device("cuda")
        try:
            assert torch.get_default_device() == CUDA
            assert torch.arange(3).device == torch.as_tensor([1]).device == CUDA
            with torch.device("cpu"):
                assert torch.zeros(1).device == CPU
        finally:
            torch.set_default_device(None)
        assert torch.zeros(1).device == CPU

    def test_an_index_alone(self, cuda2):
        assert torch.device(1) == CUDA1
        assert isinstance(CUDA1, torch.device)
        assert torch.device("cuda", 1) == torch.device(type="cuda", index=1) == CUDA1
        assert issubclass(type(CUDA), torch.device)
        assert type(CUDA) == torch.device  # noqa: E721
        with pytest.raises(RuntimeError, match="Expected one of cpu"):
            torch.device("gpu")


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
def test_backward_stays_on_its_device(cuda2, compute):
    x = torch.rand(3, 3, device="cuda:1", requires_grad=True)
    y = compute(x).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    assert first.device == CUDA1
    y.backward()
    assert x.grad.device == CUDA1
    x.grad.add_(torch.ones(3, 3, device="cuda:1"))


class TestObservers:
    @pytest.fixture
    def events(self, cuda2):
        events = []

        def remember(event):
            results = [weakref.ref(tensor) for tensor in event.results]
            operands = [weakref.ref(tensor) for tensor in event.operands]
            events.append((event.kind, event.operation, results, operands))

        unsubscribe = observers.subscribe(remember)
        yield events
        unsubscribe()
        assert observers.active == []

    def test_making_computing_and_moving(self, events):
        x = torch.zeros(2)
        y = x.cuda()
        z = y + y
        kinds = [(kind, operation) for kind, operation, _, _ in events]
        assert kinds == [("made", "aten::zeros"), ("moved", "aten::_to_copy"), ("computed", "aten::add")]
        assert [results[0]() for _, _, results, _ in events] == [IsIt(x), IsIt(y), IsIt(z)]
        assert events[1][3][0]() is x
        assert [operand() for operand in events[2][3]] == [IsIt(y), IsIt(y)]

    def test_a_move_that_changes_nothing(self, events):
        x = torch.zeros(2, device="cuda")
        x.cuda()
        kind, _, (result,), (operand,) = events[-1]
        assert (kind, result(), operand()) == ("moved", IsIt(x), IsIt(x))

    def test_data_from_elsewhere(self, events):
        made = [torch.tensor([1.0]), torch.from_numpy(torch.ones(2).numpy()), torch.Tensor(2), torch.as_tensor([1.0])]
        seen = [results[0]() for kind, _, results, _ in events if kind == "made"]
        assert all(any(tensor is one for one in seen) for tensor in made)


class IsIt:
    """Equal to the very object, since tensors compare by value."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return other is self.value

    def __hash__(self):
        return id(self.value)


def test_an_operator_that_only_waits_does_nothing(c):
    assert c.record_stream(torch.cuda.Stream()) is None
