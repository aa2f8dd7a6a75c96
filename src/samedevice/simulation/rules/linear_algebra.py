"""Products, solvers and joins that check in a way or in words of their own.

Each rule names its source in PyTorch; which operator follows which is in `operator_rules.py`.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from samedevice.simulation.calls import Call, Operand, first_elsewhere, refusal
from samedevice.simulation.rules.comparing import compared, compared_refusal, one_device

__all__ = [
    "bilinear",
    "block_diag",
    "cholesky_solve",
    "cholesky_solve_out",
    "dot_out",
    "linear_out",
    "matrix_vector",
    "pseudo_inverse",
]


def matrix_vector(call: Call) -> torch.device | None:
    """Mv makes its result where the vector is and adds to it in place. Source: native/Blas.cpp, mv."""
    matrix, vector = call.of("self")[0], call.of("vec")[0]
    if matrix.device != vector.device:
        blamed = Operand("mat", matrix.tensor, matrix.device)
        raise compared_refusal(call, "wrapper_CUDA_addmv_", blamed, vector.device)
    return vector.device


def bilinear(call: Call) -> torch.device | None:
    """Sums of products by bmm: input by weight, then by the second input. Source: native/Linear.cpp, _trilinear."""
    first, second, weight = (call.of(argument)[0] for argument in ("i1", "i2", "i3"))
    for other in (second, weight) if first.tensor.numel() else ():
        if other.device != first.device:
            blamed = Operand("mat2", other.tensor, other.device)
            raise compared_refusal(call, "wrapper_CUDA_bmm", blamed, first.device)
    return first.device


def pseudo_inverse(call: Call) -> torch.device | None:
    """Tolerances are made one-dimensional first. Source: native/LinearAlgebra.cpp, linalg_pinv."""
    matrix = call.of("self")[0]
    return one_device(call.only("atol", "rtol", "self")) if matrix.tensor.numel() else matrix.device


def dot_out(call: Call) -> torch.device | None:
    """Source: native/Blas.cpp, dot_out and vdot_out."""
    out, here, other = (call.of(argument)[0] for argument in ("out", "self", "other" if call.of("other") else "tensor"))
    if not out.device == here.device == other.device:
        name = call.operator.removeprefix("aten::").partition(".")[0]
        raise refusal(
            call, "dot-out", out, function=name, out_device=out.device, device=here.device, other_device=other.device
        )
    return out.device


def linear_out(call: Call) -> torch.device | None:
    """A product, with the bias added in the same step. Source: native/Linear.cpp, linear_out."""
    fused = call.of("bias") and call.of("input")[0].tensor.dim() == 2
    names = {"bias": "self", "input": "mat1", "weight": "mat2"} if fused else {"input": "self", "weight": "mat2"}
    operands = [replace(operand, argument=names[name]) for name in names for operand in call.of(name)]
    return compared(f"wrapper_CUDA_{'addmm' if fused else 'mm'}_out_out")(call.among((*call.of("out"), *operands)))


def cholesky_solve_out(call: Call) -> torch.device | None:
    """Source: native/BatchLinearAlgebra.cpp, cholesky_solve_out."""
    here = call.of("self")[0]
    for out in call.of("out"):
        if out.device != here.device:
            raise refusal(
                call,
                "linalg-device",
                out,
                function="cholesky_solve",
                argument="result",
                device=out.device,
                other_device=here.device,
            )
    return cholesky_solve(call)


def cholesky_solve(call: Call) -> torch.device | None:
    """Source: native/LinearAlgebraUtils.h, linearSolveCheckInputs."""
    b, a = call.of("self")[0], call.of("input2")[0]
    if a.device != b.device:
        raise refusal(call, "linalg-solve", b, device=b.device, other_device=a.device)
    return b.device


def block_diag(call: Call) -> torch.device | None:
    """Source: native/TensorShape.cpp, block_diag."""
    tensors = call.of("tensors")
    blamed = first_elsewhere(tensors, tensors[0].device)
    if blamed is not None:
        first = tensors[0].device
        raise refusal(call, "block-diag", blamed, device=first, index=blamed.position, other_device=blamed.device)
    return tensors[0].device
