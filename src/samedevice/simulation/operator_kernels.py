"""Which operators a device has no kernel for, so that the dispatcher refuses them whatever their operands.

PyTorch's own yaml decides; what is registered outside it is in one table here. What a kernel then compares is said in
`operator_rules.py`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from samedevice.simulation.native_functions import native_function
from samedevice.simulation.operator_rules import has_row, name_of, yaml_key

__all__ = ["has_kernel", "kernel_is_iterated", "without_layout_kernel"]


def has_kernel(func: Any, key: str) -> bool:
    """Whether the operator runs on a device at all: False for those that only the CPU has, e.g. histogram."""
    name = name_of(func)
    if name is None:
        return not _is_for_cpu(func)
    if has_row(name):
        return True
    function = native_function(name)
    if function is None:
        # The recurrent networks of quantized weights are in no yaml. Source: native/RNN.cpp.
        return not name.startswith("quantized_")
    if not function.keys or _is_cpu_choice(name.partition(".")[0]):
        return True
    composite = any(known.startswith("Composite") for known in function.keys)
    # A kernel for another layout (NestedTensorCUDA) is one too: which tensors come is not known here.
    return composite or any(known.endswith(yaml_key(key)) for known in function.keys)


# What comes with PyTorch beside aten, made for the CPU; the few operators of these that CUDA has too.
# Source: as the dispatcher of the real CUDA build of 2.13 lists them.
_CPU_LIBRARIES = frozenset({"quantized", "_quantized", "mkldnn", "mkldnn_prepacked", "onednn", "mkl"})
_ON_CUDA_TOO = frozenset(
    {
        *("add", "add_relu", "conv1d", "conv1d_prepack", "conv1d_relu", "conv2d", "conv2d_prepack", "conv2d_relu"),
        *("linear", "linear_prepack", "linear_relu", "max_pool2d"),
        *("embedding_bag_4bit_rowwise_offsets", "embedding_bag_byte_rowwise_offsets"),
        *("embedding_bag_4bit_unpack", "embedding_bag_byte_unpack"),
    }
)


def _is_for_cpu(func: Any) -> bool:
    namespace, _, name = func._schema.name.partition("::")
    return namespace in _CPU_LIBRARIES and name not in _ON_CUDA_TOO and not _is_composite(func.name())


def _is_composite(name: str) -> bool:
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return has_kernel(name, "CompositeImplicitAutograd") or has_kernel(name, "CompositeExplicitAutograd")


@cache
def without_layout_kernel(func: Any, key: str) -> str | None:
    """The operator that has no kernel for tensors of a layout of their own, on a device, where this one gets them.

    Args:
        func: The operator.
        key: "QuantizedCUDA", "SparseCUDA", "SparseCsrCUDA"; others have kernels outside the yaml.

    Returns:
        Its name, or that of the form that does its work; None where there is a kernel, or others are called.
    """
    name = name_of(func) or ""
    function = native_function(name)
    is_sparse = key.startswith("Sparse")
    if function is None or not function.keys or not key.startswith(("Quantized", "Sparse")):
        return None
    if function.has_kernel(yaml_key(key)) or any(known.startswith("Composite") for known in function.keys):
        return None
    if is_sparse and (has_row(name, key) or _cpu_has_kernel(name, key)):
        return None
    # The fallback that calls the form with `out=` is not for sparse tensors.
    return f"aten::{name if is_sparse else function.delegate or name}"


def kernel_is_iterated(func: Any) -> bool:
    """Whether the operator makes an iterator of all its operands before any kernel is looked for."""
    function = native_function(name_of(func) or "")
    return function is not None and function.inherits_iterator and torch.Tag.pointwise in func.tags


def _cpu_has_kernel(name: str, key: str) -> bool:
    layout = "SparseCsr" if key.startswith("SparseCsr") else "Sparse"
    has_kernel: bool = torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", f"{layout}CPU")
    return has_kernel


def _is_cpu_choice(name: str) -> bool:
    """Kernels that a composite operator picks because our tensors are on the CPU; a device takes others."""
    return (
        (name != "to_mkldnn" and "mkldnn" in name)
        or name.endswith(("_for_cpu", "_for_cpu_backward"))
        or "nnpack" in name
    )
