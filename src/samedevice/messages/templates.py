"""PyTorch's device texts, word for word, in every version's wording that is known.

Data only. One row a wording, rows of one kind newest first. A version stands where it is known from the texts inside
the wheels or from a report; a row without one is spoken by all versions. Sources name PyTorch's own files.
"""

from __future__ import annotations

from samedevice.messages.template import Template

__all__ = ["TEMPLATES"]

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
    Template(
        "same-device",
        "Tensor for argument #{index} '{argument}' is on CPU, but expected it to be on GPU "
        "(while checking arguments for {function})",
        until=(1, 9),
    ),
    Template(
        "same-device",
        "Tensor for '{argument}' is on CPU, but expected it to be on GPU (while checking arguments for {function})",
        until=(1, 9),
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
    ),
    Template(
        "same-device",
        "Expected object of type {type} but found type {other_type} for argument #{index} '{argument}'",
        until=(1, 2),
    ),
    # Source: aten/src/ATen/core/dispatch, "Expected Tensor to be on…" of MPS kernels.
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
    # Source: c10/cuda/impl/CUDAGuardImpl.h.
    Template("guard-kind", "{backend}GuardImpl initialized with non-{backend} DeviceType: {device}"),
    # Source: torchgen/dest/register_dispatch_key.py, resize_out.
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
        "foreach-scalar",
        "scalar tensor expected to be on {device} but is on {other_device}",
        places=(("self", "device"), ("scalar", "other_device")),
    ),
    Template(
        "foreach-scalar", "scalar tensor is expected to be on cpu but is on {device}", places=(("scalar", "device"),)
    ),
)

# torch.nn.
_NN = (
    # Source: aten/src/ATen/native/Convolution.cpp, check_input_same_type_as_parameters.
    Template(
        "conv-types-mkldnn",
        "Input type ({input_type}) and {argument} type ({parameter_type}) should be the same or input should "
        "be a MKLDNN tensor and {argument} is a dense tensor",
    ),
    Template("conv-types", "Input type ({input_type}) and {argument} type ({parameter_type}) should be the same"),
    Template("conv-nnpack", "Mismatched Tensor types in NNPack convolutionOutput"),
    # Source: aten/src/ATen/native/RNN.h, check_attributes.
    Template(
        "rnn-hidden",
        "Input and hidden tensors are not at the same device, found input tensor at {input_device} and "
        "hidden tensor at {hidden_device}",
        places=(("input", "input_device"), ("hidden", "hidden_device")),
        cause="hidden-state",
    ),
    Template(
        "rnn-parameters",
        "Input and parameter tensors are not at the same device, found input tensor at {input_device} and "
        "parameter tensor at {parameter_device}",
        places=(("input", "input_device"), ("parameter", "parameter_device")),
    ),
    # Source: aten/src/ATen/native/transformers/attention.cpp, validate_sdpa_input.
    Template(
        "attention",
        "Expected query, key, and value to have the same device type, but got query.device: {query_device} "
        "key.device: {key_device} and value.device: {value_device} instead.",
        places=(("query", "query_device"), ("key", "key_device"), ("value", "value_device")),
    ),
    # Source: aten/src/ATen/native/PackedSequence.cpp.
    Template(
        "lengths",
        "'lengths' argument should be a 1D CPU int64 tensor, but got {dimension_count}D {device} {dtype_type} tensor",
        places=(("lengths", "device"),),
        cause="lengths-must-be-cpu",
    ),
)

# Random numbers.
_RANDOM = (
    # Source: aten/src/ATen/core/Generator.h, check_generator.
    Template(
        "generator",
        "Expected a '{device}' device type for generator but found '{generator_device}'",
        places=(("result", "device"), ("generator", "generator_device")),
        cause="generator-device",
    ),
    Template(
        "generator",
        "Expected a '{device}' generator device but found '{generator_device}'",
        places=(("result", "device"), ("generator", "generator_device")),
        cause="generator-device",
    ),
    Template("rng-state", "RNG state must be a torch.ByteTensor", exception="TypeError", cause="generator-device"),
    Template(
        "rng-state",
        "expected a torch.ByteTensor, but got {found_type}",
        exception="TypeError",
        cause="generator-device",
    ),
)

