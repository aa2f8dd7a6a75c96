import threading

import pytest
import torch

import samedevice
from samedevice.simulation.machine import active, current, parse_machine


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cuda", ("cuda:0",)),
        ("cuda:2", ("cuda:0", "cuda:1")),
        ("mps", ("mps:0",)),
        ("xpu:3", ("xpu:0", "xpu:1", "xpu:2")),
    ],
)
def test_a_machine_is_described_by_kind_and_number(text, names):
    assert parse_machine(text).names == names


@pytest.mark.parametrize(
    "text", ["cuda:129", "cpu", "gpu", "cuda:0", "cuda:x", "cuda:-1", "cuda:", "", "mps:2", "meta"]
)
def test_other_descriptions_are_refused(text):
    with pytest.raises(samedevice.UsageError, match="cannot simulate"):
        parse_machine(text)


def test_devices_are_completed():
    machine = parse_machine("cuda:2")
    machine.current_index = 1
    assert machine.complete("cuda") is machine.devices[1]
    assert machine.complete("cuda:0") is machine.devices[0]
    assert machine.complete(torch.device("cuda", 0)) is machine.devices[0]
    assert machine.complete(1) is machine.devices[1]
    assert machine.complete("cpu") is machine.host
    assert machine.complete("meta") == torch.device("meta")


@pytest.mark.parametrize("device", ["cuda:2", 7, torch.device("cuda", 5)])
def test_a_device_that_is_not_there_is_refused_in_the_runtime_s_words(device):
    with pytest.raises(RuntimeError, match="CUDA error: invalid device ordinal") as caught:
        parse_machine("cuda:2").complete(device)
    assert type(caught.value) is getattr(torch, "AcceleratorError", RuntimeError)


def test_what_is_no_device_is_refused_in_pytorch_s_words():
    with pytest.raises(RuntimeError, match="Device index must not be negative"):
        parse_machine("cuda").complete(-1)
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        parse_machine("cuda").complete("gpu")
    with pytest.raises(RuntimeError, match="Invalid device string"):
        parse_machine("cuda").complete("cuda:-1")


def test_each_thread_has_its_own_current_device():
    machine = parse_machine("cuda:2")
    machine.current_index = 1
    seen = []
    thread = threading.Thread(target=lambda: seen.append(machine.current_index))
    thread.start()
    thread.join()
    assert seen == [0]
    assert machine.current_index == 1


def test_index_of_wants_its_own_kind():
    machine = parse_machine("cuda:2")
    assert machine.index_of() == 0
    assert machine.index_of("cuda:1") == 1
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        machine.index_of("cpu")


def test_the_current_machine():
    assert active() is None
    with pytest.raises(samedevice.NotSimulated):
        current()
    with samedevice.simulate("cuda") as machine:
        assert current() is machine
    assert active() is None


def test_what_is_no_text_is_wrong_usage():
    with pytest.raises(samedevice.UsageError, match="give a kind of device as text"), samedevice.simulate(2):
        pass
