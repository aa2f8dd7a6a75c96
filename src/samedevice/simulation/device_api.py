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

import functools
from collections.abc import Iterator

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
    plugins,
    processes,
    profiling,
    streams,
)
from samedevice.simulation.cuda_objects import CUDAGraph, GreenContext, MemPool, MemPoolContext, cudart, nvtx
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
    yield from table(torch.cuda.graphs, {"_cuda_isCurrentStreamCapturing": lambda: False, "CUDAGraph": CUDAGraph})
    yield from table(torch.cuda.graphs, {"_graph_pool_handle": lambda: (0, 1)})
    yield Patch(torch.cuda.nvtx, "_nvtx", nvtx())
    yield from table(torch.cuda.memory, {"MemPool": MemPool, "MemPoolContext": MemPoolContext, **_pool_functions()})
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
        "_cuda_attach_out_of_memory_observer": lambda observer: None,
        "_cuda_isHistoryEnabled": lambda: False,
        "_cuda_hasPrimaryContext": lambda index: api.initialised_in is not None,
        "_cuda_getCompiledVersion": lambda: _number_of(cuda_version()),
        "_cuda_get_conv_benchmark_empty_cache": lambda: api.benchmark_empties_cache,
        "_cudnn_set_conv_benchmark_empty_cache": lambda on: setattr(api, "benchmark_empties_cache", on),
        **_settings(),
        "_cuda_getCurrentBlasHandle": lambda: 1,
        "_cuda_getCurrentSolverHandle": lambda: 1,
        "_cuda_clearCublasWorkspaces": lambda: None,
        "_host_emptyCache": lambda: None,
        "_cuda_set_sync_debug_mode": lambda mode: setattr(api, "sync_debug_mode", mode),
        "_cuda_get_sync_debug_mode": lambda: api.sync_debug_mode,
        "_cuda_get_cudnn_benchmark_limit": lambda: api.benchmark_limit,
        "_cuda_set_cudnn_benchmark_limit": lambda limit: setattr(api, "benchmark_limit", limit),
    }


def _number_of(version: str) -> int:
    """As CUDART_VERSION is written: 13000 for "13.0"."""
    major, minor = version.split(".")[:2]
    return int(major) * 1000 + int(minor) * 10


def _pool_functions() -> Table:
    """Which pool memory comes from shows in no result."""
    names = (
        *("beginAllocateCurrentThreadToPool", "beginAllocateToPool", "endAllocateToPool", "releasePool"),
        "endAllocateCurrentStreamToPool",
    )
    return {f"_cuda_{name}": lambda *arguments: None for name in names}


def _settings() -> Table:
    """Settings that are kept and have no effect: name of the getter and the setter, and the value at first."""
    kept = {"CublasWorkspaceSize": _WORKSPACE, "CublasLtWorkspaceSize": _WORKSPACE}
    first = dict(kept)
    functions: Table = {}
    for name in first:
        functions[f"_cuda_get{name}"] = functools.partial(kept.__getitem__, name)
        functions[f"_cuda_set{name}"] = functools.partial(kept.__setitem__, name)
        functions[f"_cuda_reset{name}"] = functools.partial(kept.__setitem__, name, first[name])
    return functions


_WORKSPACE = 32 << 20
"""Bytes, as the real CUDA build of 2.13 answered for a device of capability 9.0."""
_TUNING = (
    *("enable", "is_enabled", "tuning_enable", "tuning_is_enabled", "get_filename", "set_filename", "get_results"),
    *("get_max_tuning_duration", "set_max_tuning_duration", "get_max_tuning_iterations", "set_max_tuning_iterations"),
    *(
        "set_numerical_check_tolerances",
        "get_rotating_buffer_size",
        "set_rotating_buffer_size",
        "get_validators",
        "read_file",
        "write_file",
    ),
)
_REFUSED = (
    *("_cuda_cudaCachingAllocator_raw_alloc", "_cuda_cudaCachingAllocator_raw_delete", "_cuda_cudaHostAllocator"),
    *("_cuda_cudaCachingAllocator_enable", "_cuda_cudaCachingAllocator_is_enabled", "_cuda_allocationTraceback"),
    *("_cuda_customAllocator", "_cuda_changeCurrentAllocator", "_cuda_getAllocator"),
    *("_cuda_jiterator_compile_and_launch_kernel", "_cuda_record_untuned_enable", "_cuda_record_untuned_is_enabled"),
    *("_cuda_beginAllocateCurrentStreamToPool", "_cuda_checkPoolLiveAllocations", "_cuda_getCheckpointState"),
    *("_cuda_setCheckpointPoolState",),
    *(f"_cuda_tunableop_{name}" for name in _TUNING),
)
"""Functions that hand out memory or run code of the device."""


def _cuda_module(api: DeviceAnswers) -> Table:
    """What `torch.cuda` read from C when it was imported."""
    return {
        "_cudart": cudart(api),
        "_CudaDeviceProperties": CudaDeviceProperties,
        "CUDAGraph": CUDAGraph,
        "GreenContext": GreenContext,
        "MemPool": MemPool,
        "has_magma": True,
        "is_available": lambda: api.count() > 0,
    }


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


_KINDS = {
    "cuda": (_cuda,),
    "xpu": (other_kinds.xpu,),
    "mps": (other_kinds.mps,),
    **dict.fromkeys(("npu", "hpu", "mtia"), (plugins.patches,)),
}