# Leaving the device.
_NUMPY = (
    # Source: torch/csrc/utils/tensor_numpy.cpp.
    Template(
        "numpy",
        "can't convert {device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        exception="TypeError",
        places=(("self", "device"),),
        cause="numpy-on-cuda",
    ),
    Template(
        "numpy",
        "can't convert {backend} tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        exception="TypeError",
        until=(1, 5),
        cause="numpy-on-cuda",
    ),
    # Source: torch/_tensor.py, __cuda_array_interface__.
    Template(
        "array-interface",
        "Can't get __cuda_array_interface__ on non-CUDA tensor type: {self_type} If CUDA data is required "
        "use tensor.cuda() to copy tensor to device memory.",
        exception="AttributeError",
    ),
    Template(
        "legacy-constructor",
        "expected TensorOptions({expected_text}) (got TensorOptions({found_text}))",
        exception="TypeError",
    ),
    Template("dlpack", "Unsupported device in DLTensor."),
    Template("pin-memory", "cannot pin '{self_type}' only dense CPU tensors can be pinned"),
    Template("cpu-only-method", "{function} is only implemented on CPU tensors", exception="TypeError"),
)

# Autograd.
_AUTOGRAD = (
    # Source: torch/csrc/autograd/python_variable.cpp, THPVariable_set_grad.
    Template(
        "assigned-gradient",
        "attempting to assign a gradient with device type '{grad_device}' to a tensor with device type "
        "'{device}'. Please ensure that the gradient and the tensor are on the same device",
        places=(("grad", "grad_device"), ("self", "device")),
    ),
    Template(
        "assigned-gradient-index",
        "attempting to assign a gradient located on device with index '{grad_text}' to a tensor located on device "
        "with index '{self_text}'. Please ensure that the gradient and the tensor are on the same device",
    ),
    Template("assigned-gradient", "assigned grad has data located on a different device", until=(1, 13)),
    # Source: torch/csrc/autograd/engine.cpp, validate_outputs.
    Template(
        "invalid-gradient",
        "Function {node_function} returned an invalid gradient at index {index} - expected device {device} "
        "but got {grad_device}",
        places=(("input", "device"), ("grad", "grad_device")),
    ),
    Template(
        "invalid-gradient",
        "invalid gradient at index {index} - expected device {device} but got {grad_device}",
        places=(("input", "device"), ("grad", "grad_device")),
    ),
    Template(
        "invalid-gradient",
        "Function {node_function} returned an invalid gradient at index {index} - expected type {type} but "
        "got {grad_type}",
        until=(1, 5),
    ),
    # Source: torch/csrc/autograd/custom_function.cpp, check_variable_result.
    Template("hook-type", "hook '{hook_text}' has changed the type of value (was {type} got {grad_type})"),
)

# Optimizers and mixed precision.
_OPTIMIZERS = (
    # Source: torch/optim/adam.py and its siblings.
    Template(
        "capturable",
        "If capturable=True, params and state_steps must be on supported devices: {devices_text}.",
        exception="AssertionError",
        since=(2, 5),
        cause="optimizer-state",
    ),
    Template(
        "capturable",
        "If capturable=True, params and state_steps must be CUDA tensors.",
        exception="AssertionError",
        cause="optimizer-state",
    ),
    Template(
        "capturable",
        "If capturable=False, state_steps should not be CUDA tensors.",
        exception="AssertionError",
        cause="optimizer-state",
    ),
    Template(
        "capturable",
        "params and state_steps must be on supported devices: {devices_text}.",
        exception="AssertionError",
        cause="optimizer-state",
    ),
    Template(
        "lr-tensor",
        "lr as a Tensor is not supported for capturable=False and foreach=True",
        exception="ValueError",
        cause="other",
    ),
    # Source: torch/optim/optimizer.py, add_param_group.
    Template("non-leaf", "can't optimize a non-leaf Tensor", exception="ValueError"),
    Template("empty-optimizer", "optimizer got an empty parameter list", exception="ValueError"),
    # Source: torch/amp/grad_scaler.py.
    Template("no-inf-checks", "No inf checks were recorded for this optimizer.", exception="AssertionError"),
    # Source: torch/nn/utils/convert_parameters.py.
    Template(
        "parameters-to-vector",
        "Found two parameters on different devices, this is currently not supported.",
        exception="TypeError",
        cause="split-model",
    ),
)

