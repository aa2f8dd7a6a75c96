"""What one simulated machine answers: its current device, its memory, its streams, and whether it was used already.

`device_api.py` and `other_kinds.py` put these answers in the place of PyTorch's C functions. The functions that the
modules of all kinds have in common are listed here, by the names that they share.

Source: torch/csrc/cuda/Module.cpp, torch/csrc/xpu/Module.cpp, torch/csrc/DeviceAccelerator.cpp, 2.6 to 2.14.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

import torch

from samedevice.simulation import generators
from samedevice.simulation.cuda_memory import CachingAllocator
from samedevice.simulation.device_properties import CudaDeviceProperties, XpuDeviceProperties
from samedevice.simulation.machine import Machine
from samedevice.simulation.stand_ins import Table
from samedevice.simulation.streams import Streams

__all__ = ["DeviceAnswers"]

_MASK = "CUDA_VISIBLE_DEVICES"


class DeviceAnswers:
    """The answers of one machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.properties = CudaDeviceProperties() if machine.kind == "cuda" else XpuDeviceProperties()
        self.streams = Streams(machine)
        self.allocators = tuple(
            CachingAllocator(self.properties.total_memory, index, machine.kind) for index in range(machine.count)
        )
        self.sync_debug_mode = 0
        self.benchmark_limit = 10
        self.benchmark_empties_cache = False
        self.initialised_in: int | None = None
        self._inherited_mask = os.environ.get(_MASK)

    # -- which device is current --

    def get_device(self) -> int:
        """The index of this thread's current device."""
        return self.machine.current_index

    def set_device(self, index: int) -> None:
        """Make `index` current in this thread."""
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
        """The first use of a device: how many there are is settled now."""
        count = self.count()
        if not count:
            raise RuntimeError(f"No {self.machine.kind.upper()} GPUs are available")
        self.machine.keep_only(count)
        self.initialised_in = os.getpid()
        module: Any = getattr(torch, self.machine.kind, None)
        if hasattr(module, "default_generators") and generators.active is not None:
            module.default_generators = generators.active.default_generators[:count]

    def count(self) -> int:
        """How many devices the script can see: fewer once it has set CUDA_VISIBLE_DEVICES so.

        A mask that was there before the simulation speaks of real devices. Which devices a mask names does not matter:
        simulated ones are all alike.
        """
        mask = os.environ.get(_MASK)
        if self.machine.kind != "cuda" or mask is None or mask == self._inherited_mask or self.initialised_in:
            return self.machine.count
        return min(self.machine.count, len(torch.cuda._parse_visible_devices()))

    def refuse_capability(self, index: int) -> NoReturn:
        """`torch.accelerator.get_device_capability`: as the real CUDA build of 2.13 answered."""
        raise RuntimeError("Backend doesn't support getting device capabilities.")

    def in_bad_fork(self) -> bool:
        """Whether this process was forked from one that had already used the devices."""
        return self.initialised_in not in (None, os.getpid())

    # -- memory --

    def allocator(self, index: int) -> CachingAllocator:
        """The memory of one device.

        Raises:
            RuntimeError: there is no such device, in PyTorch's words.
        """
        if 0 <= index < self.machine.count:
            return self.allocators[index]
        # The index is printed as a character.
        raise RuntimeError(f"Invalid device argument {chr(index % 256)}: did you call init?")

    def memory_info(self, device: Any = None) -> tuple[int, int]:
        """Bytes free and in total."""
        allocator = self.allocators[self.machine.index_of(device)]
        return allocator.free, allocator.total

    def empty_cache(self) -> None:
        """Give back on all devices what no block needs."""
        for allocator in self.allocators:
            allocator.empty_cache()

    # -- tables of C functions --

    def memory(self, prefix: str) -> Table:
        """The memory functions that the modules of all kinds share."""
        return {
            f"{prefix}memoryStats": lambda index: self.allocator(index).stats(),
            f"{prefix}resetPeakMemoryStats": lambda index: self.allocator(index).reset_peaks(),
            f"{prefix}resetAccumulatedMemoryStats": lambda index: self.allocator(index).reset_accumulated(),
            f"{prefix}emptyCache": self.empty_cache,
            f"{prefix}setMemoryFraction": lambda fraction, index: self.allocator(index).limit(fraction),
            f"{prefix}getMemoryFraction": lambda index: self.allocator(index).fraction,
            f"{prefix}memorySnapshot": lambda *which: {"segments": [], "device_traces": [], "allocator_settings": {}},
        }

    def device(self, prefix: str) -> Table:
        """The functions about devices and streams that the modules of all kinds share."""
        return {
            f"{prefix}init": self.initialise,
            f"{prefix}isInBadFork": self.in_bad_fork,
            f"{prefix}getDeviceCount": self.count,
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

    def accelerator(self) -> Table:
        """`torch.accelerator`."""
        kind = type(self.machine.host)(self.machine.kind)
        return {
            "_accelerator_getAccelerator": lambda: kind,
            "_get_accelerator": lambda check=None: kind,
            "_accelerator_deviceCount": self.count,
            "_accelerator_getDeviceIndex": self.get_device,
            "_accelerator_setDeviceIndex": self.set_device,
            "_accelerator_exchangeDevice": self.exchange_device,
            "_accelerator_maybeExchangeDevice": self.exchange_device,
            "_accelerator_getStream": self.streams.current,
            "_accelerator_setStream": self.streams.set_current,
            "_accelerator_synchronizeDevice": lambda index: self.machine.device(index) and None,
            "_accelerator_isAllocatorInitialized": lambda: self.initialised_in is not None,
            "_accelerator_getDeviceCapability": self.refuse_capability,
            "_accelerator_emptyCache": self.empty_cache,
            "_accelerator_emptyHostCache": lambda: None,
            "_accelerator_setAllocatorSettings": lambda settings: None,
            "_accelerator_getDeviceStats": lambda index: self.allocator(index).stats(),
            "_accelerator_resetPeakStats": lambda index: self.allocator(index).reset_peaks(),
            "_accelerator_resetAccumulatedStats": lambda index: self.allocator(index).reset_accumulated(),
            "_accelerator_getMemoryInfo": self.memory_info,
        }
