"""Stand-ins for `torch.xpu` and `torch.mps`, as `device_api.py` has them for `torch.cuda`.

Source: torch/xpu/__init__.py, torch/mps/__init__.py, torch/backends/mps/__init__.py, 2.6 to 2.14.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from samedevice.simulation import generators
from samedevice.simulation.device_answers import DeviceAnswers
from samedevice.simulation.lazy_state import lazy_state
from samedevice.simulation.patching import Patch, Undoable
from samedevice.simulation.stand_ins import Table, refused, table

__all__ = ["hide_cuda", "mps", "xpu"]


def xpu(api: DeviceAnswers) -> Iterator[Undoable]:
    """`torch.xpu`."""
    yield from table(torch._C, {**api.device("_xpu_"), **api.memory("_xpu_"), "_has_xpu": True})
    more = {
        "synchronize": lambda index: None,
        "sleep": lambda cycles: None,
        "getArchFlags": lambda: "pvc",
        "getMemoryInfo": api.memory_info,
    }
    yield from table(torch._C, {f"_xpu_{name}": function for name, function in more.items()})
    memory = ("changeCurrentAllocator", "customAllocator", "getAllocator")
    yield from table(torch._C, {f"_xpu_{name}": refused(f"torch._C._xpu_{name}") for name in memory})
    yield Patch(torch._C, "_xpu_recordMemoryHistory", lambda *options, **more: None)
    yield from lazy_state(torch.xpu, api)


def mps(api: DeviceAnswers) -> Iterator[Undoable]:
    """`torch.mps` and `torch.backends.mps`."""
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
        "setMemoryFraction": allocator.limit,
        "currentAllocatedMemory": allocator.allocated,
        "driverAllocatedMemory": lambda: allocator.total - allocator.free,
        "recommendedMaxMemory": lambda: allocator.total,
        **_mps_profiler(),
        **_mps_events(),
    }
    yield from table(torch._C, {f"_mps_{name}": function for name, function in functions.items()})
    yield Patch(torch._C, "_has_mps", True)
    backend = torch.backends.mps
    # These remember their first answer.
    for name in ("is_available", "is_macos_or_newer", "is_macos13_or_newer"):
        if hasattr(backend, name):
            yield Patch(backend, name, lambda *version: True)


def _mps_profiler() -> Table:
    """`torch.mps.profiler`, and what runs code of the device."""
    nothing = dict.fromkeys(("profilerStartTrace", "profilerStopTrace"), lambda *options: None)
    no = dict.fromkeys(("isCaptureEnabled", "isCapturing"), lambda: False)
    calls = {
        "startCapture": "torch.mps.profiler.metal_capture",
        "stopCapture": "torch.mps.profiler.metal_capture",
        "compileShader": "torch.mps.compile_shader",
        "loadMetalllib": "torch.mps.load_metallib",
        "loadMetallibFromPath": "torch.mps.load_metallib",
        "host_alias_storage": "torch.mps.host_alias_storage",
    }
    return {**nothing, **no, **{name: refused(call) for name, call in calls.items()}}


def _mps_events() -> Table:
    """`torch.mps.Event` counts its events; everything is done when it is recorded."""
    names = ("releaseEvent", "recordEvent", "waitForEvent", "synchronizeEvent")
    return {
        **dict.fromkeys(names, lambda event: None),
        # 0: an event that needs no release, which may come after the simulation.
        "acquireEvent": lambda timing: 0,
        "queryEvent": lambda event: True,
        "elapsedTimeOfEvents": lambda start, end: 0.0,
    }


def hide_cuda() -> Iterator[Undoable]:
    """A machine of another kind has no CUDA device, also where this one has."""
    yield from table(torch.cuda, {"is_available": lambda: False, "device_count": lambda: 0})
