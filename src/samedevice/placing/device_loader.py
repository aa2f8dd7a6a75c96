"""A loader whose batches arrive on the device, the next one already on its way.

`DeviceLoader` changes nothing about the loader: it starts no thread and no process, and whatever else is asked of it
(`dataset`, `sampler`, `batch_size`, `len`) the loader answers.

Note [A copy beside the computation]

On CUDA each batch is copied on a stream of its own while the batch before it is in use. Four things keep that right:

1. The stream that computes waits for the copy (`wait_stream`) before a batch is handed out.
2. Each tensor is told that it is used on that stream (`record_stream`): the allocator must not give its memory to the
   next copy while kernels still read it.
3. The copy is over before the loader is asked again, so that a loader may fill the same pinned buffer each time.
4. A batch that holds CUDA tensors already is moved on the computing stream, where its tensors were made.

An exception of the loader is kept until the batches before it have been handed out, as in a plain loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch

from samedevice import devices
from samedevice.placing.inside import tensors_inside
from samedevice.placing.move_to_device import move_to_device
from samedevice.trees.path import Path

if TYPE_CHECKING:
    from samedevice.devices import DeviceLike

__all__ = ["DeviceLoader"]

Batch = TypeVar("Batch")


class DeviceLoader(Generic[Batch]):
    """Wraps any iterable of batches; each batch arrives on `device`.

        loader = samedevice.DeviceLoader(DataLoader(dataset, pin_memory=True), "cuda")
        for images, labels in loader:  # both on cuda:0
            ...

    Args:
        loader: a `DataLoader`, or anything else that can be iterated.
        device: where its batches go. On CUDA the next batch is copied while this one is used, without waiting where the
            batch lies in pinned memory; the loader is then one batch ahead of the loop.

    Raises:
        UnknownDevice: `device` names no device.
        UnavailableDevice: this machine does not have it.
    """

    def __init__(self, loader: Iterable[Batch], device: DeviceLike) -> None:
        self.loader = loader
        self.device = devices.parse(device)

    def __iter__(self) -> Iterator[Batch]:
        return self._ahead() if self.device.type == "cuda" else self._plainly()

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]  # a loader without a length raises Python's own TypeError

    def __getattr__(self, name: str) -> Any:
        # While unpickling or copying there is no loader yet; asking for it would ask again, for ever.
        if name == "loader" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        return getattr(self.loader, name)

    def set_epoch(self, epoch: int) -> None:
        """Tell the epoch to whatever shuffles by it: the loader, else its samplers and its dataset.

        Args:
            epoch: as `DistributedSampler.set_epoch` takes it.
        """
        if hasattr(self.loader, "set_epoch"):
            self.loader.set_epoch(epoch)
            return
        parts: list[Any] = [getattr(self.loader, name, None) for name in ("sampler", "batch_sampler", "dataset")]
        parts.append(getattr(parts[1], "sampler", None))
        for part in {id(part): part for part in parts if hasattr(part, "set_epoch")}.values():
            part.set_epoch(epoch)

    def _plainly(self) -> Iterator[Batch]:
        for batch in self.loader:
            yield move_to_device(batch, self.device)

    def _ahead(self) -> Iterator[Batch]:
        """See Note [A copy beside the computation]."""
        copying = torch.cuda.Stream(self.device)
        batches = iter(self.loader)
        try:
            upcoming = self._fetch(batches, copying)
            while not isinstance(upcoming, _Ended):
                _hand_over(upcoming, copying)
                batch = upcoming
                copying.synchronize()
                upcoming = self._fetch(batches, copying)
                yield batch
            if upcoming.error is not None:
                raise upcoming.error
        finally:
            copying.synchronize()

    def _fetch(self, batches: Iterator[Batch], copying: torch.cuda.Stream) -> Batch | _Ended:
        """Ask the loader for a batch and start its copy."""
        try:
            batch = next(batches)
            if any(tensor.is_cuda for tensor in _tensors(batch)):
                return move_to_device(batch, self.device)
            with torch.cuda.stream(copying):
                return move_to_device(batch, self.device, non_blocking=True)
        except StopIteration:
            return _Ended()
        except Exception as error:
            return _Ended(error)


@dataclass(frozen=True, slots=True)
class _Ended:
    """The loader has no more batches, or the exception that it raised instead of one."""

    error: Exception | None = None


def _hand_over(batch: Any, copying: torch.cuda.Stream) -> None:
    """Let the stream that computes use a batch that was copied on `copying`."""
    computing = torch.cuda.current_stream(copying.device)
    computing.wait_stream(copying)
    for tensor in _tensors(batch):
        if tensor.is_cuda:
            tensor.record_stream(computing)


def _tensors(batch: Any) -> Iterator[torch.Tensor]:
    return (tensor for _, tensor in tensors_inside(batch, Path("batch")))
