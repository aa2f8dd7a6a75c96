"""torch.distributed with "nccl": in one process by default, in two spawned ones in the slow group."""

import datetime
import sys
import warnings
import weakref

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


def test_tensors_must_be_contiguous(group):
    with pytest.raises(ValueError, match=r"^Tensors must be contiguous$"):
        dist.all_reduce(torch.ones(2, 3, device="cuda").t())
    dist.all_reduce(torch.ones(1, 2, 3, 3, device="cuda").to(memory_format=torch.channels_last))


@pytest.mark.filterwarnings("ignore")
def test_only_the_number_of_elements_counts(group):
    into = torch.zeros(1, 4, device="cuda")
    dist.all_gather_into_tensor(into, torch.ones(2, 2, device="cuda"))
    assert into.tolist() == [[1.0] * 4]


@pytest.mark.filterwarnings("ignore")
def test_distributed_tensors_are_where_their_parts_are(group):
    distributed = pytest.importorskip("torch.distributed.tensor")
    mesh = dist.init_device_mesh("cuda", (1,))
    x = distributed.distribute_tensor(torch.randn(4, 4, device="cuda"), mesh, [distributed.Shard(0)])
    assert x.is_cuda
    assert {x.device, (x @ x).device, x.to_local().device, x.full_tensor().device} == {torch.device("cuda:0")}
    assert x.cpu().device.type == "cpu"


@pytest.mark.filterwarnings("ignore")
def test_sharded_training(group):
    from torch.distributed import fsdp

    if not hasattr(fsdp, "fully_shard"):
        pytest.skip("fully_shard is here since 2.6")
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).cuda()
    for part in (*model, model):
        fsdp.fully_shard(part)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(3, 4, device="cuda")).sum().backward()
    optimizer.step()
    assert {p.device for p in model.parameters()} == {p.grad.device for p in model.parameters()}
    assert next(model.parameters()).is_cuda
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        nn.functional.linear(torch.randn(3, 4), model[0].weight.to_local())


@pytest.mark.parametrize(("kind", "backend"), [("xpu", "xccl"), ("npu", "hccl"), ("hpu", "hccl")])
def test_backends_of_other_kinds(kind, backend, tmp_path):
    if kind == "xpu" and not hasattr(dist.distributed_c10d, "is_xccl_available"):
        pytest.skip("this version has no such backend")
    with samedevice.simulate(kind):
        dist.init_process_group(backend, init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
        try:
            assert dist.get_backend() == backend
            values = torch.ones(2, device=kind)
            dist.all_reduce(values)
            assert values.device == torch.device(kind, 0)
            with pytest.raises(RuntimeError, match=r"^No backend type associated with device type cpu$"):
                dist.all_reduce(torch.ones(2))
            model = nn.Linear(3, 1).to(kind)
            ddp(model, device_ids=[0])(torch.randn(2, 3)).sum().backward()
            assert model.weight.grad.device == torch.device(kind, 0)
        finally:
            dist.destroy_process_group()
    assert not hasattr(dist.Backend, "HCCL")


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


def test_a_group_that_ends_holds_no_tensors(group):
    sent = [torch.ones(1, device="cuda") for _ in range(2000)]
    alive = [weakref.ref(tensor) for tensor in sent]
    for tensor in sent:
        dist.all_reduce(tensor, async_op=True)
    del sent, tensor
    dist.destroy_process_group()
    assert [reference() for reference in alive] == [None] * 2000
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)


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


def check_synchronised_batch_norm(rank):
    """Each process's half of a batch gives its half of what the whole gives."""
    torch.manual_seed(1)
    batch, gradient = torch.randn(2, 4, 3), torch.randn(2, 4, 3)
    whole = batch.view(8, 3).requires_grad_()
    expected = nn.functional.batch_norm(whole, None, None, training=True)
    expected.backward(gradient.view(8, 3))
    norm = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3)).cuda()
    mine = batch[rank].detach().cuda().requires_grad_()
    y = norm(mine)
    torch.testing.assert_close(y.cpu(), expected.view(2, 4, 3)[rank], atol=1e-5, rtol=1e-5)
    y.backward(gradient[rank].cuda())
    torch.testing.assert_close(mine.grad.cpu(), whole.grad.view(2, 4, 3)[rank], atol=1e-5, rtol=1e-5)


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
    check_synchronised_batch_norm(rank)
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
