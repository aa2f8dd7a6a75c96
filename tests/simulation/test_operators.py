"""Operators seen by the dispatch mode: where results are, and what C++ allocates for itself."""

import weakref

import pytest
import torch
from torch import nn

from samedevice.simulation import observers

CPU, CUDA, CUDA1 = torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")


@pytest.fixture
def c(cuda2):
    return torch.rand(3, 3, device="cuda")


def test_lists_may_mix_devices_across_their_positions(c):
    results = torch._foreach_mul([c, torch.ones(2)], 2)
    assert [result.device for result in results] == [CUDA, CPU]
    norms = torch._foreach_norm([torch.ones(2), c])
    assert [norm.device for norm in norms] == [CPU, CUDA]


class TestFactories:
    """`device=` says where; C++'s own allocations follow what they are combined with."""

    @pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
    @pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
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
            torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device=device),
            torch.nested.nested_tensor([[1.0], [2.0, 3.0]], device=device, layout=torch.jagged),
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
