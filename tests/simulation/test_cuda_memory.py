"""Expected figures are what the real CUDA build gave: blocks of 512 bytes, segments of 2 and 20 MiB."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import samedevice
from samedevice.simulation.cuda_memory import Block, CachingAllocator

MIB = 1 << 20


def test_figures_of_a_script(cuda2):
    assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == 0
    small = torch.zeros(1, device="cuda")
    assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == (512, 2 * MIB)
    large = torch.zeros(1000, 1000, device="cuda")  # 4 000 000 bytes
    assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == (512 + 4_000_256, 22 * MIB)
    views = [large[0], large.detach(), large.view(-1)]
    assert torch.cuda.memory_allocated() == 512 + 4_000_256
    del large, views
    assert (torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()) == (512, 512 + 4_000_256)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 2 * MIB
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == 512
    if hasattr(torch.accelerator, "max_memory_allocated"):  # since 2.9
        assert torch.accelerator.max_memory_allocated() == 512
    free, total = torch.cuda.mem_get_info()
    assert total - free == 2 * MIB
    assert torch.cuda.memory_allocated(1) == 0
    assert small.is_cuda


def test_a_move_takes_the_memory_along(cuda2):
    model = torch.nn.Linear(1000, 1000)  # 4 000 000 and 4 000 bytes
    model.cuda()
    assert torch.cuda.memory_allocated() == 4_000_256 + 4_096
    model.to("cuda:1")
    assert torch.cuda.memory_allocated(0) == 0
    assert torch.cuda.memory_allocated(1) == 4_000_256 + 4_096
    model.cpu()
    assert torch.cuda.memory_allocated(1) == 0
    assert torch.cuda.max_memory_allocated(1) == 4_000_256 + 4_096


def test_steps_leave_nothing_behind(cuda2):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    held = []
    for _ in range(4):
        optimizer.zero_grad()
        model(torch.ones(2, 8, device="cuda")).sum().backward()
        optimizer.step()
        held.append(torch.cuda.memory_allocated())
    assert held[1] == held[2] == held[3]


def test_summary_and_stats(cuda2):
    x = torch.zeros(300, device="cuda")
    assert torch.cuda.memory_stats()["allocation.all.current"] == 1
    assert torch.cuda.memory_stats()["allocated_bytes.small_pool.allocated"] == 1536
    assert "CUDA memory summary, device ID 0" in torch.cuda.memory_summary()
    if hasattr(torch.cuda, "host_memory_stats"):  # since 2.7
        assert torch.cuda.host_memory_stats()
    assert torch.cuda.memory_snapshot() == []
    torch.cuda.set_per_process_memory_fraction(0.5)
    assert torch.cuda.get_per_process_memory_fraction() == 0.5
    assert x.is_cuda


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40 * MIB)), max_size=40))
def test_allocator_laws(steps):
    allocator = CachingAllocator(80 << 30)
    blocks = []
    for grow, size in steps:
        if grow or not blocks:
            blocks.append(Block(allocator, size))
        else:
            blocks.pop(size % len(blocks))
        figures = allocator.stats()
        held = figures["allocated_bytes"]["all"]
        assert held["current"] == held["allocated"] - held["freed"] <= held["peak"]
        assert held["current"] == sum(
            figures["allocated_bytes"][pool]["current"] for pool in ("small_pool", "large_pool")
        )
        assert held["current"] <= figures["reserved_bytes"]["all"]["current"]
        assert figures["allocation"]["all"]["current"] == len(blocks)
    blocks.clear()
    allocator.empty_cache()
    assert allocator.allocated() == 0
    assert allocator.free == allocator.total


def test_a_device_that_is_too_small(cuda2):
    torch.cuda.set_per_process_memory_fraction(0.001)
    kept = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
    with pytest.raises(torch.OutOfMemoryError) as raised:
        torch.empty(60 * MIB, dtype=torch.uint8, device="cuda")
    assert str(raised.value).startswith(
        "CUDA out of memory. Tried to allocate 60.00 MiB. GPU 0 has a total capacity of 80.00 GiB of which 79.97 GiB "
        "is free. 81.92 MiB allowed; Of the allocated memory 30.00 MiB is allocated by PyTorch, and 0 bytes is "
        "reserved by PyTorch but unallocated. If reserved but"
    )
    assert torch.cuda.memory_allocated() == 30 * MIB, "nothing of it is kept"
    assert torch.cuda.memory_stats()["num_ooms"] == 1
    del kept
    assert torch.empty(60 * MIB, dtype=torch.uint8, device="cuda").is_cuda, "what was cached is given back first"
    assert torch.empty(60 * MIB, dtype=torch.uint8, device="cuda:1").is_cuda


@pytest.mark.parametrize("make", [torch.empty, torch.zeros, torch.rand])
def test_more_than_this_machine_has_is_out_of_memory_there(cuda2, make):
    with pytest.raises(torch.cuda.OutOfMemoryError, match=r"^CUDA out of memory\. Tried to allocate 9313225\.75 GiB"):
        make(25 * 10**14, device="cuda")
    with pytest.raises(RuntimeError, match="DefaultCPUAllocator"):
        make(25 * 10**14)


def test_memory_of_another_kind_of_device_does_not_suffice():
    with samedevice.simulate("xpu"), pytest.raises(torch.OutOfMemoryError) as caught:
        torch.empty(1 << 40, device="xpu")
    assert str(caught.value) == (
        "XPU out of memory. Tried to allocate 4096.00 GiB. GPU 0 has a total capacity of 48.00 GiB of which 48.00 GiB "
        "is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but "
        "unallocated. Please use `empty_cache` to release all unoccupied cached memory."
    )
