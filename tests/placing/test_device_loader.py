"""Batches arrive on the device, in order, and nothing is left running."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, TensorDataset

import samedevice
from samedevice import DeviceLoader, UnknownDevice


def dataset():
    return TensorDataset(torch.arange(12.0).view(6, 2), torch.arange(6))


class Endless(IterableDataset):
    def __iter__(self):
        number = 0
        while True:
            yield torch.tensor(number)
            number += 1


def batches(count, fail_at=None):
    """A generator of nested batches that may fail, and that says when it was closed."""
    try:
        for number in range(count):
            if number == fail_at:
                raise OSError("disk gone")
            yield {"x": torch.full((2,), number), "meta": [number, "name"]}
    finally:
        closed.append(count)


closed: list[int] = []


@pytest.fixture(params=["cpu", "meta", "cuda", "cuda:1"])
def device(request):
    if not request.param.startswith("cuda"):
        yield torch.device(request.param)
        return
    with samedevice.simulate("cuda:2"):
        yield torch.device(request.param if ":" in request.param else "cuda:0")


@pytest.fixture(autouse=True)
def _nothing_closed_yet():
    closed.clear()


def test_every_batch_arrives_once_in_order_on_the_device(device):
    loader = DeviceLoader(DataLoader(dataset(), batch_size=2), device)
    for _ in range(2):
        found = list(loader)
        assert len(found) == len(loader) == 3
        assert {tensor.device for batch in found for tensor in batch} == {device}
        if device.type != "meta":
            assert torch.cat([labels.cpu() for _, labels in found]).tolist() == list(range(6))


def test_any_iterable_will_do(device):
    found = list(DeviceLoader(batches(3), device))
    assert [batch["meta"] for batch in found] == [[0, "name"], [1, "name"], [2, "name"]]
    assert {batch["x"].device for batch in found} == {device}
    assert list(DeviceLoader([], device)) == []
    assert closed == [3]


def test_an_early_break_leaves_nothing_running(device):
    loader = batches(10)
    for batch in DeviceLoader(loader, device):
        assert batch["meta"][0] == 0
        break
    del batch
    gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None
    assert closed == [10]


def test_an_endless_loader_is_not_read_on(device):
    for number, _ in enumerate(DeviceLoader(DataLoader(Endless(), batch_size=None), device)):
        if number == 3:
            break


def test_an_exception_of_the_loader_comes_in_its_turn(device):
    loader = iter(DeviceLoader(batches(5, fail_at=2), device))
    assert [next(loader)["meta"][0] for _ in range(2)] == [0, 1]
    with pytest.raises(OSError, match="disk gone"):
        next(loader)
    assert next(loader, None) is None
    assert closed == [5]


def test_an_exception_of_the_loop_is_its_own(device):
    def loop():
        for _ in DeviceLoader(batches(5), device):
            1 / 0

    with pytest.raises(ZeroDivisionError):
        loop()
    assert closed == [5]


def test_a_batch_that_cannot_be_moved_is_named(device):
    class Stubborn:
        def to(self, device, **options):
            raise ValueError("no")

    with pytest.raises(samedevice.MoveError, match="stubborn"):
        list(DeviceLoader([{"stubborn": Stubborn()}], device))


def test_batches_that_are_on_a_device_already(device):
    batch = {"x": torch.zeros(2, device=device), "y": [torch.zeros(3)]}
    (found,) = DeviceLoader([batch], device)
    assert found["x"] is batch["x"]
    assert found["y"][0].device == device
    (found,) = DeviceLoader([{"x": batch["x"]}], device)
    assert found["x"] is batch["x"]


def test_what_else_is_asked_of_it_the_loader_answers():
    data = dataset()
    inner = DataLoader(data, batch_size=4, drop_last=True, num_workers=0)
    loader = DeviceLoader(inner, "cpu")
    assert len(loader) == 1
    assert loader.dataset is data
    assert loader.sampler is inner.sampler
    assert loader.batch_sampler is inner.batch_sampler
    assert loader.batch_size == 4
    assert loader.loader is inner
    with pytest.raises(AttributeError, match="no_such_thing"):
        loader.no_such_thing
    with pytest.raises(TypeError):
        len(DeviceLoader(batches(1), "cpu"))


def test_set_epoch_reaches_whoever_shuffles_by_it():
    sampler = DistributedSampler(dataset(), num_replicas=2, rank=0, shuffle=True)
    loader = DeviceLoader(DataLoader(dataset(), sampler=sampler, batch_size=2), "cpu")
    loader.set_epoch(7)
    assert sampler.epoch == 7

    class Own(list):
        def set_epoch(self, epoch):
            self.epoch = epoch

    own = Own()
    DeviceLoader(own, "cpu").set_epoch(3)
    assert own.epoch == 3
    DeviceLoader([1], "cpu").set_epoch(1)


def test_it_can_be_copied_and_pickled():
    loader = DeviceLoader([torch.ones(2)], "cpu")
    for again in (copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
        assert again.device == loader.device
        assert torch.equal(next(iter(again)), torch.ones(2))


def test_a_bad_device_is_refused_at_once():
    with pytest.raises(UnknownDevice):
        DeviceLoader([], "gpu")


def test_workers_end_with_the_loop():
    loader = DataLoader(dataset(), batch_size=1, num_workers=1)
    iterator = iter(DeviceLoader(loader, "cpu"))
    next(iterator)
    (worker,) = torch.multiprocessing.active_children()
    iterator.close()
    gc.collect()
    worker.join(20)
    assert not worker.is_alive()


def test_a_copy_is_waited_for_and_its_memory_is_kept():
    """What a side stream demands: see the note in the module."""
    calls = []
    with samedevice.simulate("cuda:2"):
        copying = []
        wait_stream, record_stream = torch.cuda.Stream.wait_stream, torch.Tensor.record_stream

        def waited(self, stream):
            calls.append(("wait", self == torch.cuda.current_stream(self.device), stream))
            copying.append(stream)
            return wait_stream(self, stream)

        def recorded(self, stream):
            calls.append(("record", stream == torch.cuda.current_stream(self.device), self.device))
            return record_stream(self, stream)

        torch.cuda.Stream.wait_stream, torch.Tensor.record_stream = waited, recorded
        try:
            list(DeviceLoader([{"x": torch.ones(2), "y": (torch.ones(1),)}] * 2, "cuda:1"))
        finally:
            torch.cuda.Stream.wait_stream, torch.Tensor.record_stream = wait_stream, record_stream
        assert [name for name, *_ in calls] == ["wait", "record", "record"] * 2
        assert all(current for _, current, _ in calls)
        assert len(set(copying)) == 1
        assert copying[0] != torch.cuda.current_stream("cuda:1")
