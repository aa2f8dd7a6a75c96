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

import os
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

import torch
from torch._utils import _LazySeedTracker

from samedevice.errors import NotSimulated
from samedevice.simulation import (
    amp,
    cuda_memory,
    distributed,
    generators,
    grouping,
    legacy_types,
    parallel,
    processes,
    streams,
)
from samedevice.simulation.cuda_memory import CachingAllocator
from samedevice.simulation.device_properties import (
    ARCH_FLAGS,
    CudaDeviceProperties,
    XpuDeviceProperties,
    cuda_version,
    cudnn_version,
)
from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import ItemPatch, Patch, Undoable
from samedevice.simulation.streams import Streams

__all__ = ["patches"]

_Table = dict[str, Any]


def patches(machine: Machine) -> Iterator[Undoable]:
    """All stand-ins for the device modules of one machine.

    Args:
        machine: what is simulated.

    Yields:
        The changes, none of them installed yet.
    """
    api = _Api(machine)
    yield from generators.patches(machine)
    yield from streams.patches(api.streams)
    yield Patch(cuda_memory, "active", api.allocators)
    yield from _table(torch._C, api.accelerator())
    yield from {"cuda": _cuda, "xpu": _xpu, "mps": _mps}.get(machine.kind, _other)(api)
    if machine.kind != "cuda":
        yield from _hide_cuda()
    for module in (amp, legacy_types, grouping, parallel, processes, distributed):
        yield from module.patches(machine)


