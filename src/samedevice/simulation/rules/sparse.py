"""Sums and products with sparse tensors, whose kernels compare by hand.

Source: aten/src/ATen/native/sparse/cuda, SparseCUDATensorMath.cu and SparseBlasImpl.cpp.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from samedevice.simulation.calls import Call, Operand, refusal
from samedevice.simulation.rules.comparing import compared, iterated
from samedevice.simulation.rules.linear_algebra import cholesky_solve

__all__ = ["add", "divide", "matrix_vector", "multiply", "product", "sum_of_product", "triangular_solve"]


# As wheels of 2.13 say it.
_ASSERTED_AT = ("/__w/pytorch/pytorch/aten/src/ATen/native/sparse/cuda/SparseCsrTensorMath.cu", 148)


def add(call: Call) -> torch.device | None:
    """Both operands, and of a dense one that it is first; a difference adds with a factor of -1."""
    here, other = call.of("self")[0], call.of("other")[0]
    dense = next((operand for operand in (here, other) if not _is_sparse(operand)), None)
    layouts = {here.tensor.layout, other.tensor.layout}
    if dense is not None and dense.device.type == "cpu" and torch.sparse_coo not in layouts:
        raise refusal(call, "sparse-dense-assert", dense, source_text=_ASSERTED_AT[0], line_count=_ASSERTED_AT[1])
    if _is_sparse(here) and not _is_sparse(other):
        # No kernel adds a dense tensor to a COO one, which the operator itself tells; to others it is added.
        return here.device if here.tensor.layout is torch.sparse_coo else other.device
    blamed = next((operand for operand in (here, other) if operand.device.type == "cpu"), None)
    is_coo = here.tensor.layout is torch.sparse_coo or other.tensor.layout is torch.sparse_coo
    if blamed is None:
        if is_coo:
            _check_index(call, "{r_, t, src}" if _is_sparse(here) else "{sparse, r_, dense}")
        return here.device
    if here.tensor.layout is not torch.sparse_coo and _is_sparse(here):
        raise refusal(call, "sparse-compressed", blamed, function="add", argument=blamed.argument, device=blamed.device)
    kind = "sparse" if _is_sparse(here) else "sparse-dense"
    raise refusal(call, kind, blamed, function="add", argument=blamed.argument, backend="CUDA", other_backend="CPU")


def _check_index(call: Call, operands: str) -> None:
    """Both are on devices, which are one. Source: c10/cuda/CUDAFunctions and ATen/cuda, `check_device`."""
    here, other = call.of("self")[0], call.of("other")[0]
    if here.device != other.device:
        raise refusal(call, "plain-check", other, check_text=f"cuda::check_device({operands})")


def multiply(call: Call) -> torch.device | None:
    """The result is made where the sparse operand is, which reads the dense one by its indices."""
    first, second = call.of("self")[0], call.of("other")[0]
    sparse, other = (first, second) if _is_sparse(first) else (second, first)
    if sparse.tensor.layout is not torch.sparse_coo and not _is_sparse(other) and other.tensor.dim():
        # The dense one is read where the sparse one has values. Source: native/sparse/SparseCsrTensorMath.cpp, mul.
        operands = (replace(other, argument="self"), replace(sparse, argument="mask"))
        return compared("wrapper_SparseCsrCUDA__sparse_mask")(call.among(operands))
    if sparse.device.type == "cpu":
        raise refusal(call, "sparse", sparse, function="mul", argument="out", backend="CUDA", other_backend="CPU")
    if other.tensor.dim() == 0 and not _is_sparse(other):
        # Multiplied by the values.
        return iterated()(call.among((replace(other, output=False), sparse)))
    if other.device == sparse.device:
        return sparse.device
    if _is_sparse(other) and other.device.type != "cpu":
        _check_index(call, "{r_, t_, src_}")
    if not _is_sparse(other) and sparse.tensor.layout is torch.sparse_coo and not sparse.tensor._nnz():
        # Nothing is read.
        return sparse.device
    if not _is_sparse(other):
        raise refusal(call, "index-device", other, device=other.device)
    raise refusal(call, "sparse", other, function="mul", argument="other", backend="CUDA", other_backend="CPU")


def divide(call: Call) -> torch.device | None:
    """By a number or a 0-dim tensor; of others the operator itself tells. Source: SparseTensorMath.cpp, div_out."""
    if any(operand.tensor.dim() for operand in call.of("other")):
        return call.device("self")
    return iterated()(call)


def matrix_vector(call: Call) -> torch.device | None:
    """A COO matrix has a kernel of its own; others add to a result that is made where the vector is."""
    matrix, vector = call.of("self")[0], call.of("vec")[0]
    if matrix.tensor.layout is torch.sparse_coo:
        return compared("wrapper_SparseCUDA__mv")(call)
    renamed = Operand("mat", matrix.tensor, matrix.device)
    return compared("wrapper_SparseCsrCUDA_out_addmv_out")(call.among((vector, renamed)))


def product(call: Call) -> torch.device | None:
    """`torch.sparse.mm`: the sparse matrix is added, times the other one, to zeros made where that other one is.

    Source: aten/src/ATen/native/sparse/SparseMatMul.cpp and LinearAlgebra.cpp, `_sparse_mm`. Two COO matrices have
    a kernel of their own.
    """
    first, second = call.of("mat1")[0], call.of("mat2")[0]
    if first.tensor.layout is second.tensor.layout is torch.sparse_coo or "reduce" in call.arguments:
        return None
    matrix, other = (first, second) if _is_sparse(first) else (second, first)
    if not _is_sparse(matrix):
        return None
    key = "SparseCUDA" if matrix.tensor.layout is torch.sparse_coo else "SparseCsrCUDA"
    zeros = replace(other, argument="self")
    operands = (zeros, replace(matrix, argument="mat1"), replace(other, argument="mat2"))
    return compared(f"wrapper_{key}__addmm")(call.among(operands))


def sum_of_product(call: Call) -> torch.device | None:
    """`torch.sspaddmm`, which makes its result where the first operand is, and `smm`, which adds to that.

    Source: aten/src/ATen/native/sparse/SparseTensorMath.cpp, `smm` and `sspaddmm`.
    """
    first = replace(call.operands[0], argument="self")
    return compared("wrapper_SparseCUDA_out_sspaddmm_out")(call.among((first, *call.only("mat1", "mat2").operands)))


def triangular_solve(call: Call) -> torch.device | None:
    """Source: native/sparse/cuda/SparseBlas.cpp, which checks as `cholesky_solve` does."""
    matrix = (replace(operand, argument="input2") for operand in call.of("A"))
    return cholesky_solve(call.among((*call.of("self"), *matrix)))


def _is_sparse(operand: Operand) -> bool:
    return operand.tensor.layout is not torch.strided
