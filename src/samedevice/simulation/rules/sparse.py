"""Sums and products with sparse tensors, whose kernels compare by hand.

Source: aten/src/ATen/native/sparse/cuda, SparseCUDATensorMath.cu and SparseBlasImpl.cpp.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from samedevice.simulation.calls import Call, Operand, refusal
from samedevice.simulation.rules.comparing import compared

__all__ = ["add", "matrix_vector", "multiply", "product", "sum_of_product"]


def add(call: Call) -> torch.device | None:
    """Both operands, and of a dense one that it is first; a difference adds with a factor of -1."""
    here, other = call.of("self")[0], call.of("other")[0]
    if _is_sparse(here) and not _is_sparse(other):
        # No kernel adds a dense tensor to a sparse one, which the operator itself tells.
        return here.device
    blamed = next((operand for operand in (here, other) if operand.device.type == "cpu"), None)
    if blamed is None:
        return here.device
    if here.tensor.layout is not torch.sparse_coo and _is_sparse(here):
        raise refusal(call, "sparse-compressed", blamed, function="add", argument=blamed.argument, device=blamed.device)
    kind = "sparse" if _is_sparse(here) else "sparse-dense"
    raise refusal(call, kind, blamed, function="add", argument=blamed.argument, backend="CUDA", other_backend="CPU")


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
    if other.device.type != "cpu" or other.tensor.dim() == 0:
        return sparse.device
    if not _is_sparse(other) and sparse.tensor.layout is torch.sparse_coo and not sparse.tensor._nnz():
        # Nothing is read.
        return sparse.device
    if not _is_sparse(other):
        raise refusal(call, "index-device", other, device=other.device)
    raise refusal(call, "sparse", other, function="mul", argument="other", backend="CUDA", other_backend="CPU")


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
    if first.tensor.layout is second.tensor.layout is torch.sparse_coo:
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


def _is_sparse(operand: Operand) -> bool:
    return operand.tensor.layout is not torch.strided