class _Api:
    """The answers of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.properties = CudaDeviceProperties() if machine.kind == "cuda" else XpuDeviceProperties()
        self.streams = Streams(machine)
        self.allocators = tuple(CachingAllocator(self.properties.total_memory) for _ in range(machine.count))
        self.fractions = dict.fromkeys(range(machine.count), 1.0)
        self.sync_debug_mode = 0
        self.benchmark_limit = 10
        self.initialised_in: int | None = None

    # -- which device is current --

    def get_device(self) -> int:
        return self.machine.current_index

    def set_device(self, index: int) -> None:
        self.machine.initialise()
        self.machine.current_index = index

    def exchange_device(self, index: int) -> int:
        """Make `index` current and return what was; nothing happens for a negative index, which stands for no
        device.
        """
        if index < 0:
            return -1
        before = self.machine.current_index
        self.set_device(index)
        return before

    # -- life --

    def initialise(self) -> None:
        self.initialised_in = os.getpid()

    def in_bad_fork(self) -> bool:
        """Whether this process was forked from one that had already used the devices."""
        return self.initialised_in not in (None, os.getpid())

    # -- memory --

    def allocator(self, index: int) -> CachingAllocator:
        if 0 <= index < self.machine.count:
            return self.allocators[index]
        raise RuntimeError("Invalid device argument : did you call init?")

    def memory_info(self, device: Any = None) -> tuple[int, int]:
        """Bytes free and in total."""
        allocator = self.allocators[self.machine.index_of(device)]
        return allocator.free, allocator.total

    def empty_cache(self) -> None:
        for allocator in self.allocators:
            allocator.empty_cache()

    # -- tables of C functions --

    def memory(self, prefix: str) -> _Table:
        """The memory functions that the modules of all kinds share."""
        return {
            f"{prefix}memoryStats": lambda index: self.allocator(index).stats(),
            f"{prefix}resetPeakMemoryStats": lambda index: self.allocator(index).reset_peaks(),
            f"{prefix}resetAccumulatedMemoryStats": lambda index: self.allocator(index).reset_accumulated(),
            f"{prefix}emptyCache": self.empty_cache,
            f"{prefix}setMemoryFraction": lambda fraction, index: self.fractions.update({index: fraction}),
            f"{prefix}getMemoryFraction": lambda index: self.fractions[index],
            f"{prefix}memorySnapshot": lambda *which: {"segments": [], "device_traces": [], "allocator_settings": {}},
        }

    def device(self, prefix: str) -> _Table:
        """The functions about devices and streams that the modules of all kinds share."""
        return {
            f"{prefix}init": self.initialise,
            f"{prefix}isInBadFork": self.in_bad_fork,
            f"{prefix}getDeviceCount": lambda: self.machine.count,
            f"{prefix}getDevice": self.get_device,
            f"{prefix}setDevice": self.set_device,
            f"{prefix}exchangeDevice": self.exchange_device,
            f"{prefix}maybeExchangeDevice": self.exchange_device,
            f"{prefix}canDeviceAccessPeer": lambda index, peer: index != peer,
            f"{prefix}getCurrentStream": self.streams.data,
            f"{prefix}getCurrentRawStream": lambda index: self.streams.data(index)[0],
            f"{prefix}setStream": self.streams.set_by_numbers,
            f"{prefix}getStreamFromExternal": lambda handle, index: (handle, *self.streams.data(index)[1:]),
            f"{prefix}isCurrentStreamCapturing": lambda: False,
        }

    def accelerator(self) -> _Table:
        """`torch.accelerator`."""
        kind = type(self.machine.host)(self.machine.kind)
        return {
            "_accelerator_getAccelerator": lambda: kind,
            "_get_accelerator": lambda check=None: kind,
            "_accelerator_deviceCount": lambda: self.machine.count,
            "_accelerator_getDeviceIndex": self.get_device,
            "_accelerator_setDeviceIndex": self.set_device,
            "_accelerator_exchangeDevice": self.exchange_device,
            "_accelerator_maybeExchangeDevice": self.exchange_device,
            "_accelerator_getStream": self.streams.current,
            "_accelerator_setStream": self.streams.set_current,
            "_accelerator_synchronizeDevice": lambda index: self.machine.device(index) and None,
            "_accelerator_isAllocatorInitialized": lambda: self.initialised_in is not None,
            "_accelerator_emptyCache": self.empty_cache,
            "_accelerator_emptyHostCache": lambda: None,
            "_accelerator_setAllocatorSettings": lambda settings: None,
            "_accelerator_getDeviceStats": lambda index: self.allocator(index).stats(),
            "_accelerator_resetPeakStats": lambda index: self.allocator(index).reset_peaks(),
            "_accelerator_resetAccumulatedStats": lambda index: self.allocator(index).reset_accumulated(),
            "_accelerator_getMemoryInfo": self.memory_info,
        }


# -- CUDA --


def _cuda(api: _Api) -> Iterator[Undoable]:
    functions = {**api.device("_cuda_"), **api.memory("_cuda_"), **_cuda_functions(api)}
    yield from _table(torch._C, functions)
    yield from _table(torch._C, {name: _refused(f"torch._C.{name}") for name in _REFUSED if name not in functions})
    yield from _table(torch._C, {"_has_cuda": True, "_has_cudnn": True, "_CudaDeviceProperties": CudaDeviceProperties})
    yield from _lazy_state(torch.cuda, api)
    yield from _table(torch.cuda, _cuda_module(api))
    yield from _table(torch.cuda.graphs, {"_cuda_isCurrentStreamCapturing": lambda: False, "CUDAGraph": _CudaGraph})
    yield from _table(torch.cuda.graphs, {"_graph_pool_handle": lambda: (0, 1)})
    yield Patch(torch.cuda.nvtx, "_nvtx", _nvtx())
    yield Patch(torch.version, "cuda", cuda_version())
    yield from _backends(api)


def _cuda_functions(api: _Api) -> _Table:
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


def _lazy_state(module: Any, api: _Api) -> Iterator[Undoable]:
    """What the module of a kind knows about its devices: none was used yet, and nothing waits for the first use."""
    values = {"_initialized": False, "_queued_calls": [], "_lazy_seed_tracker": _LazySeedTracker()}
    for name, value in {**values, "_cached_device_count": None}.items():
        yield _Remembered(module, name, value)
    yield Patch(module.random, "device_count", lambda: api.machine.count)
    functions = {
        "_is_in_bad_fork": api.in_bad_fork,
        "_exchange_device": api.exchange_device,
        "_maybe_exchange_device": api.exchange_device,
        "_get_device_properties": lambda index: api.properties,
        "device_count": lambda: api.machine.count,
    }
    yield from _table(module, functions)


class _Remembered(Patch):
    """A value that PyTorch's own code changes in the meantime: it is found again when the patch is installed again."""

    __slots__ = ()

    def undo(self) -> None:
        """Put back what was there before the simulation."""
        self.replacement = vars(self.owner).get(self.name, Patch.ABSENT)
        super().undo()


def _cuda_module(api: _Api) -> _Table:
    """What `torch.cuda` read from C when it was imported."""
    return {
        "_cudart": _cudart(api),
        "_CudaDeviceProperties": CudaDeviceProperties,
        "CUDAGraph": _CudaGraph,
        "is_available": lambda: api.machine.count > 0,
    }


