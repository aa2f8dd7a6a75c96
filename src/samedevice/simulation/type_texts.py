"""Types that an operator does not take on CUDA: what it says where the CPU has other words, or takes them.

What only the CPU takes is integers in products; that only a device takes a type is `wider.py`'s.

Source: as the real CUDA build of 2.13 answered; for convolutions aten/src/ATen/native/Convolution.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from samedevice.simulation import labels

__all__ = ["WITHOUT_INTEGERS", "floats_only", "scalar_type", "tell_of_device"]

_PRODUCTS = {
    "addmm_cuda": ("mm", "addmm", "addmm_", "addbmm", "addbmm_"),
    "baddbmm_cuda": ("bmm", "baddbmm", "baddbmm_"),
    "addmv_impl_cuda": ("mv", "addmv", "addmv_"),
    "dot": ("dot", "vdot"),
    "avg_pool2d_out_cuda_frame": ("avg_pool2d",),
}
WITHOUT_INTEGERS = {f"aten::{name}": kernel for kernel, names in _PRODUCTS.items() for name in names}
"""Operator -> how its kernel on CUDA, which has no integers, calls itself."""
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
}
_LEGACY_TYPE = re.compile(r"\btorch\.(?=[A-Z]\w*Tensor\b)")
_CHANGES = (
    (_LEGACY_TYPE, "torch.cuda."),
    (re.compile(r" or input should be a MKLDNN tensor and weight is a dense tensor"), ""),
    (re.compile(r"^expected m1 and m2 to have the same dtype"), "expected mat1 and mat2 to have the same dtype"),
    (re.compile(r'_(?:impl_)?cpu_?" not implemented for '), '_cuda" not implemented for '),
)
_CONVOLUTIONS = ("aten::convolution", "aten::_convolution")
_TYPES_DIFFER = "expected scalar type"


def scalar_type(dtype: torch.dtype) -> str:
    """What C++ calls a dtype, as messages show it: `c10::ScalarType`."""
    return _SCALAR_TYPES.get(dtype, str(dtype).removeprefix("torch.").title())


def floats_only(call: Callable[..., Any], kernel: str) -> Callable[..., Any]:
    """An operator of `WITHOUT_INTEGERS`, called as a CUDA device has it.

    Args:
        call: calls it on the CPU.
        kernel: what the kernel calls itself.

    Returns:
        `call`, which refuses integers that are said to be on a CUDA device. Nothing runs where there is no element.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        dtype = result.dtype
        integers = not (dtype.is_floating_point or dtype.is_complex or result.is_quantized)
        if integers and args[0].numel() and result.numel() and labels.device_so_far(args[0]).type == "cuda":
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(dtype)}'")
        return result

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
    if name in _CONVOLUTIONS and said.startswith(_TYPES_DIFFER):
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
