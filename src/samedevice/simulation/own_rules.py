"""Operators that compare devices in their own way or own words; each rule names PyTorch's source.

Rules of one operator or a small family. What many operators share is in `operand_rules.py`, convolution in
`convolution_rules.py`; which operator uses which is in `operator_rules.py`.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from samedevice.simulation.calls import Call, Operand, first_elsewhere, refusal
from samedevice.simulation.operand_rules import compared, compared_refusal, iterated, kernel_operand_refusal, one_device

__all__ = [
    "addcmul",
    "attention",
    "bilinear",
    "binary_cross_entropy",
    "block_diag",
    "cholesky_solve",
    "cholesky_solve_out",
    "cross_entropy_of_logits",
    "ctc_loss",
    "dot_out",
    "extreme_out",
    "foreach_scalar",
    "fused_with_tensor_lr",
    "index",
    "index_fill",
    "index_put",
    "ldexp",
    "linear_out",
    "logical",
    "masked_fill",
    "masked_index",
    "masked_index_put",
    "matrix_vector",
    "packed_lengths",
    "pseudo_inverse",
    "resized_out",
    "searchsorted",
    "segment_reduce",
    "set_storage",
    "sparse_arithmetic",
    "where",
]

_no_scalars = iterated(())


def index(call: Call) -> torch.device | None:
    """Indices are on the CPU or with the tensor.

    Source: native/TensorAdvancedIndexing.cpp, check_indices_on_cpu_or_selfdevice.
    """
    device = call.device("self")
    for operand in call.of("indices"):
        if operand.device.type != "cpu" and operand.device != device:
            raise refusal(call, "index-device", operand, device=device)
    return one_device(call.without("indices"))


def masked_index(call: Call) -> torch.device | None:
    """Indexes, then fills where the mask says. Source: native/TensorAdvancedIndexing.cpp, _unsafe_masked_index."""
    index(call.only("self", "indices"))
    return masked_fill(call.only("self", "mask"))


def masked_index_put(call: Call) -> torch.device | None:
    """Fills the values where the mask says, then adds them. Source: as above, _unsafe_masked_index_put_accumulate."""
    values, mask = call.of("values")[0], call.of("mask")[0]
    if mask.device != values.device:
        raise refusal(call, "masked-fill-mask", mask, mask_device=mask.device, device=values.device)
    adding = replace(call, arguments={**call.arguments, "accumulate": True}, origin=call)
    return index_put(adding.only("self", "indices", "values"))


def index_put(call: Call) -> torch.device | None:
    """Indices may be anywhere; values are with the tensor, or 0-dim. Source: TensorAdvancedIndexing.cpp, make_info."""
    device = call.device("self")
    for value in call.of("values"):
        if device is None or value.device == device or value.tensor.dim() == 0:
            continue
        if call.arguments.get("accumulate") and device.type != "cpu":
            raise refusal(call, "index-value", value, device=device, other_device=value.device)
        one_device(call.only("self", "values"))
    return device


def index_fill(call: Call) -> torch.device | None:
    """The value is read as a number; tensor and index meet in an iterator. Source: TensorAdvancedIndexing.cpp."""
    return one_device(call.only("self", "index"))


def masked_fill(call: Call) -> torch.device | None:
    """Source: native/cuda/Indexing.cu, both overloads of masked_fill__cuda."""
    device, mask = call.device("self"), call.of("mask")[0]
    if call.of("value") and device is not None and device.type == "cpu":
        raise refusal(call, "masked-fill-value", call.of("self")[0])
    if mask.device != device:
        raise refusal(call, "masked-fill-mask", mask, mask_device=mask.device, device=device)
    return device


def ldexp(call: Call) -> torch.device | None:
    """An integer exponent is made a float first, on its own device. Source: native/BinaryOps.cpp, ldexp."""
    exponents = call.of("other")
    integral = bool(exponents) and not exponents[0].tensor.dtype.is_floating_point
    return iterated(() if integral else None)(call)


def binary_cross_entropy(call: Call) -> torch.device | None:
    """The weight multiplies the loss afterwards. Source: native/cuda/Loss.cu, binary_cross_entropy_out_cuda."""
    if call.only("self", "target").common_device == torch.device("cpu") and call.of("weight"):
        # Nothing but the weight is on the device: the kernel for it is handed the CPU's tensors.
        raise kernel_operand_refusal(call, call.of("self")[0], 0)
    return iterated(("weight",))(call)


def cross_entropy_of_logits(call: Call) -> torch.device | None:
    """The target's part of the loss is multiplied by the logits in place. Source: native/Loss.cpp."""
    rule = iterated(("self", "weight", "pos_weight"))
    return rule(call.only("target", "self", "weight", "pos_weight"))


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


