"""Operators that only devices have: those of `SyncBatchNorm` worked out with others, and one sentence for the rest.

All tensors here are plain CPU tensors; labels are the caller's.

Source: aten/src/ATen/native/cuda/Normalization.cuh, `batch_norm_stats` and following, 2.6 to 2.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from samedevice.errors import NotSimulated
from samedevice.texts import say

__all__ = ["KERNELS", "raise_if_missing"]

_MISSING = "with arguments from the 'CPU' backend"
_MISSING_FOR_LAYOUT = re.compile(r"(?<=from the ')(Quantized|Sparse|SparseCsr|NestedTensor)CPU(?=' backend)")


def raise_if_missing(error: RuntimeError, name: str, device: Any) -> None:
    """A device may have an operator that the CPU, which stands in for it, has not.

    Args:
        error: as the operator raised it; nothing happens where it says something else.
        name: of the operator, "aten::cudnn_convolution".
        device: where its operands are said to be; None for the host.

    Raises:
        NotSimulated: the CPU has no such operator.
        RuntimeError: neither has it for tensors of this layout, told of the device.
    """
    if device is None or device.type == "cpu":
        return
    if _MISSING_FOR_LAYOUT.search(str(error)):
        raise type(error)(_MISSING_FOR_LAYOUT.sub(rf"\1{device.type.upper()}", str(error))) from None
    if _MISSING in str(error):
        raise NotSimulated(
            say(
                "{name} has no kernel for the CPU, which computes what a simulated device is asked for. "
                "Mend: call the function of torch.nn.functional that picks such operators by itself.",
                name=name,
            )
        ) from None


def _over_channels(x: torch.Tensor) -> list[int]:
    return [dim for dim in range(x.dim()) if dim != 1]


def _wide(x: torch.Tensor) -> torch.Tensor:
    """In the type in which devices add up: float32 for the narrow ones."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _along(values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Values by channel, to be combined with a batch."""
    return values.view(1, -1, *[1] * (x.dim() - 2))


def _stats(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    variance, mean = torch.var_mean(_wide(x), _over_channels(x), correction=0)
    return mean, (variance + eps).rsqrt()


def _gather_stats(
    x: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    momentum: float,
    eps: float,
    counts: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The mean and deviation of all processes' batches, from those of each."""
    counts = counts.view(-1, 1).to(mean.dtype)
    total = counts.sum()
    mean_of_all = (counts * mean).sum(0) / total
    squares = (counts * (invstd.pow(-2) - eps + (mean - mean_of_all).square())).sum(0)
    if running_mean is not None:
        running_mean.lerp_(mean_of_all.to(running_mean.dtype), momentum)
    if running_var is not None:
        running_var.lerp_((squares / (total - 1)).to(running_var.dtype), momentum)
    return mean_of_all, (squares / total + eps).rsqrt()


def _elemt(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    y = (_wide(x) - _along(mean, x)) * _along(invstd, x)
    y = y if weight is None else y * _along(weight, x)
    return (y if bias is None else y + _along(bias, x)).to(x.dtype)


def _backward_reduce(
    gradient: torch.Tensor, x: torch.Tensor, mean: torch.Tensor, invstd: torch.Tensor, weight: Any, *wanted: bool
) -> tuple[torch.Tensor | None, ...]:
    gradient = _wide(gradient)
    sums = gradient.sum(_over_channels(x))
    products = (gradient * (_wide(x) - _along(mean, x))).sum(_over_channels(x))
    of_input, of_weight, of_bias = wanted
    like = sums if weight is None else weight
    return (
        sums if of_input else None,
        products if of_input else None,
        (products * invstd).to(like.dtype) if of_weight else None,
        sums.to(like.dtype) if of_bias else None,
    )


def _backward_elemt(
    gradient: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: torch.Tensor | None,
    sums: torch.Tensor,
    products: torch.Tensor,
    count: torch.Tensor,
) -> torch.Tensor:
    total = count.sum()
    centred = _wide(gradient) - _along(sums / total, x)
    centred = centred - (_wide(x) - _along(mean, x)) * _along(invstd.square() * products / total, x)
    scale = invstd if weight is None else invstd * weight
    return (centred * _along(scale, x)).to(x.dtype)


KERNELS: dict[str, Callable[..., Any]] = {
    "aten::batch_norm_stats": _stats,
    "aten::batch_norm_gather_stats_with_counts": _gather_stats,
    "aten::batch_norm_elemt": _elemt,
    "aten::batch_norm_backward_reduce": _backward_reduce,
    "aten::batch_norm_backward_elemt": _backward_elemt,
}
"""What computes an operator of devices, by its name."""
