"""What scripts ask of torch.cuda, torch.accelerator and torch.backends. Expected: what the real CUDA build answered."""

import re
from pathlib import Path

import pytest
import torch

import samedevice
from samedevice.errors import NotSimulated


def test_the_machine_is_there_and_untouched_until_used(cuda2):
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 2
    assert not torch.cuda.is_initialized()
    assert torch.cuda.current_device() == 0
    assert torch.cuda.is_initialized()


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.zeros(1).cuda(),
        lambda: torch.zeros(1).to("cuda"),
        lambda: torch.zeros(1, device="cuda"),
        lambda: torch.tensor([1], device="cuda"),
        lambda: torch.nn.Linear(1, 1).to("cuda:1"),
        lambda: torch.cuda.set_device(0),
        lambda: torch.cuda.get_device_name(0),
        lambda: torch.cuda.synchronize(),
    ],
)
def test_first_use_initialises(cuda2, use):
    use()
    assert torch.cuda.is_initialized()


@pytest.mark.parametrize("seed", [torch.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all])
def test_asking_and_seeding_do_not_initialise(cuda2, seed):
    seed(3)
    assert torch.accelerator.is_available()
    assert torch.device("cuda") != torch.device(0)
    assert not torch.cuda.is_initialized()


def test_after_it_nothing_is_there():
    with samedevice.simulate("cuda"):
        torch.zeros(1, device="cuda")
    assert torch.cuda.is_available() == (torch.cuda.device_count() > 0)
    assert not torch.cuda.is_initialized()


@pytest.mark.parametrize(("mask", "count"), [("1", 1), ("0,1", 2), ("2,3,4", 2), ("", 0), ("-1", 0)])
def test_a_mask_that_the_script_sets(monkeypatch, mask, count):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with samedevice.simulate("cuda:2"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
        assert torch.cuda.device_count() == torch.accelerator.device_count() == count
        assert torch.cuda.is_available() == (count > 0)
        if not count:
            with pytest.raises(RuntimeError, match=r"^No CUDA GPUs are available$"):
                torch.zeros(1, device="cuda")
        else:
            torch.cuda.init()
            monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
            assert torch.cuda.device_count() == count, "settled at the first use"
            assert len(torch.cuda.get_rng_state_all()) == count
        if count == 1:
            with pytest.raises(RuntimeError, match="invalid device ordinal"):
                torch.zeros(1, device="cuda:1")


def test_a_mask_from_before_speaks_of_real_devices(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with samedevice.simulate("cuda:2"):
        assert torch.cuda.device_count() == 2
        assert torch.zeros(1).cuda(1).device == torch.device("cuda:1")


def test_current_device(cuda2):
    torch.cuda.set_device("cuda:1")
    assert torch.cuda.current_device() == torch.accelerator.current_device_index() == 1
    assert torch.zeros(1, device="cuda").device == torch.device("cuda:1")
    with torch.cuda.device(0):
        assert torch.zeros(1).cuda().device == torch.device("cuda:0")
    with torch.cuda.device(-1), torch.cuda.device_of(torch.zeros(1)), torch.cuda.device(None):
        assert torch.cuda.current_device() == 1
    with torch.cuda.device_of(torch.zeros(1, device="cuda:0")):
        assert torch.cuda.current_device() == 0
    assert torch.cuda.current_device() == 1
    torch.accelerator.set_device_index(0)
    assert torch.cuda.current_device() == 0


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: torch.cuda.set_device(7), RuntimeError, "CUDA error: invalid device ordinal"),
        (lambda: torch.cuda.synchronize(7), RuntimeError, "CUDA error: invalid device ordinal"),
        (lambda: torch.cuda.device(7).__enter__(), RuntimeError, "CUDA error: invalid device ordinal"),
        (lambda: torch.accelerator.set_device_index(5), RuntimeError, "CUDA error: invalid device ordinal"),
        (lambda: torch.cuda.get_device_properties(2), AssertionError, "Invalid device id"),
        (lambda: torch.cuda.can_device_access_peer(0, 5), AssertionError, "Invalid peer device id"),
        (lambda: torch.cuda.set_device("cpu"), ValueError, "Expected a cuda device, but got: cpu"),
        (lambda: torch.cuda.get_device_name("cpu"), ValueError, "Expected a cuda device, but got: cpu"),
        (lambda: torch.cuda.memory_allocated(7), RuntimeError, "Invalid device argument \x07: did you call init?"),
        (lambda: torch.cuda.utilization(), ModuleNotFoundError, "does not seem to be installed"),
    ],
)
def test_refusals(cuda2, call, error, says):
    torch.cuda.init()
    with pytest.raises(error) as raised:
        call()
    assert says in str(raised.value)
    if "ordinal" in says and hasattr(torch, "AcceleratorError"):
        assert type(raised.value) is torch.AcceleratorError


