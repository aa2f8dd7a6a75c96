import pytest
import torch

from samedevice.simulation.calls import torch_version


def test_streams_have_devices_and_are_done(cuda2):
    stream = torch.cuda.Stream(device="cuda:1")
    assert stream.device == torch.device("cuda:1")
    assert stream.query()
    assert stream.synchronize() is None
    assert isinstance(stream, torch.Stream)
    assert isinstance(stream, torch.cuda.Stream)
    assert stream == stream
    assert stream != torch.cuda.Stream(device="cuda:1")
    assert {stream: 1}[stream] == 1
    assert repr(torch.cuda.current_stream()) == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert torch.Stream("cuda").device == torch.device("cuda:0")


def test_a_stream_is_current_within_its_block(cuda2):
    side = torch.cuda.Stream(device="cuda:1")
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        assert torch.cuda.current_device() == 1
        assert torch.zeros(1, device="cuda").device == torch.device("cuda:1")
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream("cuda:1") == torch.cuda.default_stream("cuda:1")
    with torch.cuda.stream(None):
        assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with torch.Stream("cuda:1") as stream:
        assert torch.accelerator.current_stream() == stream
    assert torch.accelerator.current_stream() == torch.cuda.default_stream()
    side.wait_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_event(side.record_event())


def test_events_measure_time(cuda2):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    assert repr(start) == "<torch.cuda.Event uninitialized>"
    assert start.device is None
    start.record()
    torch.ones(10, device="cuda").sum()
    end.record(torch.cuda.current_stream())
    torch.cuda.synchronize()
    assert start.elapsed_time(end) > 0
    assert start.query()
    assert start.device == torch.device("cuda:0")
    assert isinstance(start, torch.Event)
    assert torch.Event("cuda").device == torch.device("cuda")


def test_events_refuse_as_real_ones(cuda2):
    refused = ValueError if torch_version() >= (2, 7) else RuntimeError
    timed, plain = torch.cuda.Event(enable_timing=True), torch.cuda.Event()
    with pytest.raises(refused, match=r"Both events must be recorded before calculating elapsed time\."):
        timed.elapsed_time(torch.cuda.Event(enable_timing=True))
    with pytest.raises(refused, match=r"Both events must be created with argument 'enable_timing=True'\."):
        timed.elapsed_time(plain)
    plain.record(torch.cuda.Stream("cuda:0"))
    with pytest.raises(RuntimeError, match=r"Event device 0 does not match recording stream's device 1\."):
        plain.record(torch.cuda.Stream("cuda:1"))


def test_record_stream_is_for_tensors_on_a_device(cuda2):
    torch.zeros(1, device="cuda").record_stream(torch.cuda.Stream())
    with pytest.raises(
        NotImplementedError, match="Could not run 'aten::record_stream' with arguments from the 'CPU' backend"
    ):
        torch.zeros(1).record_stream(torch.cuda.Stream())


def test_other_kinds_of_device_have_streams_of_their_own(cuda2):
    stream = torch.Stream("cpu")
    assert stream.device == torch.device("cpu")
    assert stream.query()
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events"):
        torch.Stream("cuda").wait_stream(stream)
    assert torch.Event("cpu").device == torch.device("cpu")
    with pytest.raises(RuntimeError, match="not linked with support for xpu devices"):
        torch.Stream("xpu")
    assert torch.Event("cuda:1").device == torch.device("cuda")
