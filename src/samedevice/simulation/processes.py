"""Child processes that are machines with the same devices: DataLoader workers, `torch.multiprocessing.spawn`, queues
of tensors.

A forked child inherits the simulation; PyTorch's own check then refuses what real devices refuse after a fork. A
child that starts anew ("spawn", "forkserver") is told to simulate as the first thing that it unpickles, before it
imports the main script. Children started by a command of their own (`torchrun`, `subprocess`) are not reached here.

Source: multiprocessing/spawn.py, `get_preparation_data`; torch/multiprocessing/reductions.py, 2.6 to 2.14.
"""

from __future__ import annotations

import contextlib
import multiprocessing.spawn
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.multiprocessing.reductions as reductions

from samedevice.simulation import labels
from samedevice.simulation.machine import Machine, active
from samedevice.simulation.patching import ItemPatch, Patch, Undoable, for_good

__all__ = ["joining", "patches"]

joining: list[Callable[[], None]] = []
"""What a child that starts anew calls once it simulates; all must pickle."""


def patches(machine: Machine) -> Iterator[Undoable]:
    """What children are told, and how tensors travel to them.

    Args:
        machine: what is simulated.

    Yields:
        The changes, none of them installed yet.
    """
    yield Patch(multiprocessing.spawn, "get_preparation_data", _telling(machine))
    reducers = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    for kind in (torch.Tensor, torch.nn.Parameter):
        yield ItemPatch(reducers, kind, _reducer(machine, reducers.get(kind, reductions.reduce_tensor)))


class _Simulation:
    """Starts the simulation in the process that unpickles it."""

    def __init__(self, machine: Machine) -> None:
        self._text = machine.kind if machine.count == 1 else f"{machine.kind}:{machine.count}"

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return _begin, (self._text, tuple(joining))


def _begin(text: str, also: tuple[Callable[[], None], ...]) -> None:
    from samedevice.simulation.simulate import simulate

    if active() is None:
        for_good(simulate(text))
        for call in also:
            call()


def _telling(machine: Machine) -> Callable[[str], dict[str, Any]]:
    original = multiprocessing.spawn.get_preparation_data

    def get_preparation_data(name: str) -> dict[str, Any]:
        # First, so that it is unpickled first. Keys that `multiprocessing.spawn.prepare` does not know are ignored.
        return {"samedevice": _Simulation(machine), **original(name)}

    return get_preparation_data


def _reducer(machine: Machine, original: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    """Pickles a tensor for another process: one on a simulated device by its shared memory, as CUDA's handles do."""

    def reduce_tensor(tensor: torch.Tensor) -> Any:
        if not machine.owns(tensor.device) or tensor.layout is not torch.strided:
            return original(tensor)
        if tensor.requires_grad and not tensor.is_leaf:
            return original(tensor)
        device = tensor.device
        shape = (tensor.storage_offset(), tensor.size(), tensor.stride(), tensor.requires_grad)
        storage = tensor.untyped_storage()
        with _on_host(tensor, device):
            rebuild = reductions.reduce_storage(storage)
        return _rebuild, (str(device), type(tensor), tensor.dtype, rebuild, shape)

    return reduce_tensor


@contextlib.contextmanager
def _on_host(tensor: torch.Tensor, device: torch.device) -> Iterator[None]:
    labels.set_device(tensor, torch.device("cpu"))
    try:
        yield
    finally:
        labels.set_device(tensor, device)


def _rebuild(device: str, kind: type, dtype: torch.dtype, storage: Any, shape: Any) -> torch.Tensor:
    function, arguments = storage
    typed = torch.storage.TypedStorage(wrap_storage=function(*arguments), dtype=dtype, _internal=True)
    tensor: torch.Tensor = reductions.rebuild_tensor(kind, typed, shape)
    if (machine := active()) is not None:
        labels.set_device(tensor, machine.complete(device))
    return tensor
