"""Devices that PyTorch knows through a plugin: Ascend's ("npu", `torch_npu`), Gaudi's ("hpu") and "mtia".

The plugin brings `torch.npu`, `x.npu()` and the like; here they are made of the answers of the simulated machine, and
`import torch_npu` finds a module that needs nothing else.

PyTorch has one kind of device without a name for plugins, which is named "npu" meanwhile (`plugin_name.py`).

Source: torch/utils/backend_registration.py, 2.6 to 2.14; the functions that the plugin documents for `torch_npu.npu`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
import torch.utils.backend_registration
from torch.nn.utils.rnn import PackedSequence

from samedevice.simulation import generators
from samedevice.simulation.device_answers import DeviceAnswers
from samedevice.simulation.patching import ItemPatch, Patch, Undoable
from samedevice.simulation.stand_ins import Table

__all__ = ["patches"]

_NAME = "npu"


def patches(api: DeviceAnswers) -> Iterator[Undoable]:
    """The module of the kind, and the methods that its plugin gives to tensors and modules.

    Args:
        api: answers for the devices.

    Yields:
        The changes, none of them installed yet.
    """
    kind = api.machine.kind
    module = _Module(api).made()
    yield Patch(torch, kind, module)
    yield ItemPatch(sys.modules, f"torch.{kind}", module)
    yield Patch(torch.nn.Module, kind, _moving_a_module(kind))
    if kind == _NAME:
        yield from _torch_npu(module)


def _moving_a_module(kind: str) -> Any:
    def move(self: torch.nn.Module, device: Any = None) -> torch.nn.Module:
        moved: torch.nn.Module = self._apply(lambda tensor: getattr(tensor, kind)(device))
        return moved

    return move


def _torch_npu(module: ModuleType) -> Iterator[Undoable]:
    plugin = ModuleType("torch_npu")
    plugin.__dict__.update(npu=module, __version__=torch.__version__, __path__=[])
    plugin.__spec__ = importlib.machinery.ModuleSpec("torch_npu", None)
    for name, known in {"torch_npu.npu": module, "torch_npu": plugin}.items():
        yield ItemPatch(sys.modules, name, known)
    yield Patch(torch.utils.backend_registration, "_privateuse1_backend_name", _NAME)
    for owner in (torch.Tensor, PackedSequence):
        yield Patch(owner, "is_npu", property(lambda self: self.device.type == _NAME))
    yield Patch(PackedSequence, _NAME, lambda self, *args, **kwargs: self.to(_NAME, *args, **kwargs))


class _Module:
    """The module of a kind, `torch.npu`."""

    def __init__(self, api: DeviceAnswers) -> None:
        self._api = api
        self._machine = api.machine
        self._kind = api.machine.kind
        self._initialized = False

    def made(self) -> ModuleType:
        """The module, with the functions of the machine."""
        module = ModuleType(f"torch.{self._kind}")
        module.__dict__.update(self._devices(), **self._memory(), **self._random(), **self._streams())
        amp: Any = ModuleType(f"torch.{self._kind}.amp")
        amp.autocast = functools.partial(torch.autocast, self._kind)
        amp.GradScaler = functools.partial(torch.amp.GradScaler, self._kind)
        module.__dict__.update(amp=amp)
        return module

    def _lazy_init(self) -> None:
        if self._initialized:
            return
        if self._api.in_bad_fork():
            name = self._kind.upper()
            raise RuntimeError(
                f"Cannot re-initialize {name} in forked subprocess. To use {name} with multiprocessing, you must use "
                "the 'spawn' start method"
            )
        self._api.initialise()
        self._initialized = True

    def _devices(self) -> Table:
        index_of = self._machine.index_of
        properties = self._api.properties
        return {
            "init": self._lazy_init,
            "_lazy_init": self._lazy_init,
            "is_initialized": lambda: self._initialized and not self._api.in_bad_fork(),
            "_is_in_bad_fork": self._api.in_bad_fork,
            "is_available": lambda: True,
            "device_count": self._api.count,
            "current_device": self._current_device,
            "set_device": lambda device: self._api.set_device(index_of(device)),
            "device": self._device,
            "device_of": self._device_of,
            "get_device_name": lambda device=None: index_of(device) is not None and properties.name,
            "get_device_properties": lambda device=None: index_of(device) is not None and properties,
            "get_device_capability": lambda device=None: None,
            "can_device_access_peer": lambda device, peer: index_of(device) != index_of(peer),
            "synchronize": lambda device=None: index_of(device) and None,
            "is_bf16_supported": lambda: True,
            "get_amp_supported_dtype": lambda: [torch.float16, torch.bfloat16],
            "set_compile_mode": lambda jit_compile=False: None,
            "set_option": lambda option: None,
        }

    def _current_device(self) -> int:
        self._lazy_init()
        return self._api.get_device()

    @contextlib.contextmanager
    def _device(self, device: Any) -> Iterator[None]:
        index = -1 if device is None or device == -1 else self._machine.index_of(device)
        before = self._api.exchange_device(index)
        try:
            yield
        finally:
            self._api.exchange_device(before)

    def _device_of(self, tensor: torch.Tensor) -> Any:
        return self._device(tensor.device if self._machine.owns(tensor.device) else None)

    def _memory(self) -> Table:
        def figure(statistic: str, part: str) -> Any:
            return lambda device=None: self._allocator(device).stats()[statistic]["all"][part]

        return {
            "empty_cache": self._api.empty_cache,
            "mem_get_info": self._api.memory_info,
            "memory_allocated": figure("allocated_bytes", "current"),
            "max_memory_allocated": figure("allocated_bytes", "peak"),
            "memory_reserved": figure("reserved_bytes", "current"),
            "max_memory_reserved": figure("reserved_bytes", "peak"),
            "memory_stats": lambda device=None: self._allocator(device).stats(),
            "reset_peak_memory_stats": lambda device=None: self._allocator(device).reset_peaks(),
            "reset_max_memory_allocated": lambda device=None: self._allocator(device).reset_peaks(),
            "set_per_process_memory_fraction": lambda fraction, device=None: self._allocator(device).limit(fraction),
        }

    def _allocator(self, device: Any) -> Any:
        return self._api.allocator(self._machine.index_of(device))

    def _streams(self) -> Table:
        streams = self._api.streams
        index_of = self._machine.index_of
        return {
            "Stream": streams.Stream,
            "Event": streams.Event,
            "current_stream": lambda device=None: streams.current(index_of(device)),
            "default_stream": lambda device=None: streams.Stream(**streams.numbers(0, index_of(device))),
            "set_stream": streams.set_current,
            "stream": lambda stream: contextlib.nullcontext() if stream is None else stream,
        }

    def _random(self) -> Table:
        return {
            "manual_seed": lambda seed: self._generator().manual_seed(int(seed)) and None,
            "manual_seed_all": lambda seed: [g.manual_seed(int(seed)) for g in self._generators()] and None,
            "seed": lambda: self._generator().seed() and None,
            "initial_seed": lambda: self._generator().initial_seed(),
            "get_rng_state": lambda device=None: self._generator(device).get_state(),
            "get_rng_state_all": lambda: [generator.get_state() for generator in self._generators()],
            "set_rng_state": lambda state, device=None: self._generator(device).set_state(state) and None,
            "set_rng_state_all": self._set_states,
        }

    def _set_states(self, states: Any) -> None:
        for generator, state in zip(self._generators(), states, strict=True):
            generator.set_state(state)

    def _generators(self) -> tuple[Any, ...]:
        return () if generators.active is None else generators.active.default_generators

    def _generator(self, device: Any = None) -> Any:
        return self._generators()[self._machine.index_of(device)]
