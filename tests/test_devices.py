"""Device names: what is read, completed, refused, and in which words."""

from __future__ import annotations

import types

import pytest
import torch

from samedevice import devices
from samedevice.errors import SameDeviceError, UnavailableDevice, UnknownDevice


@pytest.fixture
def two_gpus(monkeypatch):
    """A machine that answers as one with two CUDA devices, the second of them current."""
    answers = {"is_available": True, "is_initialized": True, "device_count": 2, "current_device": 1}
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, lambda answer=answer: answer)


@pytest.fixture
def no_gpu(monkeypatch):
    for name, answer in {"is_available": False, "is_initialized": False, "device_count": 0}.items():
        monkeypatch.setattr(torch.cuda, name, lambda answer=answer: answer)
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None, raising=False)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cpu", ("cpu", None)), ("cuda", ("cuda", None)), ("cuda:1", ("cuda", 1)), ("mps:0", ("mps", 0))],
)
def test_split_reads_type_and_index(name, expected):
    assert devices.split(name) == expected


@pytest.mark.parametrize(
    "name", ["gpu", "", "CUDA", " cuda", "cuda ", "cuda:", "cuda:x", "cuda:-1", "cuda:01", "cuda:0:1"]
)
def test_what_torch_refuses_is_no_device(name):
    with pytest.raises(RuntimeError):
        torch.device(name)
    with pytest.raises(UnknownDevice):
        devices.split(name)


def test_types_are_those_of_torch():
    with pytest.raises(RuntimeError) as raised:
        torch.device("gpu")
    listed = str(raised.value).removeprefix("Expected one of ").partition(" device type")[0].split(", ")
    ours = {*devices._TYPES} - {"privateuseone"} | {torch._C._get_privateuse1_backend_name()}
    assert ours == set(listed)


def test_an_unknown_name_is_refused_with_a_suggestion():
    with pytest.raises(UnknownDevice) as raised:
        devices.parse("gpu")
    assert str(raised.value) == (
        '"gpu" is no device. Did you mean "cuda"? '
        'Devices are cpu, cuda, mps, xpu, meta, xla, hpu, mtia; an index may follow, as in "cuda:0".'
    )
    assert isinstance(raised.value, (SameDeviceError, ValueError))


@pytest.mark.parametrize(
    ("name", "suggestion"), [("CUDA", "cuda"), ("cude", "cuda"), ("cuda0", "cuda"), ("tpu", "xla"), ("metal", "mps")]
)
def test_near_misses_suggest_what_was_meant(name, suggestion):
    with pytest.raises(UnknownDevice, match=f'Did you mean "{suggestion}"'):
        devices.parse(name)


def test_a_bad_index_is_told_from_a_bad_type():
    with pytest.raises(UnknownDevice, match='"cuda:x" is no device: after the colon comes a whole number'):
        devices.parse("cuda:x")
    with pytest.raises(UnknownDevice, match="-1 is no device: indices count from 0"):
        devices.parse(-1)


def test_a_plugin_that_is_not_imported_is_named():
    with pytest.raises(UnknownDevice, match="Mend: import torch_npu first"):
        devices.parse("npu")
    with pytest.raises(UnavailableDevice, match="it comes with torch_xla, which is not imported"):
        devices.parse("xla:0")


@pytest.mark.parametrize("device", [None, True, 1.5, [1], b"cpu"])
def test_what_is_no_name_is_a_type_error(device):
    with pytest.raises(TypeError, match=f"not {type(device).__name__}"):
        devices.parse(device)


@pytest.mark.parametrize("kind", ["cpu", "meta"])
@pytest.mark.parametrize("suffix", ["", ":0", ":3"])
def test_cpu_and_meta_are_always_here_and_have_no_index(kind, suffix):
    expected = torch.empty(1, device=kind + suffix).device
    assert devices.parse(kind + suffix) == devices.parse(torch.device(kind + suffix)) == expected
    assert expected.index is None


def test_cuda_means_the_current_device(two_gpus):
    assert devices.parse("cuda") == devices.parse(torch.device("cuda")) == torch.device("cuda:1")
    assert devices.parse(0) == devices.parse("cuda:0") == torch.device("cuda:0")
    assert devices.available() == ("cpu", "cuda:0", "cuda:1", "meta")


def test_names_of_one_device_are_the_same(two_gpus):
    assert devices.same("cuda", "cuda:1")
    assert not devices.same("cuda", "cuda:0")
    assert devices.same(torch.device("cpu"), "cpu:0")


def test_an_index_beyond_the_machine_is_refused(two_gpus):
    with pytest.raises(UnavailableDevice) as raised:
        devices.parse("cuda:9")
    assert str(raised.value) == (
        "cuda:9 is not available: there are 2 cuda devices, counted from 0. Available here: cpu, cuda:0, cuda:1, meta."
    )
    assert isinstance(raised.value, RuntimeError)
    with pytest.raises(UnavailableDevice):
        devices.parse(torch.device("cuda:2"))
    with pytest.raises(UnavailableDevice):
        devices.parse(2)


def test_no_cuda_at_all(no_gpu):
    with pytest.raises(UnavailableDevice) as raised:
        devices.parse("cuda")
    assert str(raised.value) == (
        f"cuda is not available: torch {torch.__version__} is a build without CUDA. Available here: cpu, meta."
    )
    with pytest.raises(UnavailableDevice, match="this machine has none"):
        devices.parse(0)


def test_a_cuda_build_without_a_driver(no_gpu, monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    # NVML may count a device that the runtime cannot use.
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(UnavailableDevice, match="finds no usable GPU and driver"):
        devices.parse("cuda:0")


def test_complete_asks_for_no_device(no_gpu):
    assert devices.complete("cuda") == torch.device("cuda:0")
    assert devices.complete("cuda:3") == torch.device("cuda:3")
    assert devices.complete("xla") == torch.device("xla")


def test_a_backend_without_current_device_has_index_0(monkeypatch):
    monkeypatch.setattr(torch, "mps", types.SimpleNamespace(device_count=lambda: 1))
    assert devices.parse("mps") == torch.device("mps:0")
    assert "mps:0" in devices.available()


def test_an_imported_plugin_without_a_torch_module_is_believed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch_xla", types.ModuleType("torch_xla"))
    assert devices.parse("xla:5") == torch.device("xla:5")


def test_an_out_of_tree_backend_goes_by_its_own_name(monkeypatch):
    monkeypatch.setattr(torch._C, "_get_privateuse1_backend_name", lambda: "npu")
    assert devices.split("npu:1") == ("npu", 1)


@pytest.mark.parametrize("name", ["cuda:128", "cuda:256", "cuda:99999999999999999999"])
def test_an_index_that_torch_would_take_for_another_device(name, two_gpus):
    with pytest.raises(UnknownDevice, match="from 0 to 127"):
        devices.complete(name)
    with pytest.raises(UnavailableDevice, match="there are 2 cuda devices"):
        devices.parse(name)
    assert str(devices.complete("cuda:127")) == "cuda:127"
