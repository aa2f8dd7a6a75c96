"""Rules of functions that compare devices themselves, in words of their own; each names its source in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from samedevice.simulation.calls import Call, first_elsewhere, refusal
from samedevice.simulation.native_functions import native_function
from samedevice.simulation.rules.comparing import compared

__all__ = [
    "ALIASES",
    "CTC_PARAMETERS",
    "NORM_PARAMETERS",
    "batch_norm",
    "compressed",
    "compressed_of_any_layout",
    "ctc_moved",
    "distribution_out",
    "gradient",
    "inner",
    "matrix_rank",
    "meshgrid",
    "multi_dot",
    "quantile",
    "result_with_input",
    "rms_norm",
    "take_along_dim",
    "tensor_split",
    "tensordot",
    "weight_norm",
    "window",
]

ALIASES: Mapping[str, str] = {
    "indices_or_sections": "tensor_indices_or_sections",
    "matrices": "tensors",
    "indices": "indices",
}
"""Keyword names that Python callers may use -> the names that the rules use."""


CTC_PARAMETERS = ("log_probs", "targets", "input_lengths", "target_lengths", "blank")


def ctc_moved(call: Call) -> Mapping[str, torch.device]:
    """Targets and lengths go to log_probs, unless cuDNN takes them so. Source: native/LossCTC.cpp, ctc_loss."""
    device = call.device("log_probs")
    integers = ("targets", "input_lengths", "target_lengths")
    if device is None or (device.type != "cpu" and _is_cudnn_ctc(call)):
        return {}
    return {operand.argument: device for argument in integers for operand in call.of(argument)}


def _is_cudnn_ctc(call: Call) -> bool:
    """Source: native/cudnn/LossCTC.cpp, _use_cudnn_ctc_loss: 32-bit integers, flat targets, blank 0."""
    integers = [o.tensor for a in ("targets", "input_lengths", "target_lengths") for o in call.of(a)]
    enabled: bool = torch.backends.cudnn.enabled
    return (
        enabled
        and len(integers) == 3
        and all(tensor.dtype is torch.int32 for tensor in integers)
        and integers[0].dim() == 1
        and call.arguments.get("blank", 0) == 0
    )


NORM_PARAMETERS = ("input", "weight", "bias", "running_mean", "running_var")


def batch_norm(call: Call) -> torch.device | None:
    """CuDNN's kernel for inputs of three dimensions and more, the native one else; both with the same order.

    Source: native/Normalization.cpp, _batch_norm_impl_index; instance_norm repeats its parameters and comes here too.
    """
    inputs = call.of("input")[0]
    if inputs.tensor.numel() == 0:
        # An empty batch runs no kernel.
        return inputs.device
    given = call.of("weight") and call.of("bias")
    enabled: bool = torch.backends.cudnn.enabled
    plain = inputs.tensor.dtype is not torch.bfloat16 and inputs.tensor.dim() >= 3
    cudnn = inputs.device.type == "cuda" and enabled and plain and given
    return compared(f"wrapper_CUDA__{'cudnn' if cudnn else 'native'}_batch_norm")(call)


def rms_norm(call: Call) -> torch.device | None:
    """On a device a fused kernel, of whatever parts are there; other operators up to 2.8, whose rules say it.

    Source: native/layer_norm.cpp, rms_norm_symint.
    """
    fused = native_function("_fused_rms_norm")
    if fused is None or not fused.has_kernel("CUDA"):
        return None
    return compared("wrapper_CUDA___fused_rms_norm")(call)


def weight_norm(call: Call) -> torch.device | None:
    """Source: native/WeightNorm.cpp, _weight_norm."""
    direction, length = call.of("v")[0], call.of("g")[0]
    if direction.device != length.device:
        raise refusal(call, "weight-norm", length, device=direction.device, other_device=length.device)
    return direction.device


def take_along_dim(call: Call) -> torch.device | None:
    """Source: native/TensorAdvancedIndexing.cpp, _take_along_dim_helper."""
    here = call.operands[0]
    blamed = first_elsewhere(call.operands, here.device)
    if blamed is not None:
        raise refusal(
            call,
            "argument-device",
            blamed,
            device=here.device,
            other_device=blamed.device,
            function="torch.take_along_dim",
        )
    return here.device


def meshgrid(call: Call) -> torch.device | None:
    """Source: native/TensorShape.cpp, meshgrid."""
    blamed = first_elsewhere(call.operands, call.operands[0].device)
    if blamed is not None:
        raise refusal(call, "meshgrid", blamed)
    return call.operands[0].device


def tensor_split(call: Call) -> torch.device | None:
    """Split points are read on the CPU. Source: native/TensorShape.cpp, tensor_split."""
    for operand in call.of("tensor_indices_or_sections"):
        if operand.device.type != "cpu":
            raise refusal(call, "tensor-split", operand, device=operand.device)
    return None


def quantile(call: Call) -> torch.device | None:
    """Source: native/Sorting.cpp, quantile_checks."""
    here = call.operands[0]
    for argument in ("q", "out"):
        for operand in call.of(argument):
            if operand.device != here.device:
                raise refusal(call, "quantile", operand, argument=argument)
    return here.device


def window(call: Call) -> torch.device | None:
    """Source: native/SpectralOps.cpp, stft and istft."""
    here = call.operands[0]
    for operand in call.of("window"):
        if operand.device != here.device:
            raise refusal(
                call,
                "stft-window",
                operand,
                function=call.operator.removeprefix("aten::"),
                device=here.device,
                window_device=operand.device,
            )
    return here.device


def inner(call: Call) -> torch.device | None:
    """The kind of device is compared here, its number by the operator. Source: native/Linear.cpp, inner."""
    here = call.operands[0]
    for other in (*call.of("out"), *call.operands[1:]):
        if other.device.type != here.device.type:
            raise refusal(
                call,
                "argument-device-type",
                other,
                device=here.device.type,
                other_device=other.device.type,
                function="inner",
            )
    return here.device


def multi_dot(call: Call) -> torch.device | None:
    """Source: native/LinearAlgebra.cpp, multi_dot_impl."""
    tensors = call.of("tensors")
    first = tensors[0]
    blamed = first_elsewhere(tensors, first.device)
    if blamed is not None:
        raise refusal(call, "multi-dot", blamed, device=first.device, index=blamed.position, other_device=blamed.device)
    for out in call.of("out"):
        if out.device != first.device:
            raise refusal(call, "multi-dot-out", out, device=first.device, other_device=out.device)
    return first.device


def gradient(call: Call) -> torch.device | None:
    """Coordinates are with the values. Source: native/ReduceOps.cpp, pre_check_gradient."""
    here = call.operands[0]
    for spacing in call.of("spacing"):
        if spacing.device != here.device and spacing.tensor.dim() > 0:
            raise refusal(call, "gradient", spacing, device=here.device, other_device=spacing.device)
    return here.device


def matrix_rank(call: Call) -> torch.device | None:
    """Source: native/LinearAlgebraUtils.h, checkSameDevice; native/LinearAlgebra.cpp, get_matrix_rank_result."""
    here = call.operands[0]
    for argument, name in (("out", "result"), ("tol", "atol"), ("atol", "atol"), ("rtol", "rtol")):
        for operand in call.of(argument):
            if operand.device != here.device:
                raise refusal(
                    call,
                    "linalg-device",
                    operand,
                    function="torch.linalg.matrix_rank",
                    argument=name,
                    device=operand.device,
                    other_device=here.device,
                )
    return here.device


def result_with_input(name: str, swapped: bool = False) -> Callable[[Call], torch.device | None]:
    """Linear algebra with `out=` elsewhere. Source: native/LinearAlgebraUtils.h, checkSameDevice.

    Args:
        name: What the message calls the function.
        swapped: The caller passes the two the wrong way round, so the message has them so.
    """

    def rule(call: Call) -> torch.device | None:
        here = call.operands[0].device
        for out in call.of("out"):
            if out.device != here:
                said = (here, out.device) if swapped else (out.device, here)
                raise refusal(
                    call,
                    "linalg-device",
                    out,
                    function=name,
                    argument="result",
                    device=said[0],
                    other_device=said[1],
                )
        return here

    return rule


def distribution_out(call: Call) -> torch.device | None:
    """Source: native/UnaryOps.cpp, special_ndtr_out."""
    here = call.operands[0].device
    for out in call.of("out"):
        if out.device != here:
            raise refusal(call, "tensor-iterator", out, device=here, other_device=out.device)
    return here


def tensordot(call: Call) -> torch.device | None:
    """Source: native/Linear.cpp, tensordot_out."""
    a, b = call.operands[:2]
    for out in call.of("out"):
        if not out.device == a.device == b.device:
            raise refusal(call, "tensordot-out", out, out_device=out.device, device=a.device, other_device=b.device)
    return a.device


_ROW_FIRST = ("crow_indices", "col_indices")
_BY_COLUMN = (torch.sparse_csc, torch.sparse_bsc)


def compressed_of_any_layout(call: Call) -> torch.device | None:
    """`torch.sparse_compressed_tensor`, whose layout says what its indices are called."""
    names = ("ccol_indices", "row_indices") if call.arguments.get("layout") in _BY_COLUMN else _ROW_FIRST
    renamed = dict(zip(("compressed_indices", "plain_indices"), names, strict=True))
    operands = (replace(o, argument=renamed.get(o.argument, o.argument)) for o in call.operands)
    return compressed(call.among(operands))


def compressed(call: Call) -> torch.device | None:
    """With `device=` all parts are moved. Source: native/sparse/SparseCsrTensor.cpp, argument validation."""
    values = call.of("values")
    if call.arguments.get("device") is not None or not values:
        return None
    for operand in call.operands:
        if operand.device != values[0].device:
            raise refusal(call, "sparse-values", operand, argument=operand.argument)
    return values[0].device
