"""Types that an operator does not take on CUDA: what it says where the CPU has other words, or takes them.

What only the CPU takes, integers in products and others, is refused here; that only a device takes a type is
`wider.py`'s.

Source: as the real CUDA build of 2.13 answered; for convolutions aten/src/ATen/native/Convolution.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from samedevice.simulation import labels
from samedevice.simulation.kernel_names import KERNELS

__all__ = ["CONVOLUTIONS", "REFUSED", "convolved", "promote", "scalar_type", "tell_of_device", "without"]

_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool})
_HALVES = frozenset({torch.float16, torch.bfloat16})
_ONLY_ON_CPU = {
    **dict.fromkeys(("igamma", "igamma_", "igammac", "igammac_", "angle"), _HALVES),
    **dict.fromkeys(
        (
            *("mm", "addmm", "addmm_", "addbmm", "addbmm_", "bmm", "baddbmm", "baddbmm_", "mv", "addmv", "addmv_"),
            *("dot", "vdot", "conv_tbc", "avg_pool2d", "avg_pool3d"),
            *("max_pool2d_with_indices", "max_pool3d_with_indices"),
            *("upsample_bilinear2d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
        ),
        _INTEGERS,
    ),
}
REFUSED = {f"aten::{name}": dtypes for name, dtypes in _ONLY_ON_CPU.items()}
"""Operator -> the types that its kernel on CUDA has not, and the CPU's may have."""
_SCALAR_TYPES = {
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
    torch.float64: "Double",
    torch.float32: "Float",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.quint8: "QUInt8",
    torch.qint8: "QInt8",
    torch.qint32: "QInt32",
}
_LEGACY_TYPE = re.compile(r"\btorch\.(?=[A-Z]\w*Tensor\b)")
_CHANGES = (
    (_LEGACY_TYPE, "torch.cuda."),
    (re.compile(r" or input should be a MKLDNN tensor and weight is a dense tensor"), ""),
    (re.compile(r"^expected m1 and m2 to have the same dtype"), "expected mat1 and mat2 to have the same dtype"),
    (re.compile(r'_(?:impl_|vml_)?cpu_?" not implemented for '), '_cuda" not implemented for '),
)
CONVOLUTIONS = ("aten::convolution", "aten::_convolution")
_KERNEL = re.compile(r'^"[^"]*"(?= not implemented for )')
_NOT_IN_CUDNN = frozenset({torch.int64, torch.int16, torch.bool})
_TYPES_DIFFER = "expected scalar type"


def scalar_type(dtype: torch.dtype) -> str:
    """What C++ calls a dtype, as messages show it: `c10::ScalarType`."""
    return _SCALAR_TYPES.get(dtype, str(dtype).removeprefix("torch.").title())


def promote(tensors: Sequence[torch.Tensor]) -> None:
    """The common type of an iterator's operands, which quantized numbers have only with themselves.

    Args:
        tensors: the operands.

    Raises:
        RuntimeError: a quantized tensor among others. Source: c10/core/ScalarType.cpp, promoteTypes.
    """
    dtypes = list(dict.fromkeys(tensor.dtype for tensor in tensors))
    if len(dtypes) > 1 and any(tensor.is_quantized for tensor in tensors):
        first, second = map(scalar_type, dtypes[:2])
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled yet; figure out what the correct rules should be, "
            f"offending types: {first} {second}"
        )


def without(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    """An operator of `REFUSED`, called as a CUDA device has it.

    Args:
        call: calls it on the CPU.
        name: of the operator, "aten::mm".

    Returns:
        `call`, which refuses those types where they are said to be on a CUDA device. Nothing runs where there is no
        element.
    """
    refused = REFUSED[name]

    def called(*args: Any, **kwargs: Any) -> Any:
        results = call(*args, **kwargs)
        result = results[0] if isinstance(results, tuple) else results
        refuses = result.dtype in refused and args[0].numel() and result.numel()
        if refuses and labels.device_so_far(args[0]).type == "cuda":
            raise NotImplementedError(f"\"{KERNELS[name]}\" not implemented for '{scalar_type(result.dtype)}'")
        return results

    return called


def convolved(call: Callable[..., Any]) -> Callable[..., Any]:
    """A convolution, called as a CUDA device has it.

    Args:
        call: calls it on the CPU.

    Returns:
        `call`, which refuses the types that cuDNN, and the kernel for one group a channel, do not know.
    """

    def called(inputs: torch.Tensor, weight: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        dtype = inputs.dtype
        if dtype in _INTEGERS and inputs.numel() and labels.device_so_far(inputs).type == "cuda":
            groups = args[6] if len(args) > 6 else 1
            if not args[4] and inputs.shape[1] == groups > 1:
                kernel = "conv_depthwise3d" if inputs.dim() == 5 else "conv_depthwise2d_forward_cuda"
                raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(dtype)}'")
            if dtype in _NOT_IN_CUDNN and weight.dtype is dtype and torch.backends.cudnn.enabled:
                raise RuntimeError(f"getCudnnDataTypeFromScalarType() not supported for {scalar_type(dtype)}")
        return call(inputs, weight, *args, **kwargs)

    return called


def tell_of_device(error: RuntimeError, name: str, args: Any, device: torch.device) -> None:
    """Change the error's text to that of CUDA, in place; it stays as it is where both say the same.

    Args:
        error: as the CPU raised it.
        name: of the operator, "aten::mm".
        args: its positional arguments.
        device: where its operands are said to be.
    """
    if device.type != "cuda":
        return
    said = before = str(error)
    for pattern, words in _CHANGES:
        said = pattern.sub(words, said)
    if name in KERNELS:
        said = _KERNEL.sub(f'"{KERNELS[name]}"', said)
    if name in CONVOLUTIONS and said.startswith(_TYPES_DIFFER):
        said = _of_convolution(*args[:3]) or said
    if said != before:
        error.args = (said, *error.args[1:])


def _of_convolution(inputs: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> str | None:
    """The first parameter whose type is not the input's."""
    for argument, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.dtype is not inputs.dtype:
            types = (torch._C.TensorBase.type(tensor) for tensor in (inputs, parameter))
            first, second = (_LEGACY_TYPE.sub("torch.cuda.", str(kind)) for kind in types)
            return f"Input type ({first}) and {argument} type ({second}) should be the same"
    return None
