"""Convolution: the kernel chosen for the input's device decides which check comes first and how it is worded.

Source: aten/src/ATen/native/Convolution.cpp, `select_conv_backend` and `check_input_same_type_as_parameters`, 2.6 to
2.14. For an input on the CPU PyTorch itself is asked which kernel it would take; the answer depends on sizes, dtype,
threads and flags.
"""

from __future__ import annotations

import torch

from samedevice.simulation.calls import Call, Operand, refusal
from samedevice.simulation.rules.comparing import compared

__all__ = ["convolution"]

# The kernel of each choice, as its wrapper names it (the rest compare types first). Private API: the names of
# torch._C._ConvBackend, 2.6 to 2.14.
_CPU_KERNELS = {
    "Slow2d": "__slow_conv2d_forward",
    "SlowDilated2d": "_slow_conv_dilated2d",
    "SlowDilated3d": "_slow_conv_dilated3d",
    "SlowTranspose2d": "slow_conv_transpose2d",
    "SlowTranspose3d": "_slow_conv_transpose3d",
}


def convolution(call: Call) -> torch.device | None:
    """Convolutions of one to three dimensions, transposed ones too."""
    inputs = call.of("input")[0]
    if inputs.tensor.numel() == 0:
        # An empty batch runs no kernel.
        return inputs.device
    if inputs.device.type == "cpu":
        _check_cpu_input(call, _cpu_choice(call))
    elif _is_depthwise(call):
        kernel = "_conv_depthwise3d" if inputs.tensor.dim() == 5 else "__conv_depthwise2d"
        compared(f"wrapper_CUDA_{kernel}")(call)
    elif _is_cudnn(call):
        _check_types(call, "conv-types")
        transpose = "_transpose" if call.arguments.get("transposed") else ""
        compared(f"wrapper_{inputs.device.type.upper()}__cudnn_convolution{transpose}")(call.without("bias"))
    else:
        compared(f"wrapper_CUDA_{_native_kernel(call)}")(call)
    return inputs.device


def _check_cpu_input(call: Call, choice: str) -> None:
    if choice == "NnpackSpatial":
        raise refusal(call, "conv-nnpack", _elsewhere(call))
    if choice == "Slow3d":
        blamed = _elsewhere(call)
        raise refusal(
            call,
            "no-kernel",
            blamed,
            function="aten::slow_conv3d_forward",
            backend=blamed.device.type.upper(),
            backends_text="CPU, Meta, …",
        )
    if choice in _CPU_KERNELS:
        compared(f"wrapper_{_elsewhere(call).device.type.upper()}_{_CPU_KERNELS[choice]}")(call)
    # What is left is oneDNN's; the transposed one has no name in Python.
    _check_types(call, "conv-types-mkldnn")


def _elsewhere(call: Call) -> Operand:
    return next(operand for operand in call.operands if operand.device.type != "cpu")


def _cpu_choice(call: Call) -> str:
    """The kernel that PyTorch takes for this input on the CPU, e.g. "Mkldnn" or "Slow2d"."""
    given = call.arguments
    options = [given[name] for name in ("stride", "padding", "dilation", "transposed", "output_padding", "groups")]
    tensors = (given["input"], given["weight"], given.get("bias"))
    return str(torch._C._select_conv_backend(*tensors, *options, None)).rpartition(".")[2]


def _native_kernel(call: Call) -> str:
    """The kernel for an input on the device without cuDNN."""
    dimensions = call.of("input")[0].tensor.dim()
    if call.arguments.get("transposed"):
        return "_slow_conv_transpose3d" if dimensions == 5 else "slow_conv_transpose2d"
    if dimensions == 5:
        return "_slow_conv_dilated3d"
    dilated = any(step != 1 for step in call.arguments.get("dilation", ()))
    return "_slow_conv_dilated2d" if dilated else "__slow_conv2d_forward"


def _is_cudnn(call: Call) -> bool:
    """cuDNN, or what stands for it on other devices, takes all but output paddings as large as a stride."""
    paddings, strides = call.arguments.get("output_padding", ()), call.arguments.get("stride", ())
    enabled: bool = torch.backends.cudnn.enabled or call.of("input")[0].device.type != "cuda"
    return enabled and not any(padding >= stride for padding, stride in zip(paddings, strides, strict=False))


def _is_depthwise(call: Call) -> bool:
    """One group a channel, which CUDA does with a kernel of its own."""
    inputs, weight = call.of("input")[0].tensor, call.of("weight")[0].tensor
    groups = call.arguments.get("groups", 1)
    return (
        call.of("input")[0].device.type == "cuda"
        and not call.arguments.get("transposed")
        and inputs.dim() >= 3
        and inputs.shape[1] == groups > 1
        and weight.shape[0] % inputs.shape[1] == 0
    )


def _check_types(call: Call, kind: str) -> None:
    inputs = call.of("input")[0]
    for argument in ("weight", "bias"):
        for operand in call.of(argument):
            if operand.device.type != inputs.device.type:
                raise refusal(
                    call,
                    kind,
                    operand,
                    input_type=_type_name(inputs),
                    argument=argument,
                    parameter_type=_type_name(operand),
                )


def _type_name(operand: Operand) -> str:
    """The legacy type name that these messages print: "torch.cuda.FloatTensor", "CPUBFloat16Type"."""
    kind = operand.device.type
    plain = operand.tensor.type().rpartition(".")[2].removesuffix("Tensor")
    if kind == "mps" or plain in ("BFloat16", "ComplexFloat", "ComplexDouble", "ComplexHalf"):
        return f"{kind.upper()}{plain}Type"
    return f"torch.{plain}Tensor" if kind == "cpu" else f"torch.{kind}.{plain}Tensor"
