"""Operators that CUDA computes in no fixed order: `torch.use_deterministic_algorithms(True)` refuses them.

The CPU's kernels of the same operators keep an order and say nothing. Names and words are the kernels' own.

Source: `alertNotDeterministic` in aten/src/ATen/native/cuda, as the real CUDA build of 2.13 answered for operators and
their gradients; the sentence is the installed version's, taken from an operator that says it on the CPU too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["OPERATORS", "check"]

_When = Callable[[tuple[Any, ...], dict[str, Any]], bool]
_EMBEDDING_BAG_MAX = 2


def _argument(place: int, name: str) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    return lambda args, kwargs: args[place] if len(args) > place else kwargs.get(name)


def _always(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return True


def _is(place: int, name: str, value: Any) -> _When:
    read = _argument(place, name)
    return lambda args, kwargs: bool(read(args, kwargs) == value)


def _is_floating(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return bool(args[0].is_floating_point())


def _has_weights(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return _argument(1, "weights")(args, kwargs) is not None


def _has_dimension(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return len(args) > 1 or "dim" in kwargs


def _multiplies(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return isinstance(args[3], torch.Tensor) and kwargs.get("reduce") == "multiply"


OPERATORS: dict[str, tuple[str, _When]] = {
    "aten::avg_pool3d_backward": ("avg_pool3d_backward_cuda", _always),
    "aten::_adaptive_avg_pool2d_backward": ("adaptive_avg_pool2d_backward_cuda", _always),
    "aten::_adaptive_avg_pool3d_backward": ("adaptive_avg_pool3d_backward_cuda", _always),
    "aten::max_pool3d_with_indices_backward": ("max_pool3d_with_indices_backward_cuda", _always),
    "aten::adaptive_max_pool2d_backward": ("adaptive_max_pool2d_backward_cuda", _always),
    "aten::fractional_max_pool2d_backward": ("fractional_max_pool2d_backward_cuda", _always),
    "aten::fractional_max_pool3d_backward": ("fractional_max_pool3d_backward_cuda", _always),
    "aten::upsample_linear1d_backward": ("upsample_linear1d_backward_out_cuda", _always),
    "aten::upsample_bilinear2d_backward": ("upsample_bilinear2d_backward_out_cuda", _always),
    "aten::upsample_bicubic2d_backward": ("upsample_bicubic2d_backward_out_cuda", _always),
    "aten::upsample_trilinear3d_backward": ("upsample_trilinear3d_backward_out_cuda", _always),
    "aten::_upsample_bilinear2d_aa_backward": ("upsample_bilinear2d_aa_backward_out_cuda", _always),
    "aten::_upsample_bicubic2d_aa_backward": ("upsample_bicubic2d_aa_backward_out_cuda", _always),
    "aten::reflection_pad1d_backward": ("reflection_pad1d_backward_out_cuda", _always),
    "aten::reflection_pad3d_backward": ("reflection_pad3d_backward_out_cuda", _always),
    "aten::replication_pad1d_backward": ("replication_pad1d_backward_cuda", _always),
    "aten::replication_pad2d_backward": ("replication_pad2d_backward_cuda", _always),
    "aten::replication_pad3d_backward": ("replication_pad3d_backward_cuda", _always),
    "aten::grid_sampler_2d_backward": ("grid_sampler_2d_backward_cuda", _always),
    "aten::grid_sampler_3d_backward": ("grid_sampler_3d_backward_cuda", _always),
    "aten::nll_loss2d_forward": ("nll_loss2d_forward_out_cuda_template", _always),
    "aten::_ctc_loss_backward": ("ctc_loss_backward_gpu", _always),
    "aten::_embedding_bag_backward": ("embedding_bag_backward_cuda_max", _is(8, "mode", _EMBEDDING_BAG_MAX)),
    "aten::put": ("put_", _always),
    "aten::put_": ("put_", _always),
    "aten::scatter_reduce": ("scatter_reduce_cuda_prod_", _is(4, "reduce", "prod")),
    "aten::scatter_reduce_": ("scatter_reduce_cuda_prod_", _is(4, "reduce", "prod")),
    "aten::scatter": ("scatter_reduce_cuda_kernel", _multiplies),
    "aten::scatter_": ("scatter_reduce_cuda_kernel", _multiplies),
    "aten::index_reduce": ("index_reduce_cuda", _always),
    "aten::index_reduce_": ("index_reduce_cuda", _always),
    "aten::histc": ("_histc_cuda with floating point input", _is_floating),
    "aten::bincount": ("_bincount_cuda", _has_weights),
    "aten::median": ("median CUDA with indices output", _has_dimension),
    "aten::nanmedian": ("median CUDA with indices output", _has_dimension),
}
"""Operator -> how its kernel calls itself, and for which arguments it has no order."""


def check(name: str, device: torch.device, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Say of an operator what its kernel on a device says; nothing where order does not matter.

    Args:
        name: e.g. "aten::put_".
        device: where it is to run.
        args: its arguments.
        kwargs: its arguments.

    Raises:
        RuntimeError: the script wants fixed orders only. Where it wants to be warned, it is.
    """
    if name not in OPERATORS or device.type != "cuda" or not torch._C._get_deterministic_algorithms():
        return
    kernel, when = OPERATORS[name]
    if not when(args, kwargs):
        return
    only_warns = torch._C._get_deterministic_algorithms_warn_only()
    sentence = _sentence(kernel, only_warns)
    if not only_warns:
        raise RuntimeError(sentence)
    if not name.startswith("aten::put"):  # which warns on the CPU itself
        warnings.warn(sentence, UserWarning, stacklevel=2)


def _sentence(kernel: str, only_warns: bool) -> str:
    """What C++ says of `put_`, with the other kernel's name."""
    with warnings.catch_warnings(record=True) as caught, torch._C._DisableTorchDispatch():
        warnings.simplefilter("always")
        try:
            torch.zeros(1).put_(torch.zeros(1, dtype=torch.int64), torch.zeros(1))
            said = str(caught[-1].message)
        except RuntimeError as error:
            said = str(error)
    return said.replace("put_", kernel, 1).partition(" (Triggered internally")[0]
