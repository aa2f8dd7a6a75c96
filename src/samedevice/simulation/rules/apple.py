"""What MPS kernels say of a tensor that is on the CPU: most nothing before they read it, a few check for themselves.

Source: aten/src/ATen/native/mps/OperationUtils.mm (`Placeholder`), operations/LinearAlgebra.mm and Convolution.mm, 2.6
to 2.14.
"""

from __future__ import annotations

from samedevice.simulation.calls import Call, refusal

__all__ = ["refused"]

_SAME_GPU = {
    "mm": ("mm", ("out", "mat1", "mat2"), {"self": "mat1"}),
    "addmm": ("addmm_out_mps_impl", ("out", "self", "mat1", "mat2"), {}),
}
"""Kernel -> who calls `checkAllSameGPU`, on which arguments, and the names that differ there."""
_SLOW_CONVOLUTION = "slow_conv2d_forward"


def refused(call: Call, method: str) -> Exception:
    """The error for operands of which some are on the CPU.

    Args:
        call: The call.
        method: The name of the wrapper that refuses it on other devices, "wrapper_CUDA_mm".

    Returns:
        The error to raise.
    """
    blamed = next(operand for operand in call.operands if operand.device.type != "mps")
    kernel = method.removeprefix("wrapper_").partition("_")[2].removesuffix("_out_out")
    if kernel in _SAME_GPU:
        function, arguments, names = _SAME_GPU[kernel]
        name = names.get(blamed.argument, blamed.argument)
        values = {"argument": name, "index": arguments.index(name), "function": function}
        return refusal(call, "same-device", blamed, **values)
    if kernel.endswith(_SLOW_CONVOLUTION):
        devices = {"device": call.device("input") or call.device("self"), "other_device": call.device("weight")}
        return refusal(call, "conv-mps", blamed, function=f"{_SLOW_CONVOLUTION}_mps", **devices)
    return refusal(call, "mps-placeholder", blamed)
