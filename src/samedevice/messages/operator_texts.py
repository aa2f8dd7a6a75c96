"""What operators say when tensors are on several devices. Data only; `templates.py` tells how to read it."""

from __future__ import annotations

from samedevice.messages.template import Template

__all__ = ["OPERATOR_TEXTS"]

_SAME = "Expected all tensors to be on the same device, but "

# Two devices met in one operator.
_OPERATORS = (
    # Source: aten/src/ATen/core/adaption.cpp, common_device_check_failure: what torchgen's wrappers compare.
    Template(
        "same-device",
        _SAME + "got {argument} is on {device}, different from other tensors on {other_device} "
        "(when checking argument in method {method})",
        since=(2, 8),
        places=(("{argument}", "device"), ("others", "other_device")),
    ),
    Template(
        "same-device",
        _SAME + "found at least two devices, {other_device} and {device}! "
        "(when checking argument for argument {argument} in method {method})",
        since=(1, 12),
        until=(2, 8),
        places=(("{argument}", "device"), ("others", "other_device")),
    ),
    Template(
        "same-device",
        _SAME + "found at least two devices, {other_device} and {device}! "
        "(when checking arugment for argument {argument} in method {method})",
        since=(1, 8),
        until=(1, 12),
        places=(("{argument}", "device"), ("others", "other_device")),
    ),
    # Source: aten/src/ATen/TensorUtils.cpp, checkSameGPU; MPS kernels of matrix products call it to this day.
    Template(
        "same-device",
        "Tensor for argument #{index} '{argument}' is on CPU, but expected it to be on GPU "
        "(while checking arguments for {function})",
        places=(("{argument}", "=cpu"),),
    ),
    Template(
        "same-device",
        "Tensor for '{argument}' is on CPU, but expected it to be on GPU (while checking arguments for {function})",
        until=(1, 9),
        places=(("{argument}", "=cpu"),),
    ),
    Template(
        "same-device",
        "Expected tensor for argument #{index} '{argument}' to have the same device as tensor for "
        "argument #{other_index} '{other_argument}'; but device {device_index} does not equal {other_device_index} "
        "(while checking arguments for {function})",
    ),
    Template(
        "same-device",
        "Expected object of device type {device} but got device type {other_device} for argument "
        "#{index} '{argument}' in call to {function}",
        until=(1, 8),
        places=(("{argument}", "other_device"), ("others", "device")),
    ),
    Template(
        "same-device",
        "Expected object of backend {backend} but got backend {other_backend} for argument #{index} '{argument}'",
        until=(1, 5),
        places=(("{argument}", "other_backend"), ("others", "backend")),
    ),
    Template(
        "same-device",
        "Expected object of type {type} but found type {other_type} for argument #{index} '{argument}'",
        until=(1, 2),
        places=(("{argument}", "other_type"), ("others", "type")),
    ),
    # Source: aten/src/THC, the kernels of torch 1.x for two GPUs.
    Template("same-device", "arguments are located on different GPUs at {where}", until=(1, 8)),
    Template("same-device", "expected type {expected_type} but got {other_type}", exception="TypeError", until=(1, 2)),
    # Source: aten/src/ATen/native/mps/operations/Convolution.mm.
    Template(
        "conv-mps",
        "{function}: input(device='{device}') and weight(device={other_device}')  must be on the same device",
        places=(("input", "device"), ("weight", "other_device")),
    ),
    # Source: aten/src/ATen/native/mps/operations/Linear.mm, `_mps_linear`.
    Template(
        "same-device",
        "Tensor for argument {argument} is on {device} but expected on {other_device}",
        places=(("{argument}", "device"), ("others", "other_device")),
    ),
    # Source: torch/_prims_common, check_same_device; torch/_subclasses/fake_tensor.py, _find_common_device.
    Template(
        "same-device",
        "Tensor on device {device} is not on the expected device {other_device}!",
        places=(("tensor", "device"), ("others", "other_device")),
    ),
    Template(
        "same-device",
        "Unhandled FakeTensor Device Propagation for {function}, found two different devices {device}, {other_device}",
        places=(("tensor", "device"), ("others", "other_device")),
    ),
    # Source: aten/src/ATen/TensorIterator.cpp, compute_types.
    Template(
        "tensor-iterator",
        _SAME + "found at least two devices, {device} and {other_device}!",
        since=(1, 5),
        places=(("common", "device"), ("operand", "other_device")),
    ),
    Template(
        "tensor-iterator",
        "Expected all tensors to be on the same device. Found: {device}, {other_device}",
        places=(("common", "device"), ("operand", "other_device")),
    ),
    Template("cpu-scalars", "Trying to pass too many CPU scalars to non-CPU kernel!", since=(1, 13)),
    Template("cpu-scalars", "Trying to pass too many CPU scalars to CUDA kernel!", until=(1, 13)),
    # Source: aten/src/ATen/native/cuda/Loops.cuh, gpu_kernel.
    Template(
        "kernel-operand",
        'iter.device(arg).is_cuda() INTERNAL ASSERT FAILED at "{source_text}":{line_count}, please '
        "report a bug to PyTorch. argument {index}: expected a CUDA device but found {device}",
        places=(("operand", "device"),),
    ),
    # Source: aten/src/ATen/native/sparse/cuda/SparseCsrTensorMath.cu, add_out_dense_sparse_compressed_cuda.
    Template(
        "sparse-dense-assert",
        'dense.is_cuda() INTERNAL ASSERT FAILED at "{source_text}":{line_count}, please report a bug to PyTorch.',
        places=(("dense", "=cpu"),),
    ),
    # Source: c10/cuda/impl/CUDAGuardImpl.h.
    Template("guard-kind", "{backend}GuardImpl initialized with non-{backend} DeviceType: {device}"),
    # Source: torchgen/dest/register_dispatch_key.py, resize_out.
    # Source: aten/src/ATen/native/ReduceOps.cpp, mode_out.
    Template(
        "out-argument",
        "expected device '{device}' but got '{other_device}' for {argument} output",
        places=(("input", "device"), ("{argument}", "other_device")),
    ),
    Template(
        "out-device",
        "Expected out tensor to have device {device}, but got {other_device} instead",
        places=(("input", "device"), ("out", "other_device")),
    ),
    # Source: c10/core/impl/OperatorEntry: no kernel for this device.
    Template(
        "no-kernel",
        "Could not run '{function}' with arguments from the '{backend}' backend. This could be because the operator "
        "doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom "
        "build). If you are a Facebook employee using PyTorch on mobile, please visit https://fburl.com/ptmfixes for "
        "possible resolutions. '{function}' is only available for these backends: [{backends_text}].",
        exception="NotImplementedError",
    ),
    Template(
        "no-kernel",
        "Could not run '{function}' with arguments from the '{backend}' backend.",
        exception="NotImplementedError",
    ),
    # Source: aten/src/ATen/native/mps: an operand that was never copied to the GPU.
    Template("mps-placeholder", "Placeholder storage has not been allocated on MPS device!"),
    Template(
        "mps-float64",
        "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. "
        "Please use float32 instead.",
        exception="TypeError",
        cause="other",
    ),
)

