"""Streams and events of simulated devices: everything is done when it is asked for, so waiting is over at once.

`torch.Stream` can be made on any build from its three numbers (stream_id, device_index, device_type); the classes here
are subclasses that fill those in, so that operators which take a stream accept them. `torch.Event` needs a driver
for everything but its construction, so events keep their own time. Nothing here changes where tensors are.

Source: torch/csrc/Stream.cpp, torch/csrc/Event.cpp, torch/csrc/cuda/Stream.cpp and Event.cpp,
c10/cuda/CUDAStream.cpp; 2.6 to 2.14.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from samedevice.simulation.calls import torch_version
from samedevice.simulation.patching import Patch, Undoable

if TYPE_CHECKING:
    from samedevice.simulation.machine import Machine

__all__ = ["Streams", "patches"]

# Any: what the type stubs say of these C classes leaves out how they are made.
_RealStream: Any = torch.Stream
_RealEvent: Any = torch.Event
_DEVICE_TYPES = {"cuda": 1, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19, "npu": 20}
"""c10/core/DeviceType.h."""
_NO_TIME = ValueError if torch_version() >= (2, 7) else RuntimeError
_POOL = itertools.count(3, 32)
"""Ids as the stream pool of a real device numbers them: 3, 35, 67 …"""


class _StreamType(type):
    accepts_real = False

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _RealStream) if cls.accepts_real else super().__instancecheck__(instance)


class _Stream(_RealStream, metaclass=_StreamType):  # type: ignore[misc]
    """`torch.Stream` on a simulated device."""

    streams: ClassVar[Streams]
    priority = 0

    def __new__(cls, device: Any = None, *, priority: int = 0, **numbers: int) -> Any:
        if cls.accepts_real and cls.streams.is_of_another_kind(device):
            return _RealStream(device, priority=priority)
        if "stream_id" not in numbers:
            numbers = cls.streams.numbers(next(_POOL), cls.streams.machine.index_of(device))
        return super().__new__(cls, **numbers)

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """Nothing is under way on a simulated device."""

    def wait_event(self, event: Any) -> None:
        """Whatever the event stands for has happened."""

    def wait_stream(self, stream: Any) -> None:
        """Whatever the other stream was given is done; one of another kind of device may have no events."""
        if not isinstance(stream, _Stream):
            stream.record_event()

    def record_event(self, event: Any = None) -> Any:
        """Record `event`, or a new one, and return it."""
        event = self.streams.event(self.device.type) if event is None else event
        event.record(self)
        return event

    def is_capturing(self) -> bool:
        return False

    @property
    def native_handle(self) -> int:
        return int(self.stream_id)

    def __enter__(self) -> _Stream:
        self._before = (self.streams.current(None), self.streams.current(self.device_index))
        self.streams.set_current(self)
        return self

    def __exit__(self, *exception: object) -> None:
        for stream in reversed(self._before):
            self.streams.set_current(stream)


class _CudaStream(_Stream):
    """`torch.cuda.Stream` on a simulated device."""

    def __new__(cls, device: Any = None, priority: int = 0, **numbers: int) -> Any:
        numbers.pop("stream_ptr", None)
        return super().__new__(cls, device, priority=priority, **numbers)

    @property
    def cuda_stream(self) -> int:
        """The handle: 0 for the default stream."""
        return int(self.stream_id)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_stream)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        return 0, -3

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class _ExternalStream(_CudaStream):
    """`torch.cuda.ExternalStream`: a stream that another library made, by its handle."""

    def __new__(cls, stream_ptr: int, device: Any = None, **numbers: int) -> Any:
        return super().__new__(cls, **cls.streams.numbers(stream_ptr, cls.streams.machine.index_of(device)))


class _EventType(type):
    accepts_real = False

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _RealEvent) if cls.accepts_real else super().__instancecheck__(instance)


class _Event(_RealEvent, metaclass=_EventType):  # type: ignore[misc]
    """`torch.Event` on a simulated device."""

    streams: ClassVar[Streams]
    _timing: bool
    _index: int | None
    _time: float | None

    def __new__(cls, device: Any = None, *, enable_timing: bool = False, **flags: bool) -> Any:
        if cls.streams.is_of_another_kind(device):
            return _RealEvent(device, enable_timing=enable_timing, **flags)
        self = super().__new__(cls, enable_timing=enable_timing)
        self._timing = enable_timing
        self._index = None
        self._time = None
        return self

    @property
    def device(self) -> Any:
        """Without an index before the event is recorded, whatever it was made with."""
        kind = self.streams.machine.kind
        return torch.device(kind) if self._index is None else torch.device(kind, self._index)

    @property
    def event_id(self) -> int:
        return 0 if self._time is None else id(self)

    def record(self, stream: Any = None) -> None:
        """Record the event in `stream`, or in the current one.

        Raises:
            RuntimeError: the stream is of another device than the one that first recorded the event.
        """
        stream = self.streams.current(None) if stream is None else stream
        if self._index not in (None, stream.device_index):
            raise RuntimeError(
                f"Event device {self._index} does not match recording stream's device {stream.device_index}."
            )
        self._index, self._time = stream.device_index, time.perf_counter()

    def query(self) -> bool:
        return True

    def wait(self, stream: Any = None) -> None:
        """Whatever the event stands for has happened."""

    def synchronize(self) -> None:
        """Whatever the event stands for has happened."""

    def elapsed_time(self, end_event: _Event) -> float:
        """The time between two recorded events.

        Returns:
            milliseconds of this machine, not of the one that is simulated.

        Raises:
            ValueError: an event was made without `enable_timing=True`, or never recorded; a RuntimeError in 2.6.
        """
        if not (self._timing and end_event._timing):
            raise _NO_TIME("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise _NO_TIME("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1000.0

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return (
            f"torch.Event device_type={self.device.type}, device_index={index}, "
            f"event_flag={int(self._timing)}, event_id={self.event_id}"
        )


class _CudaEvent(_Event):
    """`torch.cuda.Event` on a simulated device."""

    def __new__(
        cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> Any:
        return super().__new__(cls, enable_timing=enable_timing)

    @property
    def device(self) -> Any:
        """None before the event is recorded: a CUDA event is created on first use."""
        return None if self._index is None else torch.device("cuda", self._index)

    @property
    def cuda_event(self) -> int:
        return self.event_id

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.cuda_event)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>" if self.cuda_event else "<torch.cuda.Event uninitialized>"


class Streams:
    """The stream and event classes of one machine, and each thread's current streams."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._local = threading.local()
        generic = {"streams": self, "__module__": "torch", "accepts_real": True}
        cuda = {"streams": self, "__module__": "torch.cuda"}
        self.Stream: Any = _StreamType("Stream", (_Stream,), generic)
        self.Event: Any = _EventType("Event", (_Event,), generic)
        self.CudaStream: Any = _StreamType("Stream", (_CudaStream,), cuda)
        self.ExternalStream = _StreamType("ExternalStream", (_ExternalStream, self.CudaStream), cuda)
        self.CudaEvent: Any = _EventType("Event", (_CudaEvent,), cuda)

    def numbers(self, stream_id: int, index: int) -> dict[str, int]:
        """What identifies a stream to PyTorch."""
        return {"stream_id": stream_id, "device_index": index, "device_type": _DEVICE_TYPES[self.machine.kind]}

    def is_of_another_kind(self, device: Any) -> bool:
        """Whether `device` is none of this machine's: PyTorch itself has streams and events, or none, for it."""
        return device is not None and not self.machine.owns(torch.device(device))

    def event(self, kind: str) -> Any:
        """A new event, of the class that a stream of this kind makes."""
        return self.CudaEvent() if kind == "cuda" else self.Event()

    def data(self, index: int) -> tuple[int, int, int]:
        """stream_id, device_index and device_type of the current stream of device `index` in this thread."""
        index = self.machine.current_index if index < 0 else self.machine.device(index).index
        stream_id = getattr(self._local, "current", {}).get(index, 0)
        return stream_id, index, _DEVICE_TYPES[self.machine.kind]

    def current(self, index: int | None) -> Any:
        """The current stream of device `index`, or of the current device, in this thread."""
        stream_id, index, _ = self.data(-1 if index is None else index)
        return self.Stream(**self.numbers(stream_id, index))

    def set_current(self, stream: Any) -> None:
        """Make `stream` current in this thread, and its device too."""
        self.set_by_numbers(stream.stream_id, stream.device_index)

    def set_by_numbers(self, stream_id: int, device_index: int, device_type: int = 0) -> None:
        """As `set_current`, from the numbers that identify a stream."""
        self.machine.current_index = device_index
        self._local.__dict__.setdefault("current", {})[device_index] = stream_id


def patches(streams: Streams) -> Iterator[Undoable]:
    """The stream and event classes of `torch` and of the simulated kind's module."""
    yield Patch(torch, "Stream", streams.Stream)
    yield Patch(torch, "Event", streams.Event)
    yield Patch(torch.Tensor, "record_stream", _record_stream)
    if streams.machine.kind == "cuda":
        for owner in (torch.cuda, torch.cuda.streams):
            yield Patch(owner, "Stream", streams.CudaStream)
            yield Patch(owner, "ExternalStream", streams.ExternalStream)
            yield Patch(owner, "Event", streams.CudaEvent)
    elif streams.machine.kind == "xpu":
        for owner in (torch.xpu, torch.xpu.streams):
            yield Patch(owner, "Stream", streams.Stream)
            yield Patch(owner, "Event", streams.Event)


def _record_stream(tensor: torch.Tensor, stream: torch.Stream) -> None:
    """Memory is never used again before its work is done; on the CPU there is no such operator, as on a real
    machine.
    """
    if tensor.device.type == "cpu":
        torch.ops.aten.record_stream(tensor, stream)
