"""Copies between the devices of one machine: what `torch.nn.DataParallel` and `torch.nn.parallel.comm` ask of C++.

Which devices are allowed, what is split and who waits is PyTorch's own Python code; here are only the copies under
it, written with ordinary tensor operations, so that gradients and labels follow.

Source: torch/csrc/cuda/comm.cpp and python_comm.cpp, torch/csrc/cuda/python_nccl.cpp, 2.6 to 2.14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import torch

from samedevice.errors import NotSimulated
from samedevice.simulation.machine import Machine
from samedevice.simulation.patching import Patch, Undoable
from samedevice.texts import say

__all__ = ["patches"]

_NCCL_VERSION = (2 << 32) | (28 << 16) | 9


def patches(machine: Machine) -> Iterator[Undoable]:
    """The copying functions, and a fresh memory of the streams that scatter uses.

    Args:
        machine: what is simulated.

    Yields:
        The changes, none of them installed yet.
    """
    import torch.nn.parallel._functions as functions

    yield Patch(functions, "_streams", None)
    if machine.kind == "cuda":
        for name, function in {**_comm(machine), **_nccl()}.items():
            yield Patch(torch._C, name, function)


def _comm(machine: Machine) -> dict[str, Callable[..., Any]]:
    def place(index: int) -> torch.device:
        return machine.host if index < 0 else machine.device(index)

    def broadcast(tensor: torch.Tensor, devices: Sequence[int]) -> list[torch.Tensor]:
        return [tensor.to(place(index)) for index in devices]

    def broadcast_coalesced(
        tensors: Sequence[torch.Tensor], devices: Sequence[int], buffer_size: int
    ) -> list[list[torch.Tensor]]:
        if any(tensor.get_device() != devices[0] for tensor in tensors):
            raise RuntimeError(f"All tensors must be on devices[0]: {devices[0]}")
        return [[tensor.to(place(index)) for tensor in tensors] for index in devices]

    def scatter(
        tensor: torch.Tensor, devices: Sequence[int], chunk_sizes: Sequence[int] | None, dim: int, streams: Any = None
    ) -> list[torch.Tensor]:
        chunks = _chunks(tensor, len(devices), chunk_sizes, dim)
        return [chunk.to(place(index), non_blocking=True) for chunk, index in zip(chunks, devices, strict=False)]

    def gather(tensors: Sequence[torch.Tensor], dim: int, destination: int | None = None) -> torch.Tensor:
        _check_gathered(tensors, dim, machine.kind)
        device = machine.current_device if destination is None else place(destination)
        return torch.cat([tensor.to(device) for tensor in tensors], dim)

    return {
        "_broadcast": broadcast,
        "_broadcast_out": _broadcast_out,
        "_broadcast_coalesced": broadcast_coalesced,
        "_scatter": scatter,
        "_scatter_out": _scatter_out,
        "_gather": gather,
        "_gather_out": _gather_out,
    }


def _broadcast_out(tensor: torch.Tensor, out: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [target.copy_(tensor) for target in out]


def _scatter_out(
    tensor: torch.Tensor, out: Sequence[torch.Tensor], dim: int, streams: Any = None
) -> list[torch.Tensor]:
    parts = tensor.split([target.size(dim) for target in out], dim)
    return [target.copy_(part) for target, part in zip(out, parts, strict=True)]


def _gather_out(tensors: Sequence[torch.Tensor], out: torch.Tensor, dim: int) -> torch.Tensor:
    return out.copy_(torch.cat([tensor.to(out.device) for tensor in tensors], dim))


def _chunks(tensor: torch.Tensor, count: int, sizes: Sequence[int] | None, dim: int) -> Sequence[torch.Tensor]:
    if sizes is None:
        return tensor.chunk(count, dim)
    if len(sizes) != count:
        raise RuntimeError(
            "Expected devices and chunk_sizes to be of same length, but got "
            f"len(devices) = {count} and len(chunk_sizes) = {len(sizes)}"
        )
    return tensor.split_with_sizes(list(sizes), dim)


def _check_gathered(tensors: Sequence[torch.Tensor], dim: int, kind: str) -> None:
    """Refuse what cannot be gathered, in the words of `torch::cuda::gather`."""
    first = list(tensors[0].shape)
    for index, tensor in enumerate(tensors):
        if tensor.device.type != kind:
            raise RuntimeError(
                f"Expected all input tensors to be CUDA tensors, but tensor at index {index} has device {tensor.device}"
            )
        if tensor.dim() != len(first):
            # The missing space is PyTorch's.
            raise RuntimeError(
                "Expected all input tensors to have the same number of dimensions, but "
                f"tensor at index {index}has {tensor.dim()} dimensions, (expected {len(first)})"
            )
        expected = [*first[:dim], tensor.shape[dim], *first[dim:][1:]]
        if list(tensor.shape) != expected:
            raise RuntimeError(
                f"Input tensor at index {index} has invalid shape {list(tensor.shape)}, but expected {expected}"
            )


def _nccl() -> dict[str, Callable[..., Any]]:
    """`torch.cuda.nccl`: collectives over the devices of this process."""
    return {
        "_nccl_version": lambda: _NCCL_VERSION,
        "_nccl_version_suffix": lambda: b"",
        "_nccl_unique_id": lambda: b"\0" * 128,
        "_nccl_init_rank": _refuse_rank,
        "_nccl_all_reduce": _all_reduce,
        "_nccl_reduce": _reduce,
        "_nccl_broadcast": lambda inputs, root, *rest: _broadcast_out(inputs[root], inputs) and None,
        "_nccl_all_gather": _all_gather,
        "_nccl_reduce_scatter": _reduce_scatter,
    }


_REDUCTIONS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda stacked: stacked.sum(0),
    lambda stacked: stacked.prod(0),
    lambda stacked: stacked.amax(0),
    lambda stacked: stacked.amin(0),
)
"""By the number of the ncclRedOp_t."""


def _reduced(inputs: Sequence[torch.Tensor], operation: int) -> torch.Tensor:
    device = inputs[0].device
    return _REDUCTIONS[operation](torch.stack([tensor.to(device) for tensor in inputs]))


def _all_reduce(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], operation: int, *rest: Any) -> None:
    _broadcast_out(_reduced(inputs, operation), outputs)


def _reduce(inputs: Sequence[torch.Tensor], output: torch.Tensor, root: int, operation: int, *rest: Any) -> None:
    output.copy_(_reduced(inputs, operation))


def _all_gather(inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], *rest: Any) -> None:
    for output in outputs:
        output.copy_(torch.cat([tensor.reshape(-1).to(output.device) for tensor in inputs]).view_as(output))


def _reduce_scatter(
    inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor], operation: int, *rest: Any
) -> None:
    parts = _reduced(inputs, operation).reshape(len(outputs), -1)
    for output, part in zip(outputs, parts, strict=True):
        output.copy_(part.view_as(output))


def _refuse_rank(*arguments: Any) -> NoReturn:
    raise NotSimulated(
        say(
            "torch.cuda.nccl.init_rank has no counterpart on a simulated device. Mend: use "
            'torch.distributed.init_process_group("nccl").'
        )
    )
