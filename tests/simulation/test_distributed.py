"""torch.distributed with "nccl": in one process by default, in two spawned ones in the slow group."""

import datetime
import sys
import warnings

import pytest
import torch
import torch.distributed as dist
from torch import nn

import samedevice

pytestmark = pytest.mark.skipif(not dist.is_available() or not dist.is_gloo_available(), reason="needs gloo")


@pytest.fixture(autouse=True)
def own_excepthook(monkeypatch):
    """`init_process_group` replaces it for good."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.fixture
def group(cuda2, tmp_path):
    dist.init_process_group("nccl", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_the_group_says_what_was_asked_for(group):
    assert dist.is_nccl_available()
    assert dist.get_backend() == "nccl"
    assert dist.distributed_c10d._get_default_timeout("nccl") == datetime.timedelta(minutes=10)
    values = torch.ones(2, device="cuda")
    dist.all_reduce(values)
    assert values.is_cuda
    objects = [None]
    dist.all_gather_object(objects, {"rank": 0})
    assert objects == [{"rank": 0}]
    dist.barrier(device_ids=[0])


@pytest.mark.parametrize(
    "collective",
    [
        lambda: dist.all_reduce(torch.ones(2)),
        lambda: dist.broadcast(torch.ones(2), 0),
        lambda: dist.all_gather([torch.ones(2)], torch.ones(2)),
        lambda: nn.parallel.DistributedDataParallel(nn.Linear(2, 2)),
    ],
)
def test_nccl_takes_no_cpu_tensors(group, collective):
    with pytest.raises(RuntimeError, match=r"^No backend type associated with device type cpu$"):
        collective()


def ddp(module, **options):
    return nn.parallel.DistributedDataParallel(module, **options)


REFUSED = {
    "device_ids for the cpu": (
        lambda: ddp(nn.Linear(2, 2), device_ids=[0]),
        "DistributedDataParallel device_ids and output_device arguments only work with single-device/multiple-device "
        "GPU modules or CPU modules, but got device_ids [0], output_device None, and module parameters "
        "{device(type='cpu')}.",
    ),
    "two ids": (
        lambda: ddp(nn.Linear(2, 2).cuda(), device_ids=[0, 1]),
        "device_ids can only be None or contain a single element.",
    ),
    "mixed": (
        lambda: ddp(nn.Sequential(nn.Linear(2, 2).cuda(), nn.Linear(2, 2))),
        "DistributedDataParallel's input module must be on the same type of devices, but input module parameters "
        "locate in {",
    ),
}


@pytest.mark.parametrize(("make", "says"), REFUSED.values(), ids=REFUSED)
def test_refusals(group, make, says):
    with pytest.raises(ValueError) as raised:
        make()
    assert str(raised.value).startswith(says)


@pytest.mark.parametrize("view", [False, True])
def test_training_moves_inputs_and_fills_gradients(group, view):
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)).cuda()
    wrapped = ddp(model, device_ids=[0], gradient_as_bucket_view=view)
    optimizer = torch.optim.AdamW(wrapped.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        wrapped(torch.randn(4, 3)).sum().backward()
        assert {parameter.grad.device for parameter in model.parameters()} == {torch.device("cuda:0")}
        optimizer.step()


def test_without_device_ids_inputs_stay(group):
    with pytest.raises(RuntimeError, match=r"Expected all tensors to be on the same device.*mat1"):
        ddp(nn.Linear(3, 1).cuda())(torch.ones(2, 3))


def test_gloo_takes_both(cuda2, tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        dist.all_reduce(torch.ones(2))
        ddp(nn.Linear(3, 1))(torch.ones(2, 3)).sum().backward()
    finally:
        dist.destroy_process_group()


def work(rank, world, folder):
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", FutureWarning)
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{folder}/group", rank=rank, world_size=world)
    torch.manual_seed(0)
    wrapped = ddp(nn.Linear(3, 1).cuda(), device_ids=[rank])
    loss = wrapped(torch.full((2, 3), float(rank))).sum()
    loss.backward()
    # d loss / d weight is 2 * rank in each column; DDP takes the mean over ranks 0 and 1.
    assert wrapped.module.weight.grad.tolist() == [[1.0, 1.0, 1.0]]
    assert wrapped.module.weight.grad.device == torch.device("cuda", rank)
    total = torch.full((1,), float(rank + 1), device="cuda")
    dist.all_reduce(total)
    assert total.item() == 3
    gathered = torch.zeros(world, device="cuda")
    dist.all_gather_into_tensor(gathered, torch.full((1,), float(rank), device="cuda"))
    assert gathered.tolist() == [0, 1]
    dist.destroy_process_group()


@pytest.mark.slow
def test_two_processes(tmp_path):
    with samedevice.simulate("cuda:2"):
        torch.multiprocessing.spawn(work, (2, str(tmp_path)), nprocs=2)


def share(queue, done):
    tensor = queue.get()
    assert tensor.device == torch.device("cuda:1")
    tensor += 1
    done.set()


@pytest.mark.slow
def test_a_tensor_sent_to_another_process_is_the_same_memory(cuda2):
    context = torch.multiprocessing.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=share, args=(queue, done))
    process.start()
    tensor = torch.zeros(2, device="cuda:1")
    queue.put(tensor)
    assert done.wait(120)
    process.join()
    assert tensor.tolist() == [1, 1]
    assert tensor.device == torch.device("cuda:1")
