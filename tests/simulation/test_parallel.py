import pytest
import torch
from torch import nn
from torch.nn.parallel import comm

import samedevice


def train(device, wrap):
    torch.manual_seed(0)
    inputs, targets = torch.randn(6, 3).to(device), torch.randn(6, 1).to(device)
    model = wrap(nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    return loss.item()


def test_data_parallel_trains_as_one_device_does():
    plain = train("cpu", lambda model: model)
    with samedevice.simulate("cuda:2"):
        assert train("cuda", nn.DataParallel) == pytest.approx(plain)
        assert train("cuda", lambda model: nn.DataParallel(model, device_ids=[0])) == plain


def test_each_replica_runs_on_its_device(cuda2):
    seen = []

    class Replica(nn.Module):
        def forward(self, x):
            seen.append((x.device.index, torch.cuda.current_device(), torch.zeros(1, device="cuda").device.index))
            return x

    result = nn.DataParallel(Replica())(torch.ones(4, 2))
    assert sorted(seen) == [(0, 0, 0), (1, 1, 1)]
    assert result.device == torch.device("cuda:0")


def test_a_tensor_that_is_not_replicated_stays_behind(cuda2):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.scale = torch.ones(3, device="cuda:0")

        def forward(self, x):
            return self.layer(x) * self.scale

    with pytest.raises(RuntimeError, match="Caught RuntimeError in replica 1 on device 1") as raised:
        nn.DataParallel(Model().cuda())(torch.ones(4, 3))
    assert "found at least two devices, cuda:1 and cuda:0!" in str(raised.value)


def linear():
    return nn.Linear(2, 2)


MISPLACED = (
    "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on device: "
)
REFUSED = {
    "module on the cpu": (lambda: nn.DataParallel(linear())(torch.ones(4, 2)), RuntimeError, MISPLACED + "cpu"),
    "elsewhere": (lambda: nn.DataParallel(linear().cuda(1))(torch.ones(4, 2)), RuntimeError, MISPLACED + "cuda:1"),
    "no such id": (lambda: nn.DataParallel(linear().cuda(), device_ids=[0, 5]), AssertionError, "Invalid device id"),
    "output on the cpu": (
        lambda: nn.DataParallel(linear().cuda(), device_ids=[0], output_device="cpu"),
        ValueError,
        "Expected a non cpu device, but got: cpu",
    ),
    "replicate": (
        lambda: nn.parallel.replicate(linear(), [0, 1]),
        AssertionError,
        "Broadcast function not implemented for CPU tensors",
    ),
    "gather": (
        lambda: nn.parallel.gather([torch.ones(1), torch.ones(1)], 0),
        AssertionError,
        "Gather function not implemented for CPU tensors",
    ),
    "coalesced": (
        lambda: comm.broadcast_coalesced([torch.zeros(2)], [0, 1]),
        RuntimeError,
        "All tensors must be on devices[0]: 0",
    ),
    "gather cpu": (
        lambda: comm.gather([torch.zeros(2, device="cuda"), torch.zeros(2)], 0),
        RuntimeError,
        "Expected all input tensors to be CUDA tensors, but tensor at index 1 has device cpu",
    ),
    "gather dimensions": (
        lambda: comm.gather([torch.zeros(2, device="cuda"), torch.zeros(2, 2, device="cuda:1")], 0, 0),
        RuntimeError,
        "Expected all input tensors to have the same number of dimensions, but "
        "tensor at index 1has 2 dimensions, (expected 1)",
    ),
}


@pytest.mark.parametrize(("call", "error", "says"), REFUSED.values(), ids=REFUSED)
def test_refusals(cuda2, call, error, says):
    with pytest.raises(error) as raised:
        call()
    assert str(raised.value) == says


def test_copies_between_devices(cuda2):
    halves = comm.scatter(torch.arange(5.0), [0, 1])
    assert [(str(half.device), len(half)) for half in halves] == [("cuda:0", 3), ("cuda:1", 2)]
    assert comm.gather(halves, 0, "cpu").tolist() == [0, 1, 2, 3, 4]
    assert comm.gather(halves, 0, 1).device == torch.device("cuda:1")
    assert [str(copy.device) for copy in comm.broadcast(torch.zeros(2), [0, 1])] == ["cuda:0", "cuda:1"]
    total = comm.reduce_add([torch.ones(2, device="cuda"), torch.ones(2, device="cuda:1")], 0)
    assert (str(total.device), total.tolist()) == ("cuda:0", [2, 2])
    values = [torch.full((2,), 3.0, device=f"cuda:{i}") for i in (0, 1)]
    torch.cuda.nccl.all_reduce(values)
    assert values[1].tolist() == [6, 6]
    assert torch.cuda.nccl.version()[0] == 2


def test_gradients_come_back(cuda2):
    x = torch.ones(4, 2, requires_grad=True)
    gathered = nn.parallel.gather(nn.parallel.scatter(x, [0, 1]), 1)
    (gathered * 2).sum().backward()
    assert gathered.device == torch.device("cuda:1")
    assert x.grad.tolist() == [[2, 2]] * 4
    assert x.grad.device == torch.device("cpu")
