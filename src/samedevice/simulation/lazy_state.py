"""The lazy initialisation of `torch.cuda` and `torch.xpu`: as in a new process, and with the machine's own devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch._utils import _LazySeedTracker

from samedevice.simulation.device_answers import DeviceAnswers
from samedevice.simulation.patching import Patch, Undoable
from samedevice.simulation.stand_ins import Remembered, table

__all__ = ["lazy_state"]


def lazy_state(module: Any, api: DeviceAnswers) -> Iterator[Undoable]:
    """What the module of a kind knows about its devices: none was used yet, and nothing waits for the first use."""
    values = {"_initialized": False, "_queued_calls": [], "_lazy_seed_tracker": _LazySeedTracker()}
    for name, value in {**values, "_cached_device_count": None}.items():
        yield Remembered(module, name, value)
    yield Patch(module.random, "device_count", api.count)
    functions = {
        "_is_in_bad_fork": api.in_bad_fork,
        "_exchange_device": api.exchange_device,
        "_maybe_exchange_device": api.exchange_device,
        "_get_device_properties": lambda index: api.properties,
        "device_count": api.count,
    }
    yield from table(module, functions)
