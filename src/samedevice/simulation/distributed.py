"""`torch.distributed` with the backend of a kind of device ("nccl", "xccl", "hccl") on simulated ones: gloo carries it,
the group says and checks what that backend would.

Each process of a group simulates for itself. PyTorch's Python code decides what a group is; here are a
`ProcessGroupNCCL` for builds that have none, its registration for the CPU, where the tensors really are, the refusal
of tensors that are there, and the buckets of `DistributedDataParallel`, which C++ allocates.

Source: torch/distributed/distributed_c10d.py, torch/csrc/distributed/c10d/ProcessGroup.hpp, reducer.cpp,
ProcessGroupNCCL.cpp (`check_gpu_single_tensor`), 2.6 to 2.14.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import importlib
from collections import deque
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
import torch._prims_common
from torch.utils import _pytree as pytree

from samedevice.simulation import labels, observers
from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import ItemPatch, Patch, Undoable

__all__ = ["patches"]

_TIMEOUT = timedelta(minutes=10)
_LETTING_GO = timedelta(seconds=2)
"""How long the end of a process waits for collectives that other processes left alone."""
_LAST: deque[Any] = deque(maxlen=16)
"""The last works of groups that ended."""
# They outlive Python, or they would be what a thread holds when that ends.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_LAST))
_THREADS = 1
"""As NCCL, which runs the collectives of a group one after another."""
_COLLECTIVES = (
    *("allreduce", "allreduce_coalesced", "broadcast", "reduce", "allgather", "_allgather_base", "allgather_coalesced"),
    *("allgather_into_tensor_coalesced", "gather", "scatter", "reduce_scatter", "_reduce_scatter_base"),
    *("reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base", "send", "recv", "recv_anysource"),
    *("all_gather_single", "all_gather_single_coalesced", "all_to_all_single"),
    *("reduce_scatter_single", "reduce_scatter_single_coalesced"),
)
"""Methods of a process group that take tensors."""
_FLAT = ("_allgather_base", "_reduce_scatter_base", "all_gather_single", "reduce_scatter_single")
"""Of their tensors only the number of elements counts; gloo looks at shapes. `…_single`: since 2.13."""
_CONTIGUOUS = ("allreduce", "broadcast", "reduce", *_FLAT)
_BACKENDS = {"cuda": "nccl", "xpu": "xccl", "npu": "hccl", "hpu": "hccl"}


def patches(machine: Machine) -> Iterator[Undoable]:
    """The "nccl" backend, where `torch.distributed` was built at all.

    Args:
        machine: what is simulated.

    Yields:
        The changes, none of them installed yet.
    """
    if machine.kind not in _BACKENDS:
        return
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        return
    c10d: Any = importlib.import_module("torch.distributed.distributed_c10d")
    ddp: Any = importlib.import_module("torch.nn.parallel.distributed")
    yield from _backend(c10d, machine.kind, _BACKENDS[machine.kind])
    original: Any = torch.distributed.Reducer  # type: ignore[attr-defined]
    yield Patch(torch.distributed, "Reducer", _reducer_type(machine, original))
    yield Patch(c10d, "_new_process_group_helper", _registering_for_cpu(c10d, machine.kind))
    verify = "_verify_param_shape_across_processes"
    yield Patch(ddp, verify, _checked(c10d, verify, getattr(ddp, verify)))
    yield Patch(c10d.ProcessGroup, "_device_types", property(_claimed(c10d, c10d.ProcessGroup._device_types.fget)))
    for name in ("shutdown", "abort"):
        if hasattr(c10d.ProcessGroup, name):
            yield Patch(c10d.ProcessGroup, name, _letting_go(machine.kind, getattr(c10d.ProcessGroup, name)))
    for name in _COLLECTIVES:
        if hasattr(c10d.ProcessGroup, name):
            yield Patch(c10d.ProcessGroup, name, _checked(c10d, name, getattr(c10d.ProcessGroup, name)))


def _backend(c10d: Any, kind: str, name: str) -> Iterator[Undoable]:
    """The backend: PyTorch's own are a class and a flag, others are registered as their plugin does."""
    group = _group_type(c10d, name)
    if name != "hccl":
        for owner in (c10d, torch.distributed):
            yield Patch(owner, f"ProcessGroup{name.upper()}", group)
        yield Patch(c10d, f"_{name.upper()}_AVAILABLE", True)
        if name == "nccl":
            yield Patch(c10d, "default_pg_nccl_timeout", _TIMEOUT)
        return

    def create(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
        options = group.Options()
        options._timeout = timeout
        return group(store, rank, size, options)

    backend = c10d.Backend
    yield Patch(backend, name.upper(), name)
    yield Patch(backend, "backend_list", [*backend.backend_list, name])
    yield ItemPatch(backend.default_device_backend_map, kind, name)
    yield ItemPatch(backend.backend_capability, name, [kind])
    yield ItemPatch(backend.backend_type_map, name, c10d.ProcessGroup.BackendType.CUSTOM)
    yield ItemPatch(backend._plugins, name.upper(), backend._BackendPlugin(create, False))


def _group_type(c10d: Any, name: str) -> Any:
    class Options:
        """`ProcessGroupNCCL.Options` and its like: kept, without effect."""

        def __init__(self, is_high_priority_stream: bool = False) -> None:
            self.is_high_priority_stream = is_high_priority_stream
            self._timeout = _TIMEOUT
            self.split_from = self.split_color = None
            self.global_ranks_in_group: list[int] = []
            self.group_name = ""

    class Group(c10d.ProcessGroupGloo):  # type: ignore[misc]
        """The backend of a simulated machine."""

        def __init__(self, store: Any, rank: int, size: int, options: Any = None) -> None:
            carrier = c10d.ProcessGroupGloo._Options()
            carrier._timeout = (options or Options())._timeout
            carrier._devices = [c10d.ProcessGroupGloo.create_default_device()]
            carrier._threads = _THREADS
            super().__init__(store, rank, size, carrier)
            atexit.register(self._let_go)

        def _shutdown(self) -> None:
            """Gloo's connections close when the group is dropped."""
            atexit.unregister(self._let_go)
            self._let_go()

        abort = _shutdown

        def _let_go(self) -> None:
            """Wait until no thread of the group holds tensors, as none does of NCCL's.

            A thread of gloo drops the tensors of a collective a moment after it woke who waits for that. If Python
            ends in that moment, the process aborts: "terminate called without an active exception", pytorch#190489.
            The work below needs no other process. Its end says that the one thread has dropped all earlier ones.
            """
            with contextlib.suppress(RuntimeError):
                _LAST.append(self.allreduce([torch.empty(0, device="cpu")]))
                _LAST[-1].wait(_LETTING_GO)

        def perform_nocolor_split(self, device: torch.device) -> None:
            """Only real communicators are split."""

    Group.Options = Options
    Group.__name__ = Group.__qualname__ = f"ProcessGroup{name.upper()}"
    return Group


def _letting_go(kind: str, original: Callable[[Any], None]) -> Callable[[Any], None]:
    """What ends a process group from Python; C++ does not know of `_shutdown`. `abort`, `shutdown`: since 2.7 or so."""

    @functools.wraps(original)
    def end(group: Any) -> None:
        with contextlib.suppress(RuntimeError):
            backend = group._get_backend(torch.device(kind))
            if hasattr(backend, "_shutdown"):
                backend._shutdown()
        original(group)

    return end


def _registering_for_cpu(c10d: Any, kind: str) -> Callable[..., Any]:
    """Groups made for devices also serve the CPU, where simulated tensors are in truth."""
    original = c10d._new_process_group_helper

    @functools.wraps(original)
    def helper(*args: Any, **kwargs: Any) -> Any:
        group, store = original(*args, **kwargs)
        if group is not c10d.GroupMember.NON_GROUP_MEMBER and _claims(c10d, group) == {kind}:
            backend = group._get_backend(torch.device(kind))
            number = getattr(c10d.ProcessGroup.BackendType, _BACKENDS[kind].upper(), None)
            group._register_backend(torch.device("cpu"), number or c10d.ProcessGroup.BackendType.CUSTOM, backend)
        return group, store

    return helper


def _claims(c10d: Any, group: Any) -> set[str]:
    """The kinds of device that the group serves by its own account, e.g. {"cuda"} for "cuda:nccl"."""
    config = str(c10d._world.pg_backend_config.get(group, ""))
    return {part.partition(":")[0] for part in config.split(",") if ":" in part}


def _claimed(c10d: Any, original: Callable[[Any], list[torch.device]]) -> Callable[[Any], list[torch.device]]:
    """The devices of a group without those that it serves only in truth."""

    def device_types(group: Any) -> list[torch.device]:
        claims = _claims(c10d, group)
        return [device for device in original(group) if not claims or device.type in claims]

    return device_types


def _checked(c10d: Any, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    """A collective that refuses what the backend of its group does not serve."""

    @functools.wraps(original)
    def collective(group: Any, *args: Any, **kwargs: Any) -> Any:
        claims = _claims(c10d, group)
        for leaf in pytree.tree_leaves((args, kwargs)) if claims else ():
            if isinstance(leaf, torch.Tensor):
                _check_tensor(leaf, claims, name)
        if name in _FLAT and claims and "cpu" not in claims:
            args = tuple(value.view(-1) if isinstance(value, torch.Tensor) else value for value in args)
        return original(group, *args, **kwargs)

    return collective


def _check_tensor(tensor: torch.Tensor, claims: set[str], name: str) -> None:
    if tensor.device.type not in claims:
        raise RuntimeError(f"No backend type associated with device type {tensor.device.type}")
    if name in _CONTIGUOUS and "cpu" not in claims and tensor.layout is torch.strided:
        suggested = torch._prims_common.suggest_memory_format(tensor)
        if not tensor.is_contiguous(memory_format=suggested):
            raise ValueError("Tensors must be contiguous")


def _reducer_type(machine: Machine, original: Any) -> Any:
    """`Reducer`, whose buckets are on the device of the parameters that they hold gradients of."""

    class Reducer(original):  # type: ignore[misc]
        def __init__(self, parameters: Any, *args: Any, **kwargs: Any) -> None:
            self._device = next((parameter.device for parameter in parameters), machine.host)
            with _made_on(self._device):
                super().__init__(parameters, *args, **kwargs)

        def _rebuild_buckets(self) -> Any:
            with _made_on(self._device):
                return super()._rebuild_buckets()

    return Reducer


@contextlib.contextmanager
def _made_on(device: torch.device) -> Iterator[None]:
    """Within it every tensor that is made is on `device`."""

    def place(event: observers.Event) -> None:
        if event.kind == "made":
            for tensor in event.results:
                labels.set_device(tensor, device)

    unsubscribe = observers.subscribe(place)
    try:
        yield
    finally:
        unsubscribe()