def where(call: Call) -> torch.device | None:
    """0-dim inputs are moved first, from any device. Source: native/TensorCompare.cpp, where_self_out."""
    device = call.without("out").common_device
    if device is None or device.type == "cpu":
        return _no_scalars(call)
    return _no_scalars(call.among(o for o in call.operands if o.output or o.device == device or o.tensor.dim() > 0))


def logical(call: Call) -> torch.device | None:
    """The result is made on self's device before the iterator looks. Source: native/BinaryOps.cpp, comparison_op."""
    inputs = call.of("self")
    if call.device("out") is None and inputs and inputs[0].device.type == "cpu":
        other = first_elsewhere(call.operands, inputs[0].device)
        if other is not None:
            raise refusal(call, "tensor-iterator", inputs[0], device=other.device, other_device=inputs[0].device)
    return iterated()(call)


def addcmul(call: Call) -> torch.device | None:
    """Only tensor2 may be a 0-dim CPU tensor. Source: native/cuda/PointwiseOpsKernel.cu, addcmul_cuda_kernel."""
    device = iterated()(call)
    for argument in ("self", "tensor1"):
        for operand in call.of(argument):
            if operand.device != device:
                raise refusal(call, f"addcmul-{argument}", operand)
    return device


def block_diag(call: Call) -> torch.device | None:
    """Source: native/TensorShape.cpp, block_diag."""
    tensors = call.of("tensors")
    blamed = first_elsewhere(tensors, tensors[0].device)
    if blamed is not None:
        first = tensors[0].device
        raise refusal(call, "block-diag", blamed, device=first, index=blamed.position, other_device=blamed.device)
    return tensors[0].device


def matrix_vector(call: Call) -> torch.device | None:
    """Mv makes its result where the vector is and adds to it in place. Source: native/Blas.cpp, mv."""
    matrix, vector = call.of("self")[0], call.of("vec")[0]
    if matrix.device != vector.device:
        blamed = Operand("mat", matrix.tensor, matrix.device)
        raise compared_refusal(call, "wrapper_CUDA_addmv_", blamed, vector.device)
    return vector.device


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


def extreme_out(call: Call) -> torch.device | None:
    """Source: native/ReduceAllOps.cpp, min and max of all elements with `out=`."""
    here, out = call.of("self")[0], call.of("out")[0]
    if here.device != out.device:
        raise refusal(call, "plain-check", out, check_text="self.device() == out.device()")
    return here.device


def resized_out(call: Call) -> torch.device | None:
    """Cumulative operators that resize `out=` by hand. Source: native/Resize.cpp, resize_output's device check."""
    here = call.of("self")[0]
    for out in call.operands:
        if out.output and out.device != here.device:
            raise refusal(call, "resized-out", out, device=here.device, other_device=out.device)
    return here.device


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


def ctc_loss(call: Call) -> torch.device | None:
    """Targets are moved to log_probs, lengths are read on the CPU. Source: native/cuda/LossCTC.cu, ctc_loss_gpu."""
    return call.device("log_probs")


def searchsorted(call: Call) -> torch.device | None:
    """The sorter is keyword-only, with a check of its own. Source: native/BucketizationUtils.h."""
    boundaries = call.of("sorted_sequence")[0]
    for sorter in call.of("sorter"):
        if sorter.device != boundaries.device:
            raise refusal(call, "searchsorted-sorter", sorter, sorter_device=sorter.device, device=boundaries.device)
    return boundaries.device


def segment_reduce(call: Call) -> torch.device | None:
    """Keyword-only lengths, indices and offsets. Source: native/SegmentReduce.cpp, segment_reduce_kernel."""
    data = call.of("data")[0]
    for operand in call.operands:
        if operand.device != data.device:
            raise refusal(
                call, "plain-check", operand, check_text=f"data.get_device() == {operand.argument}_value.get_device()"
            )
    return data.device


def set_storage(call: Call) -> torch.device | None:
    """Source: native/Resize.h, checkSetStorage."""
    here = call.of("self")[0]
    for source in call.of("source"):
        if source.device != here.device:
            raise refusal(call, "set-storage", source, device=here.device, other_device=source.device)
    return here.device