def _cudart(api: _Api) -> SimpleNamespace:
    """The CUDA runtime functions that PyTorch hands out."""
    success = SimpleNamespace(success=0)
    return SimpleNamespace(
        cudaError=success,
        cudaGetErrorString=lambda error: f"error {error}",
        cudaMemGetInfo=api.memory_info,
        **dict.fromkeys(("cudaProfilerStart", "cudaProfilerStop"), lambda: 0),
        **dict.fromkeys(("cudaHostRegister", "cudaHostUnregister"), lambda *arguments: 0),
        **dict.fromkeys(("cudaStreamCreate", "cudaStreamDestroy"), _refused("torch.cuda.cudart().cudaStreamCreate")),
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
        return _refused(f"torch.cuda.CUDAGraph.{name}")


def _backends(api: _Api) -> Iterator[Undoable]:
    """`torch.backends.cudnn` and the flags that ask whether a library is there."""
    cudnn = torch.backends.cudnn
    in_module = cudnn.version.__globals__
    yield ItemPatch(in_module, "_init", lambda: True)
    yield ItemPatch(in_module, "__cudnn_version", cudnn_version())
    yield Patch(type(cudnn), "benchmark_limit", _flag(api, "benchmark_limit"))
    yield from _table(torch._C, {"_is_flash_attention_available": lambda: True})
    # Flattening rewrites the weights of an RNN for cuDNN and shows in no result.
    yield Patch(torch, "_use_cudnn_rnn_flatten_weight", lambda: False)


def _flag(api: _Api, name: str) -> property:
    return property(lambda module: getattr(api, name), lambda module, value: setattr(api, name, value))


# -- other kinds --


def _xpu(api: _Api) -> Iterator[Undoable]:
    yield from _table(torch._C, {**api.device("_xpu_"), **api.memory("_xpu_"), "_has_xpu": True})
    more = {"synchronize": lambda index: None, "getArchFlags": lambda: "pvc", "getMemoryInfo": api.memory_info}
    yield from _table(torch._C, {f"_xpu_{name}": function for name, function in more.items()})
    yield from _lazy_state(torch.xpu, api)


def _mps(api: _Api) -> Iterator[Undoable]:
    allocator = api.allocators[0]
    functions = {
        "is_available": lambda: True,
        "is_on_macos_or_newer": lambda major, minor: True,
        "is_in_bad_fork": api.in_bad_fork,
        "get_name": lambda: "Simulated MPS device",
        "get_core_count": lambda: 40,
        "get_default_generator": lambda: generators.active and generators.active.default_generators[0],
        "deviceSynchronize": lambda: None,
        "emptyCache": api.empty_cache,
        "setMemoryFraction": lambda fraction: api.fractions.update({0: fraction}),
        "currentAllocatedMemory": allocator.allocated,
        "driverAllocatedMemory": lambda: allocator.total - allocator.free,
        "recommendedMaxMemory": lambda: allocator.total,
        **_mps_events(),
    }
    yield from _table(torch._C, {f"_mps_{name}": function for name, function in functions.items()})
    yield Patch(torch._C, "_has_mps", True)
    backend = torch.backends.mps
    # These remember their first answer.
    for name in ("is_available", "is_macos_or_newer", "is_macos13_or_newer"):
        if hasattr(backend, name):
            yield Patch(backend, name, lambda *version: True)


def _mps_events() -> _Table:
    """`torch.mps.Event` counts its events; everything is done when it is recorded."""
    names = ("releaseEvent", "recordEvent", "waitForEvent", "synchronizeEvent")
    return {
        **dict.fromkeys(names, lambda event: None),
        # 0: an event that needs no release, which may come after the simulation.
        "acquireEvent": lambda timing: 0,
        "queryEvent": lambda event: True,
        "elapsedTimeOfEvents": lambda start, end: 0.0,
    }


def _other(api: _Api) -> Iterator[Undoable]:
    """Kinds of which only the device itself is simulated: `torch.accelerator` answers for them."""
    yield from ()


def _hide_cuda() -> Iterator[Undoable]:
    """A machine of another kind has no CUDA device, also where this one has."""
    yield from _table(torch.cuda, {"is_available": lambda: False, "device_count": lambda: 0})


# -- the form of the tables --


def _table(owner: Any, values: _Table) -> Iterator[Undoable]:
    return (Patch(owner, name, value) for name, value in values.items())


def _refused(call: str) -> Callable[..., NoReturn]:
    def refuse(*arguments: Any, **more: Any) -> NoReturn:
        raise NotSimulated(
            f"{call} has no counterpart on a simulated device: it needs the device's own memory and code."
        )

    return refuse