# Operators with words of their own.
_OWN_WORDS = (
    # Source: aten/src/ATen/native/TensorAdvancedIndexing.cpp, check_indices_on_cpu_or_selfdevice; IndexingUtils.h.
    Template(
        "index-device",
        "indices should be either on cpu or on the same device as the indexed tensor ({device})",
        places=(("self", "device"),),
        cause="index-device",
    ),
    Template(
        "index-value",
        "expected device {device} but got device {other_device} for value tensor",
        places=(("self", "device"), ("values", "other_device")),
    ),
    # Source: aten/src/ATen/native/Blas.cpp, dot_out.
    Template(
        "dot-out",
        "{function}: Expected the output and input tensors to be on the same device, but got the output tensor on "
        "{out_device}, the 'input' tensor on {device}, and the 'other' tensor on {other_device}",
        places=(("out", "out_device"), ("self", "device"), ("other", "other_device")),
    ),
    Template(
        "tensordot-out",
        "tensordot: Expected the output and input tensors to be on the same device, but got the output tensor on "
        "{out_device}, input tensor a on {device}, and input tensor b on {other_device}",
        places=(("out", "out_device"), ("a", "device"), ("b", "other_device")),
    ),
    Template("resized-out", "expected device {device} but found {other_device}"),
    # Source: aten/src/ATen/native/cuda/Indexing.cu, masked_fill__cuda.
    Template(
        "masked-fill-mask",
        "expected self and mask to be on the same device, but got mask on {mask_device} and self on {device}",
        places=(("self", "device"), ("mask", "mask_device")),
    ),
    Template("masked-fill-value", "masked_fill_: Expected inputs to be on same device"),
    # Source: aten/src/ATen/TensorUtils.cpp, checkDeviceType and checkSameDevice of torch::utils.
    Template(
        "argument-device",
        "Expected tensor to have {device} Device, but got tensor with {other_device} Device "
        "(while checking arguments for {function}():)",
        places=(("expected", "device"), ("tensor", "other_device")),
    ),
    Template(
        "argument-device-type",
        "Expected tensor to have {device} DeviceType, but got tensor with {other_device} DeviceType "
        "(while checking arguments for {function}())",
        places=(("expected", "device"), ("tensor", "other_device")),
    ),
    # Source: aten/src/ATen/native/cuda/PointwiseOpsKernel.cu.
    Template(
        "addcmul-self", "CPU Scalar support for self argument is not supported when calling addcmul on CUDA tensors."
    ),
    Template(
        "addcmul-tensor1",
        "CPU Scalar support for tensor1 argument is not supported when calling addcmul on CUDA "
        "tensors. However, CPU Scalar support for tensor2 is supported, please swap your tensor1 and tensor2 terms.",
    ),
    # Source: aten/src/ATen/native/TensorShape.cpp.
    Template("meshgrid", "meshgrid expects all tensors to have the same device"),
    Template(
        "block-diag",
        "torch.block_diag: input tensors must all be on the same device. Input 0 is on device {device} "
        "and input {index} is on device {other_device}",
        places=(("tensors[0]", "device"), ("tensors[{index}]", "other_device")),
    ),
    Template(
        "tensor-split",
        "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {device}",
        places=(("tensor_indices_or_sections", "device"),),
    ),
    Template(
        "cat",
        "torch.cat(): all input tensors must be on the same device. Received {device} and {other_device}",
        until=(2, 0),
        places=(("tensors", "device"), ("tensors", "other_device")),
    ),
    Template(
        "cat",
        "All input tensors must be on the same device. Received {device} and {other_device}",
        until=(1, 11),
        places=(("tensors", "device"), ("tensors", "other_device")),
    ),
    # Source: aten/src/ATen/native/BucketizationUtils.h, Sorting.cpp, ReduceOps.cpp.
    Template(
        "searchsorted-sorter",
        "torch.searchsorted(): sorter and boundary tensors should have same device type, but got "
        "sorter tensor device type {sorter_device} and input value tensor device type {device}",
        places=(("sorter", "sorter_device"), ("sorted_sequence", "device")),
    ),
    Template("quantile", "quantile() {argument} tensor must be on the same device as the input tensor"),
    Template(
        "gradient",
        "torch.gradient expected each tensor to be on the same device, but got devices {device} and {other_device}!",
        places=(("self", "device"), ("spacing", "other_device")),
    ),
    # Source: aten/src/ATen/native/SegmentReduce.cpp.
    Template(
        "plain-check",
        "Expected {check_text} to be true, but got false.  "
        "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)",
    ),
    # Source: aten/src/ATen/native/LinearAlgebraUtils.h, LinearAlgebra.cpp.
    Template(
        "linalg-solve",
        "Expected b and A to be on the same device, but found b on {device} and A on {other_device} instead.",
        places=(("b", "device"), ("A", "other_device")),
    ),
    Template(
        "linalg-device",
        "{function}: Expected {argument} and input tensors to be on the same device, but got {argument} on "
        "{device} and input on {other_device}",
        places=(("{argument}", "device"), ("input", "other_device")),
    ),
    Template(
        "multi-dot-out",
        "multi_dot(): expected out tensor to be on device {device} but got {other_device}",
        places=(("tensors", "device"), ("out", "other_device")),
    ),
    Template(
        "multi-dot",
        "multi_dot(): all tensors must be on the same device but tensor 0 is on {device} and tensor "
        "{index} on {other_device}",
        places=(("tensors[0]", "device"), ("tensors[{index}]", "other_device")),
    ),
    # Source: aten/src/ATen/native/WeightNorm.cpp, _weight_norm.
    Template(
        "weight-norm",
        "weight_norm: expected v_in and g_in to be on the same device, but v_in is on {device} and g_in is on "
        "{other_device}",
        places=(("v_in", "device"), ("g_in", "other_device")),
    ),
    # Source: aten/src/ATen/native/SpectralOps.cpp.
    Template(
        "stft-window",
        "{function} input and window must be on the same device but got self on {device} and window on {window_device}",
        places=(("self", "device"), ("window", "window_device")),
    ),
    # Source: aten/src/ATen/native/sparse/cuda, SparseTensorMath.cu.
    Template(
        "sparse-dense", "{function}: expected '{argument}' to be a {backend} tensor, but got a {other_backend} tensor"
    ),
    Template("sparse", "{function}: expected '{argument}' to be {backend}, but got {other_backend}"),
    Template(
        "sparse-compressed", "{function}: expected '{argument}' to be CUDA tensor, but got tensor on device: {device}"
    ),
    Template("sparse-values", "Values and {argument} need to be on the same device."),
    # Source: aten/src/ATen/native/Resize.h, checkSetStorage.
    Template(
        "set-storage",
        'Attempted to set the storage of a tensor on device "{device}" to a storage on different device '
        '"{other_device}".  This is no longer allowed; the devices must match.',
        places=(("self", "device"), ("source", "other_device")),
    ),
    # Source: aten/src/ATen/native/cuda/ForeachBinaryOpScalarTensor.cu, ForeachBinaryOpList.cpp.
    # Source: aten/src/ATen/native/cuda/FusedAdamKernel.cu and siblings.
    Template("fused-optimizer", "{argument} must be on the same GPU device as the params"),
    Template(
        "foreach-scalars", "Expected scalars to be on CPU, got {device} instead.", places=(("scalars", "device"),)
    ),
    Template(
        "foreach-scalar",
        "scalar tensor expected to be on {device} but is on {other_device}",
        places=(("self", "device"), ("scalar", "other_device")),
    ),
    Template(
        "foreach-scalar-in-place",
        "scalar tensor is expected to be on {device} but is on {other_device}",
        places=(("self", "device"), ("scalar", "other_device")),
    ),
)

OPERATOR_TEXTS: tuple[Template, ...] = (*_OPERATORS, *_OWN_WORDS)
