"""What a CUDA operator says of types that it does not take, where the CPU's words, which were raised, are others.

Only the words are changed; whether an operator takes a type is decided by the CPU (and by `wider.py`).

Source: as the real CUDA build of 2.13 answered; for convolutions aten/src/ATen/native/Convolution.cpp.
"""

from __future__ import annotations

import re
from typing import Any

import torch

__all__ = ["tell_of_device"]

_LEGACY_TYPE = re.compile(r"\btorch\.(?=[A-Z]\w*Tensor\b)")
_CHANGES = (
    (_LEGACY_TYPE, "torch.cuda."),
    (re.compile(r" or input should be a MKLDNN tensor and weight is a dense tensor"), ""),
    (re.compile(r"^expected m1 and m2 to have the same dtype"), "expected mat1 and mat2 to have the same dtype"),
    (re.compile(r'_cpu" not implemented for '), '_cuda" not implemented for '),
)
_CONVOLUTIONS = ("aten::convolution", "aten::_convolution")
_TYPES_DIFFER = "expected scalar type"


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
