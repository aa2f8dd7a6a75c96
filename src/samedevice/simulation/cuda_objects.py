"""Objects that `torch.cuda` takes from C: graphs, memory pools, the CUDA runtime and its error codes.

What has no counterpart on the CPU can be made and asked, and refuses its work in one sentence. Functions are
`device_api.py`'s.

Source: torch/csrc/cuda/Graph.cpp, MemPool.cpp, shared/cudart.cpp, 2.6 to 2.14.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

from samedevice.simulation.device_answers import DeviceAnswers
from samedevice.simulation.stand_ins import refused

__all__ = ["CUDAGraph", "GreenContext", "MemPool", "MemPoolContext", "cudart", "nvtx"]


class CUDAGraph:
    """`torch.cuda.CUDAGraph`: it can be made, not captured."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.keep_graph = keep_graph

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return refused(f"torch.cuda.CUDAGraph.{name}")


class GreenContext:
    """`torch.cuda.GreenContext`: a part of a device's processors."""

    create = staticmethod(refused("torch.cuda.GreenContext.create"))
    max_workqueue_concurrency = staticmethod(refused("torch.cuda.GreenContext.max_workqueue_concurrency"))

    def __init__(self) -> None:
        raise TypeError("GreenContext: No constructor defined!")


class MemPool:
    """`torch.cuda.MemPool`: where memory comes from shows in no result, so it is a number."""

    _numbers: ClassVar[Any] = itertools.count(1)

    def __init__(self, allocator: Any = None, *options: Any, **more: Any) -> None:
        self.allocator = allocator
        self.id = (0, next(MemPool._numbers))

    def use_count(self) -> int:
        """How many hold the pool."""
        return 1

    def snapshot(self, include_traces: bool = True) -> list[Any]:
        """The pool's segments, of which nothing is known."""
        return []


class MemPoolContext:
    """`torch.cuda.MemPoolContext`, 2.6 to 2.7: which pool is in use."""

    def __init__(self, pool: MemPool) -> None:
        self.pool = pool


class _CudaError(int):
    """`torch.cuda.cudart().cudaError`."""

    success: ClassVar[int] = 0


_ERRORS = {
    0: "no error",
    1: "invalid argument",
    2: "out of memory",
    100: "no CUDA-capable device is detected",
    101: "invalid device ordinal",
    700: "an illegal memory access was encountered",
}
"""What cudaGetErrorString says: the CUDA runtime's list of cudaError_t, its most common entries."""


def cudart(api: DeviceAnswers) -> SimpleNamespace:
    """The CUDA runtime functions that PyTorch hands out.

    Args:
        api: answers for the devices.
    """
    return SimpleNamespace(
        cudaError=_CudaError,
        cudaGetErrorString=lambda error: _ERRORS.get(int(error), "unrecognized error code"),
        cudaMemGetInfo=api.memory_info,
        **dict.fromkeys(("cudaProfilerStart", "cudaProfilerStop"), lambda: 0),
        **dict.fromkeys(("cudaHostRegister", "cudaHostUnregister"), lambda *arguments: 0),
        **dict.fromkeys(("cudaStreamCreate", "cudaStreamDestroy"), refused("torch.cuda.cudart().cudaStreamCreate")),
    )


def nvtx() -> SimpleNamespace:
    """Ranges for a profiler that nobody runs; depths are counted as the real functions do."""
    open_ranges: list[str] = []

    def push(message: str) -> int:
        open_ranges.append(message)
        return len(open_ranges) - 1

    def pop() -> int:
        return len(open_ranges) and (open_ranges.pop(), len(open_ranges))[1]

    ignored: Callable[..., None] = lambda *arguments: None  # noqa: E731
    nothing = dict.fromkeys(("markA", "rangeEnd", "deviceRangeStart", "deviceRangeEnd"), ignored)
    return SimpleNamespace(rangePushA=push, rangePop=pop, rangeStartA=lambda message: 0, **nothing)
