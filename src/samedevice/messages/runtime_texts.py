"""What modules, generators, NumPy, autograd, optimizers and the machine say about devices.

Data only; `templates.py` tells how to read it.
"""

from __future__ import annotations

from samedevice.messages.template import Template

__all__ = ["RUNTIME_TEXTS"]

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
    # Source: aten/src/ATen/native/ForeachUtils.h, _group_tensors_by_first_tensors_device_and_dtype; 2.6 to 2.9 the one
    # way, 2.13 and 2.14 the other.
    Template(
        "foreach-groups",
        "Tensors of the same index must be on the same device and the same dtype except `step` tensors that can be "
        "CPU and float32/64, and optimizer states that can be bfloat16 for mixed-precision training",
        since=(2, 13),
    ),
    Template(
        "foreach-groups",
        "Tensors of the same index must be on the same device and the same dtype except `step` tensors that can be "
        "CPU and float32/64 notwithstanding",
        until=(2, 13),
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
    Template("no-driver", "CUDA driver initialization failed, you might not have a CUDA gpu."),
    Template("no-driver", "CUDA unknown error - this may be due to an incorrectly set up environment"),
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

RUNTIME_TEXTS: tuple[Template, ...] = (*_NN, *_RANDOM, *_NUMPY, *_AUTOGRAD, *_OPTIMIZERS, *_MACHINE)