def packed_lengths(call: Call) -> torch.device | None:
    """Lengths are on the CPU whatever the input. Source: native/PackedSequence.cpp, _pack_padded_sequence."""
    for lengths in call.of("lengths"):
        if lengths.device.type != "cpu":
            raise refusal(
                call,
                "lengths",
                lengths,
                dimension_count=lengths.tensor.dim(),
                device=lengths.device,
                dtype_type=_scalar_type(lengths.tensor.dtype),
            )
    return None


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


def _scalar_type(dtype: torch.dtype) -> str:
    return _SCALAR_TYPES.get(dtype, str(dtype).removeprefix("torch.").title())


def attention(call: Call) -> torch.device | None:
    """Query, key and value first, then the mask as the chosen kernel takes it.

    Source: native/transformers/attention.cpp, validate_sdpa_input; transformers/cuda/sdp_utils.cpp. Without a GPU to
    ask, the kernel is the one that a recent NVIDIA GPU takes.
    """
    query, key, value = (call.of(argument)[0] for argument in ("query", "key", "value"))
    if not query.device == key.device == value.device:
        raise refusal(
            call,
            "attention",
            query_device=query.device,
            key_device=key.device,
            value_device=value.device,
        )
    for mask in call.of("attn_mask"):
        if mask.device == query.device:
            continue
        if query.device.type == "cpu":
            raise no_kernel_refusal(call, mask, "aten::_scaled_dot_product_flash_attention_for_cpu")
        kernel = _attention_kernel(query.tensor)
        if kernel == "math":
            raise refusal(call, "tensor-iterator", mask, device=query.device, other_device=mask.device)
        blamed = Operand("attn_bias", mask.tensor, mask.device)
        raise compared_refusal(call, f"wrapper_CUDA___scaled_dot_product_{kernel}_attention", blamed, query.device)
    return query.device


def _attention_kernel(query: torch.Tensor) -> str:
    """CuDNN's for half precision, the memory-efficient one, or none where a row is not aligned to 16 bytes."""
    width = query.shape[-1] if query.dim() else 0
    if query.dtype in (torch.float16, torch.bfloat16):
        return "cudnn" if width % 8 == 0 else "math"
    return "efficient" if query.dtype is torch.float32 and width % 4 == 0 else "math"


def fused_with_tensor_lr(call: Call) -> torch.device | None:
    """A learning rate on the CPU is read as a number; on a device it is with the parameters.

    Source: native/cuda/FusedAdamKernel.cu and siblings, the overloads that take a tensor.
    """
    parameters = call.of("self")
    device = parameters[0].device if parameters else call.common_device
    for argument in ("grad_scale", "found_inf", "lr"):
        for operand in call.of(argument):
            if operand.device not in (device, torch.device("cpu")):
                raise refusal(call, "fused-optimizer", operand, argument=argument)
    return None


def foreach_scalar(call: Call) -> torch.device | None:
    """One 0-dim tensor for a whole list: a CPU one is read as a number. Source: ForeachBinaryOpScalarTensor.cu."""
    scalar = call.operands[-1]
    tensors = call.of("self")
    if tensors and scalar.argument != "self" and scalar.device.type != "cpu" and scalar.device != tensors[0].device:
        if tensors[0].device.type == "cpu":
            raise refusal(call, "foreach-scalar", scalar, device=scalar.device)
        raise refusal(call, "foreach-scalar", scalar, device=tensors[0].device, other_device=scalar.device)
    return None


def sparse_arithmetic(call: Call) -> torch.device | None:
    """Add and mul of sparse tensors. Source: native/sparse/cuda/SparseCUDATensorMath.cu."""
    name = call.operator.removeprefix("aten::").partition(".")[0].rstrip("_")
    here, other = call.of("self")[0], call.of("other")[0]
    if here.device == other.device:
        return here.device
    blamed = here if here.device.type == "cpu" else other
    values = {"function": name, "argument": blamed.argument, "backend": "CUDA", "other_backend": "CPU"}
    dense = not here.tensor.is_sparse
    raise refusal(call, "sparse-dense" if dense else "sparse", blamed, **values)


def no_kernel_refusal(call: Call, blamed: Operand | None, operator: str, available: str = "CPU, Meta") -> Exception:
    """The dispatcher's error: the operator has no kernel for this device."""
    backend = (blamed.device if blamed is not None else call.common_device or torch.device("cpu")).type.upper()
    return refusal(call, "no-kernel", blamed, function=operator, backend=backend, backends_text=f"{available}, …")
