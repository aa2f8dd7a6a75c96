"""What torch 1.x said, as it still stands in questions and logs. Data only; `templates.py` tells how to read it."""

from __future__ import annotations

from samedevice.messages.template import Template

__all__ = ["OLDER_TEXTS"]

_PAIR = (("{argument}", "other_backend"), ("others", "backend"))
_ON_THE_CPU = (("{argument}", "=cpu"), ("others", "=cuda"))

OLDER_TEXTS = (
    # Source: aten/src/ATen/native/TensorIterator.cpp, before the devices were named together.
    Template(
        "tensor-iterator",
        "expected device {device} but got device {other_device}",
        until=(1, 5),
        places=(("common", "device"), ("operand", "other_device")),
    ),
    Template(
        "tensor-iterator",
        "expected backend CUDA and dtype {dtype_text} but got backend CPU and dtype {other_dtype_text}",
        until=(1, 3),
        places=(("common", "=cuda"), ("operand", "=cpu")),
    ),
    Template(
        "tensor-iterator",
        "expected backend CPU and dtype {dtype_text} but got backend CUDA and dtype {other_dtype_text}",
        until=(1, 3),
        places=(("common", "=cpu"), ("operand", "=cuda")),
    ),
    # Source: aten/src/ATen/Utils.h, checked_dense_tensor_list_unwrap: torch.cat and torch.stack.
    Template(
        "same-device",
        "Expected object of backend {backend} but got backend {other_backend} for sequence element {index} in sequence "
        "argument at position #{position_index} '{argument}'",
        until=(1, 5),
        places=_PAIR,
    ),
    Template(
        "same-device",
        "Expected object of device type {device} but got device type {other_device} for sequence element {index} in "
        "sequence argument at position #{position_index} '{argument}'",
        until=(1, 8),
        places=(("{argument}", "other_device"), ("others", "device")),
    ),
    Template(
        "same-device",
        "Expected a Tensor of type {type} but found a type {other_type} for sequence element {index} in sequence "
        "argument at position #{position_index} '{argument}'",
        until=(1, 0),
        places=(("{argument}", "other_type"), ("others", "type")),
    ),
    # Source: aten/src/ATen/TensorUtils.cpp, checkAllSameGPU and checkBackend.
    Template(
        "same-device",
        "Tensor for '{argument}' is on CPU, {others_text}, but expected them to be on GPU (while checking arguments "
        "for {function})",
        until=(1, 9),
        places=_ON_THE_CPU,
    ),
    Template(
        "same-device",
        "Tensor for argument #{index} '{argument}' is on CPU, {others_text}, but expected them to be on GPU (while "
        "checking arguments for {function})",
        until=(1, 9),
        places=_ON_THE_CPU,
    ),
    Template(
        "same-device",
        "Expected tensor for '{argument}' to have the same device as tensor for argument #{other_index} "
        "'{other_argument}'; but device {device_index} does not equal {other_device_index} (while checking arguments "
        "for {function})",
        until=(1, 13),
    ),
    Template(
        "argument-backend",
        "Expected tensor to have CPU Backend, but got tensor with CUDA Backend (while checking arguments for "
        "{function})",
        until=(1, 9),
        places=(("expected", "=cpu"), ("tensor", "=cuda")),
    ),
    Template(
        "argument-backend",
        "Expected tensor to have CUDA Backend, but got tensor with CPU Backend (while checking arguments for "
        "{function})",
        until=(1, 9),
        places=(("expected", "=cuda"), ("tensor", "=cpu")),
    ),
    # Source: aten/src/THC, indexSelect: an embedding whose indices stayed behind.
    Template("same-device", "Input, output and indices must be on the current device", until=(1, 8)),
    # Source: aten/src/ATen/native/TensorCompare.cpp, where.
    Template(
        "where-devices",
        "condition, x and y to be on the same device, but condition is on {condition_device} and x and y are on "
        "{x_device} and {y_device} respectively",
        until=(2, 1),
        places=(("condition", "condition_device"), ("x", "x_device"), ("y", "y_device")),
    ),
    # Source: torch/csrc/cuda/comm.cpp, broadcast_coalesced: DataParallel over parameters that are elsewhere.
    Template("data-parallel", "all tensors must be on devices[0]", until=(1, 2), cause="dataparallel-misplaced"),
    Template(
        "ddp-device-ids",
        "DistributedDataParallel device_ids and output_device arguments only work with single-device GPU modules, but "
        "got device_ids {ids_text}, output_device {output_text}, and module parameters {parameters_text}.",
        exception="AssertionError",
        until=(1, 9),
    ),
    # Source: torch/serialization.py.
    Template(
        "load-without-cuda",
        "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running "
        "on a CPU-only machine, please use torch.load with map_location='cpu' to map your storages to the CPU.",
        until=(1, 2),
        cause="checkpoint-map-location",
    ),
    # Source: aten/src/THC/THCGeneral.cpp and torch/csrc/cuda/Module.cpp.
    Template("invalid-ordinal", "cuda runtime error (10) : invalid device ordinal", until=(1, 5)),
    Template("invalid-ordinal", "cuda runtime error (101) : invalid device ordinal", until=(1, 5)),
    Template("no-cuda-build", "Cannot initialize CUDA without ATen_cuda library.", until=(2, 3)),
    Template(
        "fork",
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing in Python 3.4+, you must use "
        "the 'spawn' start method",
        until=(1, 7),
    ),
    # Source: aten/src/ATen/native/PackedSequence.cpp.
    Template(
        "lengths", "'lengths' argument should be a 1D CPU int64 tensor", until=(1, 7), cause="lengths-must-be-cpu"
    ),
)
"""Rows for wordings that no longer stand in any supported version; only ever recognised."""