def test_properties(cuda2):
    properties = torch.cuda.get_device_properties("cuda:1")
    assert torch.cuda.get_device_capability() == (properties.major, properties.minor) == (9, 0)
    assert torch.cuda.get_device_name() == properties.name
    assert torch.cuda.is_bf16_supported()
    assert properties.total_memory > 2**30
    assert repr(properties).startswith(
        f"_CudaDeviceProperties(name='{properties.name}', major=9, minor=0, total_memory="
    )
    assert "sm_90" in torch.cuda.get_arch_list()
    assert torch.cuda.get_gencode_flags().startswith("-gencode compute=compute_75,code=sm_75")
    assert torch.cuda.can_device_access_peer(0, 1)
    assert torch.version.cuda.count(".") == 1


def test_accelerator_and_modules(cuda2):
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.accelerator.device_count() == 2
    assert torch.get_device_module("cuda") is torch.cuda
    assert torch.get_device_module() is torch.cuda
    torch.accelerator.synchronize()
    assert not torch.xpu.is_available()


def test_backends(cuda2, recwarn):
    cudnn = torch.backends.cudnn
    assert torch.backends.cuda.is_built()
    assert (cudnn.is_available(), cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, True, False, False)
    assert cudnn.version() > 90000
    assert cudnn.benchmark_limit == 10
    assert cudnn.is_acceptable(torch.zeros(1, device="cuda"))
    assert not cudnn.is_acceptable(torch.zeros(1))
    assert torch.backends.cuda.matmul.allow_tf32 is False
    with cudnn.flags(enabled=False, benchmark_limit=3):
        assert not cudnn.enabled
        assert cudnn.benchmark_limit == 3
    assert cudnn.benchmark_limit == 10
    assert not recwarn.list


def test_what_does_nothing_does_it_without_complaint(cuda2):
    for call in (torch.cuda.synchronize, torch.cuda.empty_cache, torch.cuda.ipc_collect, torch.cuda.init):
        assert call() is None
    assert torch.cuda.nvtx.range_push("outer") == 0
    assert torch.cuda.nvtx.range_pop() == 0
    with torch.cuda.nvtx.range("step"):
        torch.cuda.profiler.start()
        torch.cuda.profiler.stop()
    torch.cuda.set_sync_debug_mode("warn")
    assert torch.cuda.get_sync_debug_mode() == 1
    torch.cuda.memory._record_memory_history(enabled=None)
    assert torch.cuda.current_blas_handle()
    assert torch.cuda.get_allocator_backend() == "native"
    assert not torch.cuda.is_current_stream_capturing()
    torch.backends.cuda.cufft_plan_cache.clear()
    assert torch.backends.cuda.cufft_plan_cache[1].size == 0


@pytest.mark.filterwarnings("ignore")
def test_profilers_time_what_runs(cuda2, capfd):
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    assert torch.profiler.ProfilerActivity.CUDA in torch.profiler.supported_activities()
    x = torch.ones(2, device="cuda")
    with torch.profiler.profile(activities=activities) as modern:
        x + x
    with torch.autograd.profiler.profile(use_device="cuda") as older:
        x + x
    with torch.autograd.profiler.emit_nvtx():
        x + x
    for result in (modern, older):
        assert "aten::add" in {event.key for event in result.key_averages()}
    assert "Failed to record CUDA event" not in capfd.readouterr().err