# Several devices, processes, checkpoints and the machine itself.
_MACHINE = (
    # Source: torch/nn/parallel/data_parallel.py.
    Template(
        "data-parallel",
        "module must have its parameters and buffers on device {device} (device_ids[{index}]) but found one of "
        "them on device: {other_device}",
        places=(("device_ids[0]", "device"), ("parameter", "other_device")),
        cause="dataparallel-misplaced",
    ),
    Template("data-parallel-id", "Invalid device id", exception="AssertionError", cause="dataparallel-misplaced"),
    Template(
        "gather-cpu",
        "Gather function not implemented for CPU tensors",
        exception="AssertionError",
        cause="dataparallel-misplaced",
    ),
    Template(
        "broadcast-cpu",
        "Broadcast function not implemented for CPU tensors",
        exception="AssertionError",
        cause="dataparallel-misplaced",
    ),
    # Source: torch/nn/parallel/distributed.py.
    Template(
        "ddp-device-ids",
        "DistributedDataParallel device_ids and output_device arguments only work with "
        "single-device/multiple-device GPU modules or CPU modules, but got device_ids {ids_text}, output_device "
        "{output_text}, and module parameters {parameters_text}.",
        exception="ValueError",
    ),
    Template("ddp-one-device", "device_ids can only be None or contain a single element.", exception="ValueError"),
    Template(
        "ddp-mixed",
        "DistributedDataParallel's input module must be on the same type of devices, but input module parameters "
        "locate in {devices_text}.",
        exception="ValueError",
        cause="split-model",
    ),
    # Source: torch/serialization.py.
    Template(
        "load-without-cuda",
        "Attempting to deserialize object on a {backend} device but torch.{module_device}.is_available() is "
        "False. If you are running on a CPU-only machine, please use torch.load with map_location="
        "torch.device('cpu') to map your storages to the CPU.",
        cause="checkpoint-map-location",
    ),
    Template(
        "load-bad-index",
        "Attempting to deserialize object on {backend} device {index} but torch.{module_device}.device_count() is "
        "{device_count}. Please use torch.load with map_location to map your storages to an existing device.",
        cause="checkpoint-map-location",
    ),
    Template(
        "load-unknown-tag",
        "don't know how to restore data location of {storage_type} (tagged with {tag_text})",
        cause="checkpoint-map-location",
    ),
    # Source: c10/cuda/CUDAException.cpp.
    Template("invalid-ordinal", "CUDA error: invalid device ordinal", exception="AcceleratorError", since=(2, 8)),
    Template("invalid-ordinal", "CUDA error: invalid device ordinal", until=(2, 8)),
    Template("invalid-device-string", "Invalid device string: '{name_text}'"),
    Template("expected-device-kind", "Expected a {device} device, but got: {other_device}", exception="ValueError"),
    # Source: torch/cuda/__init__.py, _lazy_init; torch/csrc/utils/device_lazy_init; aten/src/ATen/cuda.
    Template("no-cuda-build", "Torch not compiled with {backend} enabled", exception="AssertionError"),
    Template("no-cuda-build", "PyTorch is not linked with support for {device} devices"),
    Template(
        "no-driver",
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver "
        "from http://www.nvidia.com/Download/index.aspx",
    ),
    Template("no-driver", "The NVIDIA driver on your system is too old (found version {version_count})."),
    Template("no-accelerator", "Cannot access accelerator device when none is available."),
    Template("no-accelerator", "No CUDA GPUs are available"),
    Template(
        "fork",
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' "
        "start method",
    ),
    Template(
        "device-type-string", "Expected one of cpu, {kinds_text} device type at start of device string: {name_text}"
    ),
    # Source: torch/nn/modules/module.py, to.
    Template(
        "meta-copy",
        "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
        "torch.nn.Module.to() when moving module from meta to a different device.",
        exception="NotImplementedError",
    ),
    Template("meta-copy", "Cannot copy out of meta tensor; no data!", exception="NotImplementedError"),
    Template("meta-item", "Tensor.item() cannot be called on meta tensors"),
    # Source: torch/testing/_comparison.py.
    Template(
        "assert-close",
        "The values for attribute 'device' do not match: {device} != {other_device}.",
        exception="AssertionError",
        places=(("actual", "device"), ("expected", "other_device")),
    ),
)

TEMPLATES: tuple[Template, ...] = (
    *_OPERATORS, *_OWN_WORDS, *_NN, *_RANDOM, *_NUMPY, *_AUTOGRAD, *_OPTIMIZERS, *_MACHINE,
)  # fmt: skip
