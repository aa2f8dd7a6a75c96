"""Pointwise operators, losses and lists of tensors whose rule is not quite that of their iterator.

Each rule names its source in PyTorch; which operator follows which is in `operator_rules.py`.
"""

from __future__ import annotations

import torch

from samedevice.faults import attach_fault
from samedevice.simulation.calls import Call, fault, first_elsewhere, refusal, torch_version
from samedevice.simulation.rules.comparing import iterated, kernel_operand_refusal, one_device

__all__ = [
    "addcmul",
    "binary_cross_entropy",
    "checked_outs",
    "copied_into",
    "cross_entropy_of_logits",
    "extreme_out",
    "foreach_scalar",
    "foreach_scalars",
    "fused_with_tensor_lr",
    "ldexp",
    "logical",
    "resized_out",
    "set_storage",
    "where",
]

_no_scalars = iterated(())


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


def ldexp(call: Call) -> torch.device | None:
    """An integer exponent is made a float first, on its own device. Source: native/BinaryOps.cpp, ldexp."""
    exponents = call.of("other")
    integral = bool(exponents) and not exponents[0].tensor.dtype.is_floating_point
    return iterated(() if integral else None)(call)


def addcmul(call: Call) -> torch.device | None:
    """Only tensor2 may be a 0-dim CPU tensor, in 2.6 none. Source: native/cuda/PointwiseOpsKernel.cu."""
    if torch_version() < (2, 7):
        return _no_scalars(call)
    device = iterated()(call)
    for argument in ("self", "tensor1"):
        for operand in call.of(argument):
            if operand.device != device:
                raise refusal(call, f"addcmul-{argument}", operand)
    return device


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


def checked_outs(call: Call) -> torch.device | None:
    """Each `out=` against the input. Source: native/Sorting.cpp and ReduceOps.cpp, `mode_out`."""
    here = call.of("self")[0]
    for out in call.operands:
        if out.is_out and out.device != here.device:
            raise refusal(call, "out-argument", out, device=here.device, other_device=out.device, argument=out.argument)
    return here.device


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


def foreach_scalar(call: Call) -> torch.device | None:
    """One 0-dim tensor for a whole list: a CPU one is read as a number, and `add` reads any.

    Source: native/cuda/ForeachBinaryOpScalarTensor.cu and native/ForeachOpsKernels.cpp.
    """
    scalar, tensors = call.operands[-1], call.of("self")
    if call.operator.startswith("aten::_foreach_add") or not tensors:
        return None
    if scalar.device.type == "cpu":
        # Raises where it holds several.
        scalar.tensor.item()
        return None
    device = tensors[0].device
    is_slow = device.type != "cpu" and tensors[0].tensor.dtype != scalar.tensor.dtype
    if is_slow or any(tensor.device != device for tensor in tensors):
        for tensor in tensors:
            one_device(call.among((tensor, scalar)))
    elif scalar.device != device:
        kind = "foreach-scalar-in-place" if tensors[0].output else "foreach-scalar"
        raise refusal(call, kind, scalar, device=device, other_device=scalar.device)
    return None


def foreach_scalars(call: Call) -> torch.device | None:
    """Numbers for all lists, packed in one tensor. Source: native/ForeachUtils.h, convert_tensor_to_scalar_list."""
    for scalars in call.of("scalars"):
        if scalars.device.type != "cpu":
            raise refusal(call, "foreach-scalars", scalars, device=scalars.device)
    return None


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


def copied_into(call: Call) -> torch.device | None:
    """Numbers that a quantized tensor takes are quantized where it is. Source: native/quantized/Quantizer.cpp."""
    here, source = call.of("self")[0], call.of("src")[0]
    if here.tensor.is_quantized and not source.tensor.is_quantized and here.device != source.device:
        per = "tensor" if here.tensor.qscheme() is torch.per_tensor_affine else "channel"
        error = RuntimeError(
            f"quantize_tensor_per_{per}_affine expects a quantized and float tensors to be on the same device."
        )
        attach_fault(error, fault(call, source))
        raise error
    return here.device


def set_storage(call: Call) -> torch.device | None:
    """Source: native/Resize.h, checkSetStorage."""
    here = call.of("self")[0]
    for source in call.of("source"):
        if source.device != here.device:
            raise refusal(call, "set-storage", source, device=here.device, other_device=source.device)
    return here.device