def test_graphs_are_refused_in_one_sentence(cuda2):
    graph = torch.cuda.CUDAGraph()
    with (
        pytest.raises(NotSimulated, match=r"^torch\.cuda\.CUDAGraph\.capture_begin has no counterpart"),
        torch.cuda.graph(graph),
    ):
        pass
    with pytest.raises(NotSimulated, match=r"CUDAGraph\.replay"):
        graph.replay()


ANOTHER_BUILD = {"_cuda_getHipblasltVersion", "_mps_is_on_macos_13_or_newer"}
"""Asked of ROCm alone, and of no PyTorch since 2.1."""


@pytest.mark.parametrize("kind", ["cuda", "xpu", "mps"])
def test_whatever_pytorch_s_python_code_asks_of_c_is_there(kind):
    folder = Path(torch.__file__).parent
    files = [*(folder / kind).rglob("*.py"), *(folder / "accelerator").rglob("*.py"), folder / "random.py"]
    files += (folder / "backends" / kind).rglob("*.py")
    asked = {
        name
        for path in files
        for name in re.findall(rf"_C\.(_(?:{kind}|accelerator)_\w+)", path.read_text(encoding="utf-8"))
    }
    with samedevice.simulate(kind):
        assert {name for name in asked - ANOTHER_BUILD if not hasattr(torch._C, name)} == set()


def test_default_generators_come_with_the_first_use(cuda2):
    torch.manual_seed(3)
    torch.cuda.manual_seed_all(3)
    assert torch.cuda.default_generators == ()
    torch.zeros(1, device="cuda")
    assert [generator.device for generator in torch.cuda.default_generators] == list(cuda2.devices)


def test_memory_pools_and_workspaces_show_in_no_result(cuda2):
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        assert torch.zeros(1, device="cuda").is_cuda
    assert pool.snapshot() == []
    if hasattr(torch.backends.cuda, "cublas_workspace_size"):
        assert torch.backends.cuda.cublas_workspace_size() == 32 << 20
        assert torch.backends.cuda.cublas_workspace_size(1 << 20) == 1 << 20


def test_errors_of_the_runtime(cuda2):
    torch.cuda.check_error(0)
    with pytest.raises(torch.cuda.CudaError, match=r"^out of memory \(2\)$"):
        torch.cuda.check_error(2)


def test_mps():
    with samedevice.simulate("mps"):
        assert torch.backends.mps.is_available()
        assert torch.backends.mps.is_built()
        assert torch.mps.device_count() == 1
        assert not torch.cuda.is_available()
        assert torch.accelerator.current_accelerator() == torch.device("mps")
        torch.mps.synchronize()
        torch.mps.empty_cache()
        torch.mps.manual_seed(3)
        first = torch.rand(2, device="mps")
        torch.mps.manual_seed(3)
        assert torch.equal(first, torch.rand(2, device="mps"))
        assert torch.mps.current_allocated_memory() > 0
        event = torch.mps.Event(enable_timing=True)
        event.record()
        assert event.query()
    assert not torch.backends.mps.is_available()


def test_xpu():
    with samedevice.simulate("xpu:2"):
        assert torch.xpu.is_available()
        assert torch.xpu.device_count() == 2
        torch.xpu.set_device(1)
        assert torch.zeros(1, device="xpu").device == torch.device("xpu:1")
        assert torch.xpu.get_device_properties(0).type == "gpu"
        torch.xpu.synchronize()
        assert torch.xpu.memory_allocated(1) == 0
        assert torch.xpu.current_stream().device == torch.device("xpu:1")
        assert not torch.cuda.is_available()
    assert not torch.xpu.is_available()
