"""Which operator failed, where neither a fault nor the message says: by the kind of message, then by the expression."""

from __future__ import annotations

import ast

from samedevice.explaining.frames import UserFrame, all_frames
from samedevice.explaining.live import name_of_class
from samedevice.explaining.syntax import call_name
from samedevice.messages import Recognised
from samedevice.messages.operators import OPERATORS, in_place
from samedevice.usercode import is_user_file

__all__ = ["operation_of"]

_BY_KIND = {
    "conv-types": "convolution",
    "lengths": "_pack_padded_sequence",
    "numpy": "numpy",
    "stft-window": "stft",
    "masked-fill-mask": "masked_fill",
    "masked-fill-value": "masked_fill_",
    "index-device": "index",
    "index-value": "index_put_",
    "attention": "scaled_dot_product_attention",
    "assigned-gradient": "set_grad",
    "meshgrid": "meshgrid",
    "block-diag": "block_diag",
    "tensor-split": "tensor_split",
    "quantile": "quantile",
    "multi-dot": "linalg_multi_dot",
    "pin-memory": "pin_memory",
}
_FUNCTIONS = {"cross_entropy": "nll_loss_forward", "nll_loss": "nll_loss_forward", "linear": "addmm"}
"""The operator that refuses, where a function of `torch.nn.functional` is called otherwise."""
_RECURRENT = ("LSTM", "GRU", "LSTMCell", "GRUCell")
_LIBRARY = ("torch", "F", "np")


def operation_of(
    recognised: Recognised | None, frame: UserFrame | None, error: BaseException | None = None
) -> str | None:
    """The operator's name, e.g. "aten::add", or None where it cannot be told.

    Args:
        recognised: the message, taken apart.
        frame: the innermost frame of the user's own code.
        error: as it was caught; PyTorch's frames inside the user's say which function raised it.
    """
    spoken = recognised.operator if recognised is not None else None
    if spoken is not None:
        return spoken if "." in spoken else f"aten::{spoken}"
    name = _BY_KIND.get(recognised.kind) if recognised is not None else None
    name = name or (_of_library(error) if error is not None else None)
    name = name or _of_expression(frame.running if frame is not None else None)
    return f"aten::{name}" if name else None


def _of_library(error: BaseException) -> str | None:
    """The function of `torch.nn.functional`, or the recurrent layer, whose frame is the innermost of PyTorch's."""
    for frame in reversed(all_frames(error)):
        code = frame.f_code
        if is_user_file(code.co_filename):
            return None
        path = code.co_filename.replace("\\", "/")
        if path.endswith("torch/nn/functional.py"):
            return _FUNCTIONS.get(code.co_name, code.co_name) if not code.co_name.startswith("_") else None
        if path.endswith("torch/nn/modules/rnn.py") and code.co_name == "forward":
            kind = name_of_class(type(frame.f_locals.get("self")))
            return kind.lower().replace("cell", "_cell") if kind in _RECURRENT else None
    return None


def _of_expression(node: ast.AST | None) -> str | None:
    if isinstance(node, ast.Assign) and any(isinstance(target, ast.Subscript) for target in node.targets):
        return "index_put_"
    if isinstance(node, ast.Expr | ast.Return | ast.Assign) and node.value is not None:
        return _of_expression(node.value)
    if isinstance(node, ast.BinOp):
        return OPERATORS.get(type(node.op))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return OPERATORS.get(type(node.ops[0]))
    if isinstance(node, ast.AugAssign):
        return in_place(node.op)
    if isinstance(node, ast.Subscript):
        return "index"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        # Only PyTorch's own functions; a method's name may be anybody's.
        return call_name(node) if node.func.value.id in _LIBRARY else None
    return None
