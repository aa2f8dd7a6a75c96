"""Stand-ins for what scripts ask of `torch.cuda`, `torch.accelerator`, `torch.xpu`, `torch.mps` and `torch.backends`:
one table.

PyTorch's own Python code stays: it validates arguments, initialises lazily and words its errors. Replaced are the C
functions under it, which a CPU build lacks and a CUDA build without a driver refuses, and a few values that were read
at import. A name that is missing here is added to the table of its module. Tensors, operators and labels are not this
module's business.

Source: torch/cuda/__init__.py, torch/csrc/cuda/Module.cpp, torch/csrc/DeviceAccelerator.cpp, 2.6 to 2.14; what the
real CUDA build answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch

from samedevice.simulation import (
    amp,
    cuda_memory,
    distributed,
    generators,
    grouping,
    legacy_types,
    other_kinds,
    parallel,
    processes,
    profiling,
    streams,
)
from samedevice.simulation.device_answers import DeviceAnswers
from samedevice.simulation.device_properties import ARCH_FLAGS, CudaDeviceProperties, cuda_version, cudnn_version
from samedevice.simulation.lazy_state import lazy_state
from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import ItemPatch, Patch, Undoable
from samedevice.simulation.stand_ins import Table, refused, table

__all__ = ["patches"]


def patches(machine: Machine) -> Iterator[Undoable]:
    """All stand-ins for the device modules of one machine.

    Args:
        machine: what is simulated.

    Yields:
        The changes, none of them installed yet.
    """
    api = DeviceAnswers(machine)
    yield from generators.patches(machine)
    yield from streams.patches(api.streams)
    yield Patch(cuda_memory, "active", api.allocators)
    yield from table(torch._C, api.accelerator())
    for stand_ins in _KINDS.get(machine.kind, ()):
        yield from stand_ins(api)
    if machine.kind != "cuda":
        yield from other_kinds.hide_cuda()
    for module in (amp, legacy_types, grouping, parallel, processes, distributed, profiling):
        yield from module.patches(machine)


def _cuda(api: DeviceAnswers) -> Iterator[Undoable]:
    functions = {**api.device("_cuda_"), **api.memory("_cuda_"), **_cuda_functions(api)}
    yield from table(torch._C, functions)
    yield from table(torch._C, {name: refused(f"torch._C.{name}") for name in _REFUSED if name not in functions})
    yield from table(torch._C, {"_has_cuda": True, "_has_cudnn": True, "_CudaDeviceProperties": CudaDeviceProperties})
    yield from lazy_state(torch.cuda, api)
    yield from table(torch.cuda, _cuda_module(api))
    yield from table(torch.cuda.graphs, {"_cuda_isCurrentStreamCapturing": lambda: False, "CUDAGraph": _CudaGraph})
    yield from table(torch.cuda.graphs, {"_graph_pool_handle": lambda: (0, 1)})
    yield Patch(torch.cuda.nvtx, "_nvtx", _nvtx())
    yield Patch(torch.version, "cuda", cuda_version())
    yield from _backends(api)


def _cuda_functions(api: DeviceAnswers) -> Table:
    """The functions of torch/csrc/cuda/Module.cpp that have no like in other kinds."""
    figure = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}
    sums = ("allocations", "active_requests", "allocated_bytes", "active_bytes", "segment", "reserved_bytes")
    return {
        "_cuda_getDefaultStream": lambda index: (0, *api.streams.data(index)[1:]),
        "_cuda_synchronize": lambda: None,
        "_cuda_ipc_collect": lambda: None,
        "_cuda_lock_mutex": lambda: None,
        "_cuda_unlock_mutex": lambda: None,
        "_cuda_sleep": lambda cycles: None,
        "_cuda_getArchFlags": lambda: ARCH_FLAGS,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_cudaCachingAllocator_set_allocator_settings": lambda settings: None,
        "_cuda_setMemoryMetadata": lambda metadata: None,
        "_cuda_getMemoryMetadata": lambda: "",
        "_cuda_hostMemoryStats": lambda: {
            "num_host_alloc": 0,
            "num_host_free": 0,
            **{name: dict(figure) for name in sums},
        },
        "_cuda_resetPeakHostMemoryStats": lambda: None,
        "_cuda_resetAccumulatedHostMemoryStats": lambda: None,
        "_cuda_record_memory_history": lambda *options, **more: None,
        "_cuda_record_memory_history_legacy": lambda *options, **more: None,
        "_cuda_getCurrentBlasHandle": lambda: 1,
        "_cuda_getCurrentSolverHandle": lambda: 1,
        "_cuda_clearCublasWorkspaces": lambda: None,
        "_host_emptyCache": lambda: None,
        "_cuda_set_sync_debug_mode": lambda mode: setattr(api, "sync_debug_mode", mode),
        "_cuda_get_sync_debug_mode": lambda: api.sync_debug_mode,
        "_cuda_get_cudnn_benchmark_limit": lambda: api.benchmark_limit,
        "_cuda_set_cudnn_benchmark_limit": lambda limit: setattr(api, "benchmark_limit", limit),
    }


_TUNING = (
    *("enable", "is_enabled", "tuning_enable", "tuning_is_enabled", "get_filename", "set_filename", "get_results"),
    *("get_max_tuning_duration", "set_max_tuning_duration", "get_max_tuning_iterations", "set_max_tuning_iterations"),
    *("get_rotating_buffer_size", "set_rotating_buffer_size", "get_validators", "read_file", "write_file"),
)
_REFUSED = (
    *("_cuda_cudaCachingAllocator_raw_alloc", "_cuda_cudaCachingAllocator_raw_delete", "_cuda_cudaHostAllocator"),
    *("_cuda_cudaCachingAllocator_enable", "_cuda_cudaCachingAllocator_is_enabled", "_cuda_allocationTraceback"),
    *("_cuda_customAllocator", "_cuda_changeCurrentAllocator", "_cuda_getAllocator"),
    *("_cuda_jiterator_compile_and_launch_kernel", "_cuda_record_untuned_enable", "_cuda_record_untuned_is_enabled"),
    *(f"_cuda_tunableop_{name}" for name in _TUNING),
)
"""Functions that hand out memory or run code of the device."""


def _cuda_module(api: DeviceAnswers) -> Table:
    """What `torch.cuda` read from C when it was imported."""
    return {
        "_cudart": _cudart(api),
        "_CudaDeviceProperties": CudaDeviceProperties,
        "CUDAGraph": _CudaGraph,
        "is_available": lambda: api.count() > 0,
    }


def _cudart(api: DeviceAnswers) -> SimpleNamespace:
    """The CUDA runtime functions that PyTorch hands out."""
    success = SimpleNamespace(success=0)
    return SimpleNamespace(
        cudaError=success,
        cudaGetErrorString=lambda error: f"error {error}",
        cudaMemGetInfo=api.memory_info,
        **dict.fromkeys(("cudaProfilerStart", "cudaProfilerStop"), lambda: 0),
        **dict.fromkeys(("cudaHostRegister", "cudaHostUnregister"), lambda *arguments: 0),
        **dict.fromkeys(("cudaStreamCreate", "cudaStreamDestroy"), refused("torch.cuda.cudart().cudaStreamCreate")),
    )


def _nvtx() -> SimpleNamespace:
    """Ranges for a profiler that nobody runs; depths are counted as the real functions do."""
    open_ranges: list[str] = []

    def push(message: str) -> int:
        open_ranges.append(message)
        return len(open_ranges) - 1

    def pop() -> int:
        return len(open_ranges) and (open_ranges.pop(), len(open_ranges))[1]

    nothing = dict.fromkeys(("markA", "rangeEnd", "deviceRangeStart", "deviceRangeEnd"), lambda *arguments: None)
    return SimpleNamespace(rangePushA=push, rangePop=pop, rangeStartA=lambda message: 0, **nothing)


class _CudaGraph:
    """`torch.cuda.CUDAGraph`: it can be made, not captured."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.keep_graph = keep_graph

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return refused(f"torch.cuda.CUDAGraph.{name}")


def _backends(api: DeviceAnswers) -> Iterator[Undoable]:
    """`torch.backends.cudnn` and the flags that ask whether a library is there."""
    cudnn = torch.backends.cudnn
    in_module = cudnn.version.__globals__
    yield ItemPatch(in_module, "_init", lambda: True)
    yield ItemPatch(in_module, "__cudnn_version", cudnn_version())
    yield Patch(type(cudnn), "benchmark_limit", _flag(api, "benchmark_limit"))
    yield from table(torch._C, {"_is_flash_attention_available": lambda: True})
    plans = torch.backends.cuda.cuFFTPlanCache
    yield Patch(plans, "size", 0)
    yield Patch(plans, "max_size", 4096)
    yield Patch(plans, "clear", lambda cache: None)
    # Flattening rewrites the weights of an RNN for cuDNN and shows in no result.
    yield Patch(torch, "_use_cudnn_rnn_flatten_weight", lambda: False)


def _flag(api: DeviceAnswers, name: str) -> property:
    return property(lambda module: getattr(api, name), lambda module, value: setattr(api, name, value))


_KINDS = {"cuda": (_cuda,), "xpu": (other_kinds.xpu,), "mps": (other_kinds.mps,)}
