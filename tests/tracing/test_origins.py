"""Where each tensor came from, on simulated devices and on real ones."""

import gc
import weakref

import pytest
import torch

from samedevice.tracing.watch import watch

SCRIPT = """
import copy, io
made = torch.zeros(3)  # made
moved = made.to("cuda")  # moved
computed = moved * 2 + 1  # computed
copied = moved.clone()  # copied
deep = copy.deepcopy(moved)  # deep
view = computed[1:]
file = io.BytesIO()
torch.save({"x": moved}, file)
file.seek(0)
loaded = torch.load(file)["x"]  # loaded
net = nn.Linear(2, 2)
net.to("cuda")  # net
parameter = net.weight
data = torch.tensor([1.0, 2.0])  # data

def helper():
    return torch.ones(2)  # helper

helped = helper()
"""
EVENTS = {
    "made": ("made", "cpu"),
    "moved": ("moved", "cuda:0"),
    "computed": ("computed", "cuda:0"),
    "copied": ("copied", "cuda:0"),
    "deep": ("copied", "cuda:0"),
    "loaded": ("loaded", "cuda:0"),
    "data": ("made", "cpu"),
}


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_every_kind_of_origin_at_its_line(watch_script):
    ran = watch_script(SCRIPT)
    origin = ran.watching.origin_of
    for name, (event, device) in EVENTS.items():
        found = origin(ran.names[name])
        assert (found.event, found.device, found.line) == (event, device, ran.marks[name]), name
    assert origin(ran.names["view"]) == origin(ran.names["computed"])
    assert origin(ran.names["parameter"]).line == ran.marks["net"]
    assert (origin(ran.names["helped"]).line, origin(ran.names["helped"]).function) == (ran.marks["helper"], "helper")
    assert [move.line for move in ran.watching.moves_of(ran.names["made"])] == [ran.marks["moved"]]
    assert ran.watching.source_of(ran.names["moved"]) is ran.names["made"]
    assert ran.watching.root_of(ran.names["computed"]).line == ran.marks["moved"]


def test_on_real_devices_too():
    with watch() as watching:
        first = torch.zeros(3)
        second = first + 1
        third = first.to("meta")
    assert watching.origin_of(first).event == "made"
    assert watching.origin_of(second).line == watching.origin_of(first).line + 1
    assert (watching.origin_of(third).event, watching.origin_of(third).device) == ("moved", "meta")
    assert watching.origin_of(torch.zeros(1)) is None  # after the block nothing is recorded


def test_recording_keeps_no_tensor():
    with watch() as watching:
        tensor = torch.zeros(3)
        result = tensor.clone()
        gone = weakref.ref(tensor)
        del tensor
        gc.collect()
        assert gone() is None
        assert watching.source_of(result) is None


def test_collected_garbage_takes_no_origin_along():
    with watch() as watching:
        kept = torch.zeros(2)
        cycle = [kept.untyped_storage()]
        cycle.append(cycle)
        del cycle
        gc.collect(0)
        assert watching.origin_of(kept).event == "made"


def test_nested_watches_do_not_mix():
    with watch() as outer:
        with watch() as inner:
            tensor = torch.zeros(2)
        later = torch.zeros(2)
    assert outer.origin_of(tensor) == inner.origin_of(tensor)
    assert inner.origin_of(later) is None
    assert outer.origin_of(later) is not None


def test_what_has_no_storage_has_no_origin():
    with watch() as watching:
        assert watching.origin_of("text") is None
        assert watching.moves_of(None) == ()
