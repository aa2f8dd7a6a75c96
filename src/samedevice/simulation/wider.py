"""Operators that a device has for types for which the CPU has none: computed in a wider type and narrowed again.

Which these are is known from the types that PyTorch's own operator database (torch/testing/_internal) declares for the
CPU and for CUDA, 2.13. All others fail with PyTorch's error, as they would on a device.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["call_wider"]

_HALF = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
_INTEGERS = dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64), torch.float64)
_WIDER = {
    "aten::histc": _INTEGERS,
    **dict.fromkeys(
        (
            *("aten::avg_pool3d", "aten::avg_pool3d_backward"),
            *("aten::multi_margin_loss", "aten::multi_margin_loss_backward"),
            *("aten::multilabel_margin_loss_forward", "aten::multilabel_margin_loss_backward"),
            *("aten::_upsample_bilinear2d_aa", "aten::_upsample_bilinear2d_aa_backward", "aten::polygamma"),
        ),
        _HALF,
    ),
}


def call_wider(error: Exception, name: str, call: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Call an operator again that the CPU does not have for its operands' type.

    Args:
        error: what it raised, raised again where a device would not have it either.
        name: e.g. "aten::histc".
        call: calls it.
        args: its arguments.
        kwargs: its arguments.

    Returns:
        Its results, in the type of the operands.
    """
    wider = _WIDER.get(name)
    narrow = next((a.dtype for a in args if isinstance(a, torch.Tensor) and a.dtype in (wider or ())), None)
    if wider is None or narrow is None:
        raise error
    wide = wider[narrow]
    result = call(*(a.to(wide) if isinstance(a, torch.Tensor) and a.dtype is narrow else a for a in args), **kwargs)
    if isinstance(result, tuple):
        return tuple(r.to(narrow) if r.dtype is wide else r for r in result)
    return result.to(narrow)
