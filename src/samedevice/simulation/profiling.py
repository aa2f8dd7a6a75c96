"""Profilers on simulated devices: they time the CPU, on which everything runs, and say nothing of events that no
device records.

Source: torch/autograd/profiler.py, torch/profiler/profiler.py, 2.6 to 2.14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch.autograd.profiler

from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import Patch, Undoable

__all__ = ["patches"]

# Any: neither exports by name what the other imports from it.
_autograd: Any = torch.autograd
_profiler: Any = torch.autograd.profiler


def patches(machine: Machine) -> Iterator[Undoable]:
    """`torch.profiler.profile(activities=[…, CUDA])`, `torch.autograd.profiler.profile(use_device="cuda")`,
    `emit_nvtx`.

    Args:
        machine: what is simulated.

    Yields:
        The changes, none of them installed yet.
    """
    if machine.kind != "cuda":
        return
    supported = _with_cuda(_autograd._supported_activities)
    for owner in (_profiler, _autograd):
        yield Patch(owner, "_supported_activities", supported)
    yield Patch(_profiler, "ProfilerState", _without_device_events(_profiler.ProfilerState))
    yield Patch(_profiler.emit_nvtx, "__enter__", _enter)
    yield Patch(_profiler.emit_nvtx, "__exit__", lambda self, *exception: None)


def _with_cuda(original: Callable[[], set[Any]]) -> Callable[[], set[Any]]:
    return lambda: {*original(), _profiler.ProfilerActivity.CUDA}


def _without_device_events(states: Any) -> SimpleNamespace:
    """The states of a profiler, the one that records an event on the device for each operator being the ordinary
    one.
    """
    return SimpleNamespace(**{**states.__members__, "KINETO_GPU_FALLBACK": states.KINETO})


def _enter(emitter: Any) -> Any:
    if emitter.enabled and emitter.entered:
        raise RuntimeError("NVTX annotation context manager is not reentrant")
    emitter.entered = True
    return emitter
