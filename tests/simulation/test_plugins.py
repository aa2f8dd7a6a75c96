"""Devices of plugins, as scripts for torch_npu use them; Gaudi's and MTIA's are made alike."""

import importlib.util
import io
import pickle
import platform
import sys

import pytest
import torch
from torch import nn

import samedevice


@pytest.fixture
def npu2():
    with samedevice.simulate("npu:2") as machine:
        yield machine


@pytest.mark.parametrize(
    ("make", "device"),
    [
        (lambda: torch.zeros(2, device="npu"), "npu:0"),
        (lambda: torch.zeros(2, device="npu:1"), "npu:1"),
        (lambda: torch.tensor([1.0], device=torch.device("npu", 1)), "npu:1"),
        (lambda: torch.zeros(2).npu(), "npu:0"),
        (lambda: torch.zeros(2).npu(1), "npu:1"),
        (lambda: torch.zeros(2).to("npu:1").cpu().npu(non_blocking=True), "npu:0"),
        (lambda: nn.Linear(2, 2).npu().weight, "npu:0"),
        (lambda: nn.Linear(2, 2).npu(1).bias, "npu:1"),
        (lambda: nn.utils.rnn.pack_sequence([torch.zeros(2, 1)]).npu().data, "npu:0"),
        (lambda: torch.zeros(2, device="npu:1") * 2, "npu:1"),
        (lambda: torch.zeros(2, device=0), "npu:0"),
        (lambda: pickle.loads(pickle.dumps(torch.zeros(2, device="npu:1"))), "npu:1"),
    ],
)
def test_tensors_are_there(npu2, make, device):
    made = make()
    assert made.device == torch.device(device)
    assert str(made.device) == device
    assert made.is_npu


def test_it_says_what_it_is(npu2):
    import torch_npu

    assert torch_npu.npu is torch.npu is torch.get_device_module("npu")
    assert importlib.util.find_spec("torch_npu") is not None
    assert torch.npu.is_available()
    assert torch.npu.device_count() == torch.accelerator.device_count() == 2
    assert torch.accelerator.current_accelerator() == torch.device("npu")
    assert not torch.cuda.is_available()
    assert not torch.npu.is_initialized()
    assert torch.npu.current_device() == 0
    assert torch.npu.is_initialized()
    assert torch.npu.get_device_name(1) == torch.npu.get_device_properties("npu:1").name
    torch.npu.set_compile_mode(jit_compile=False)
    torch.npu.synchronize()


def test_current_device_streams_and_memory(npu2):
    torch.npu.set_device("npu:1")
    assert torch.zeros(1).npu().device == torch.device("npu:1")
    with torch.npu.device(0):
        kept = torch.zeros(1, device="npu")
        assert kept.device == torch.device("npu:0")
    assert torch.npu.current_device() == 1
    with torch.npu.stream(torch.npu.Stream()) as stream:
        assert torch.npu.current_stream() == stream
    assert torch.npu.memory_allocated(0) == 512
    assert torch.npu.max_memory_allocated(0) >= 512
    free, total = torch.npu.mem_get_info(0)
    assert 0 < free < total
    torch.npu.empty_cache()


def test_random_numbers(npu2):
    torch.npu.manual_seed_all(3)
    state = torch.npu.get_rng_state()
    first = torch.rand(2, device="npu")
    torch.npu.set_rng_state(state)
    assert torch.equal(first, torch.rand(2, device="npu"))
    with pytest.raises(RuntimeError, match="Expected a 'npu' device type for generator but found 'cpu'"):
        torch.rand(2, device="npu", generator=torch.Generator())


def test_training_with_mixed_precision(npu2):
    model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 1)).npu()
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.npu.amp.GradScaler()
    with torch.npu.amp.autocast():
        loss = model(torch.randn(3, 4).npu()).sum()
    assert model[0](torch.randn(3, 4).npu()).dtype is torch.float32
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert {p.grad.device for p in model.parameters()} == {torch.device("npu:0")}
    with torch.autocast("npu", dtype=torch.float16):
        assert model[0](torch.randn(3, 4).npu()).dtype is torch.float16


@pytest.mark.parametrize(
    ("call", "method"),
    [
        (lambda x, c: x @ c, "wrapper_NPU__mm"),
        (lambda x, c: nn.Linear(2, 2)(x), "wrapper_NPU__addmm"),
        (lambda x, c: nn.Embedding(3, 2).npu()(torch.tensor([0])), "wrapper_NPU__index_select"),
        (lambda x, c: x + c, "found at least two devices, npu:0 and cpu!"),
    ],
)
def test_refusals(npu2, call, method):
    with pytest.raises(RuntimeError, match=r"^Expected all tensors to be on the same device") as raised:
        call(torch.zeros(2, 2, device="npu"), torch.zeros(2, 2))
    assert method in str(raised.value)


def test_checkpoints(npu2):
    file = io.BytesIO()
    torch.save({"x": torch.ones(2, device="npu:1")}, file)
    for map_location, device in ((None, "npu:1"), ("npu:0", "npu:0"), ("cpu", "cpu")):
        file.seek(0)
        assert torch.load(file, map_location=map_location)["x"].device == torch.device(device)


def test_after_it_nothing_is_left():
    with samedevice.simulate("npu"):
        torch.zeros(1).npu()
    assert not hasattr(torch, "npu")
    assert not hasattr(torch.Tensor, "npu")
    assert not hasattr(nn.Module, "npu")
    assert not {"torch_npu", "torch.npu"} & set(sys.modules)
    with pytest.raises((NotImplementedError, RuntimeError)):
        torch.zeros(1, device="npu")
    if platform.machine() in ("x86_64", "AMD64"):
        assert torch._C._get_privateuse1_backend_name() == "privateuseone"
        assert not torch.accelerator.is_available()
        with pytest.raises(RuntimeError, match="Expected one of cpu"):
            torch.device("npu")
    with samedevice.simulate("cuda"):
        assert torch.zeros(1, device="cuda").is_cuda
        assert torch.Event().device.type == "cuda"
    with samedevice.simulate("npu"):
        assert torch.zeros(1, device="npu").is_npu


def test_a_plugin_that_has_the_name(tmp_path):
    import subprocess

    script = (
        "import torch, samedevice\n"
        "torch.utils.rename_privateuse1_backend('mine')\n"
        "try:\n"
        "    samedevice.simulate('npu').__enter__()\n"
        "except samedevice.UsageError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("cannot simulate 'npu': a plugin has named PyTorch's custom kind of device 'mine'")


@pytest.mark.parametrize("kind", ["hpu", "mtia"])
def test_others_are_made_alike(kind):
    before = getattr(torch, kind, None)
    with samedevice.simulate(f"{kind}:2"):
        module = torch.get_device_module(kind)
        x = torch.zeros(2, 2, device=f"{kind}:1")
        assert module.device_count() == 2
        assert getattr(torch.zeros(1), kind)().device == torch.device(kind, 0)
        assert getattr(nn.Linear(2, 2), kind)(1).weight.device == torch.device(kind, 1)
        if kind == "hpu":  # of MTIA's autocast Python knows no dispatch key yet
            with torch.autocast(kind, dtype=torch.bfloat16):
                assert (x @ x).dtype is torch.bfloat16
                assert torch.full((1,), 1.0, device=kind).dtype is torch.float32
        with pytest.raises(RuntimeError, match=rf"wrapper_{kind.upper()}__?mm"):
            x @ torch.zeros(2, 2)
    assert getattr(torch, kind, None) is before
