"""Which rule an operator follows: PyTorch's own yaml decides, and one table holds the exceptions.

From the yaml come, for every operator: the generated check and its wrapper's name, TensorIterator operators and those
made of others; which have no kernel for the device is said in `operator_kernels.py`. An exception stands in `_ROWS`,
each with its source; a row is a property of an operator's code in PyTorch, never of one call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from samedevice.simulation.calls import Call, torch_version
from samedevice.simulation.native_functions import NativeFunction, native_function
from samedevice.simulation.rules import convolution, indexing, linear_algebra, networks, pointwise, sparse
from samedevice.simulation.rules.comparing import (
    Rule,
    any_device,
    assumed,
    compared,
    iterated,
    out_follows_input,
    out_follows_result,
)

__all__ = ["has_row", "method_name", "name_of", "needs_cpu_argument", "rule_of", "yaml_key"]

# Source: torchgen/model.py, STRUCTURED_DISPATCH_KEYS, 2.6 to 2.14.
_STRUCTURED_KEYS = frozenset({"CUDA", "XPU", "MPS"})


def route(operator: str, key: str = "CUDA", /, **names: str) -> Rule:
    """The rule of another operator, which this one calls with its own tensors.

    Args:
        operator: The operator called, e.g. "index_select".
        key: Whose kernel of it.
        names: This operator's argument -> the other's, in the other's order. Arguments not named do not take part.
    """

    def rule(call: Call) -> torch.device | None:
        operands = tuple(replace(o, argument=names[name]) for name in names for o in call.of(name))
        return _known_rule(operator, key)(call.among(operands))

    return rule


_nothing_compared = any_device()
_follows_self = any_device("self")

# Note [Rows]
# An operator stands here by its name with overload ("default" where it has none), or by its name for all overloads.
# "made of": composite operators that reach a dispatch mode whole (CompositeExplicitAutograd in the yaml), with the
# operator that checks for them, as the real CUDA build of 2.13 answered.
_ROWS: Mapping[str, Rule] = {
    # --- copies between devices are what they are for. Source: native/Copy.cpp.
    "copy": _follows_self,
    "copy_": pointwise.copied_into,
    "_foreach_copy": _nothing_compared,
    "_foreach_copy_": _nothing_compared,
    "_to_copy": _nothing_compared,
    "_copy_from": _nothing_compared,
    "_copy_from_and_resize": _nothing_compared,
    "slice_scatter": _follows_self,
    "select_scatter": _follows_self,
    "diagonal_scatter": _follows_self,
    "as_strided_scatter": _follows_self,
    "slice_inverse": any_device("base"),
    # --- only sizes are looked at. Source: native/TensorShape.cpp, Resize.cpp.
    "resize_as_": _follows_self,
    "is_same_size": _nothing_compared,
    "is_set_to": _nothing_compared,
    "_has_same_storage_numel": _nothing_compared,
    "_new_zeros_with_same_feature_meta": any_device("other"),
    "_make_dual": _follows_self,
    "_make_dual_copy": _follows_self,
    # --- a 0-dim tensor is read as a number. Source: native/Fill.cpp, RangeFactories.cpp, DistributionTemplates.h.
    "fill": _follows_self,
    "fill_": _follows_self,
    "bernoulli_": _follows_self,
    "bernoulli.out": _follows_self,
    "linspace": _nothing_compared,
    "logspace": _nothing_compared,
    "randint_like": _follows_self,
    # --- indexing
    "index": indexing.index,
    "_unsafe_index": indexing.index,
    "_unsafe_masked_index": indexing.masked_index,
    "index_put": indexing.index_put,
    "index_put_": indexing.index_put,
    "_index_put_impl_": indexing.index_put,
    "_unsafe_index_put": indexing.index_put,
    "_unsafe_masked_index_put_accumulate": indexing.masked_index_put,
    "index_fill": indexing.index_fill,
    "index_fill_": indexing.index_fill,
    "masked_fill": indexing.masked_fill,
    "masked_fill_": indexing.masked_fill,
    "masked_scatter": route("masked_scatter_", self="self", mask="mask", source="source"),
    "put": route("put_", self="self", index="index", source="source"),
    "embedding": route("index_select", weight="self", indices="index"),
    "searchsorted": indexing.searchsorted,
    "segment_reduce": indexing.segment_reduce,
    "set_": pointwise.set_storage,
    # --- joining
    "stack": route("cat", tensors="tensors"),
    "sort.values": route("sort.values_stable", values="values", indices="indices", self="self"),
    "stack.out": route("cat.out", out="out", tensors="tensors"),
    "_stack": route("cat", tensors="tensors"),
    "_nested_tensor_from_tensor_list": route("cat", list="tensors"),
    "block_diag": linear_algebra.block_diag,
    "_pack_padded_sequence": networks.packed_lengths,
    "_sparse_coo_tensor_with_dims_and_tensors": compared(
        "wrapper_SparseCUDA___sparse_coo_tensor_with_dims_and_tensors"
    ),
    # --- pointwise, beside the plain rule for TensorIterators
    "where": pointwise.where,
    "logical_and": pointwise.logical,
    "logical_or": pointwise.logical,
    "logical_xor": pointwise.logical,
    "addcmul": pointwise.addcmul,
    "addcmul_": pointwise.addcmul,
    "rsub": route("sub.Tensor", other="self", self="other"),
    "addcdiv": iterated(()),
    "addcdiv_": iterated(()),
    "lerp": iterated(kernel_needs=("self", "end")),
    "lerp_": iterated(kernel_needs=("end",)),
    "smooth_l1_loss": iterated(kernel_needs=("self", "target")),
    # Seen in 2.6 one way, in 2.9 and newer the other.
    "mse_loss": iterated(()) if torch_version() >= (2, 9) else iterated(kernel_needs=("self", "target")),
    "soft_margin_loss": iterated(("target",)),
    "binomial": iterated(()),
    "ldexp": pointwise.ldexp,
    "ldexp_": pointwise.ldexp,
    "binary_cross_entropy": pointwise.binary_cross_entropy,
    "binary_cross_entropy_with_logits": pointwise.cross_entropy_of_logits,
    "clamp.Tensor_out": iterated(()),
    "complex.default": route("complex.out", real="real", imag="imag"),
    "polar.default": route("polar.out", abs="abs", angle="angle"),
    "allclose": route("eq.Tensor", self="self", other="other"),
    "dist": route("sub.Tensor", self="self", other="other"),
    # --- linear algebra
    "mv": linear_algebra.matrix_vector,
    "mv.out": route("addmv.out", out="self", self="mat", vec="vec"),
    "dot.out": linear_algebra.dot_out,
    "vdot.out": linear_algebra.dot_out,
    "linear.out": linear_algebra.linear_out,
    "addr_": route("addr.out", self="self", vec1="vec1", vec2="vec2"),
    "softmax.int_out": route("_softmax.out", out="out", self="self"),
    "log_softmax.int_out": route("_log_softmax.out", out="out", self="self"),
    "min.unary_out": pointwise.extreme_out,
    "max.unary_out": pointwise.extreme_out,
    "mode.values": pointwise.checked_outs,
    "mean.dtype_out": out_follows_input,
    "logsumexp.out": out_follows_input,
    "logcumsumexp.out": pointwise.resized_out,
    "cummax.out": pointwise.resized_out,
    "cummin.out": pointwise.resized_out,
    "cholesky_solve": linear_algebra.cholesky_solve,
    "cholesky_solve.out": linear_algebra.cholesky_solve_out,
    "linalg_pinv": linear_algebra.pseudo_inverse,
    "linalg_lstsq.default": route("linalg_lstsq.out", self="self", b="b"),
    # --- torch.nn
    "conv_tbc": route("addmm_", self="self", weight="mat2"),
    "convolution": convolution.convolution,
    "_convolution": convolution.convolution,
    "_trilinear": linear_algebra.bilinear,
    "_ctc_loss": networks.ctc_loss,
    "ctc_loss": networks.ctc_loss,
    "_scaled_dot_product_flash_attention_for_cpu": networks.attention,
    # --- optimizers
    "_fused_adam_.tensor_lr": pointwise.fused_with_tensor_lr,
    "_fused_adamw_.tensor_lr": pointwise.fused_with_tensor_lr,
    "_fused_sgd_.tensor_lr": pointwise.fused_with_tensor_lr,
    "_fused_adagrad_.tensor_lr": pointwise.fused_with_tensor_lr,
}

# These have an argument that must be on the CPU, so they are looked at even where all operands share a device.
_NEEDS_CPU_ARGUMENT = frozenset(
    {"_pack_padded_sequence"} | {f"_foreach_{name}.Tensor" for name in ("addcdiv", "addcdiv_", "addcmul", "addcmul_")}
)

# Sparse layouts have kernels of their own.
_SPARSE_ROWS: Mapping[str, Rule] = {
    "add": sparse.add,
    "add_": sparse.add,
    "sub": sparse.add,
    "sub_": sparse.add,
    "mul": sparse.multiply,
    "mul_": sparse.multiply,
    "div": sparse.divide,
    "div_": sparse.divide,
    "mv": sparse.matrix_vector,
    "triangular_solve": sparse.triangular_solve,
    "_sparse_addmm": route("addmm", "SparseCUDA", self="self", mat1="mat1", mat2="mat2"),
}


# Rows that say what a kernel looks at beyond its wrapper's comparison, which comes first.
_COMPARED_FIRST = frozenset({"searchsorted"})


def needs_cpu_argument(func: Any) -> bool:
    """Whether the operator refuses an argument on the device where all the others are."""
    return name_of(func) in _NEEDS_CPU_ARGUMENT


def rule_of(func: Any, key: str) -> Rule:
    """The rule of an `OpOverload` where a kernel of dispatch key `key` runs.

    Args:
        func: The operator.
        key: "CUDA", "SparseCUDA", "XPU" …

    Returns:
        Its rule, cached.
    """
    name = name_of(func)
    return assumed if name is None else _known_rule(name, key)


@cache
def _known_rule(name: str, key: str) -> Rule:
    base = name.partition(".")[0]
    if key.startswith("Sparse") and base in _SPARSE_ROWS:
        return _SPARSE_ROWS[base]
    function = native_function(name)
    exact = _ROWS.get(f"{base}.{name.partition('.')[2] or 'default'}")
    if exact is None and function is not None and function.made_up and _is_out(name):
        return out_follows_result(_known_rule(_functional_name(name), key))
    row = exact or _ROWS.get(base)
    if row is not None:
        return row if base not in _COMPARED_FIRST else _after_generated_check(name, key, row)
    if base.startswith("_foreach_"):
        return _foreach_rule(name)
    return assumed if function is None else _yaml_rule(function, key)


def has_row(name: str, key: str = "CUDA") -> bool:
    """Whether the tables have a rule of the operator: then it has a kernel, whatever the yaml says.

    Args:
        name: Its name in the yaml.
        key: Whose kernel; for sparse layouts there is a table of its own.
    """
    base, _, overload = name.partition(".")
    return (
        base in _SPARSE_ROWS
        if key.startswith("Sparse")
        else f"{base}.{overload or 'default'}" in _ROWS or base in _ROWS
    )


def _yaml_rule(function: NativeFunction, key: str) -> Rule:
    if function.checked and function.has_kernel(yaml_key(key)):
        return compared(method_name(function, key))
    if _is_out(function.name) and function.structured and not function.inherits_iterator:
        return out_follows_input
    if function.iterator:
        # Operators of two inputs take one of them as a 0-dim CPU tensor, others none (the table has those that do).
        return iterated() if _input_count(function.name) == 2 else iterated(())
    if function.has_kernel(yaml_key(key)):
        return _nothing_compared
    return iterated()


def _after_generated_check(name: str, key: str, rule: Rule) -> Rule:
    function = native_function(name)
    check = rule if function is None else compared(method_name(function, key))

    def both(call: Call) -> torch.device | None:
        check(call)
        return rule(call)

    return both


# Lists are clamped to one another position by position. Source: native/ForeachOpsKernels.cpp.
_FOREACH_CALLS: Mapping[str, tuple[str, str]] = {
    "maximum": ("clamp_min", "min"),
    "clamp_min": ("clamp_min", "min"),
    "minimum": ("clamp_max", "max"),
    "clamp_max": ("clamp_max", "max"),
}


def _foreach_rule(name: str) -> Rule:
    """Lists may hold several devices; the tensors at one position follow the rule of the operator for one tensor.

    Source: native/ForeachUtils.h, can_use_fast_route and the slow path that calls the operator position by position.
    """
    base, _, overload = name.removeprefix("_foreach_").partition(".")
    plain = base.rstrip("_")
    has_scalars = overload == "Tensor" and plain in ("addcmul", "addcdiv")
    if overload == "Tensor" and not has_scalars:
        return pointwise.foreach_scalar
    if plain in _FOREACH_CALLS:
        called, argument = _FOREACH_CALLS[plain]
        single = route(f"{called}{'_' if base.endswith('_') else ''}.Tensor", self="self", other=argument)
    else:
        single = _ROWS.get(base, iterated())

    def rule(call: Call) -> torch.device | None:
        if has_scalars:
            pointwise.foreach_scalars(call)
        length = max((o.position for o in call.operands if o.position is not None), default=-1) + 1
        for position in range(length):
            single(call.among(operand for operand in call.operands if operand.position == position))
        return None

    return rule


def method_name(function: NativeFunction, key: str) -> str:
    """The wrapper's name in messages, e.g. "wrapper_CUDA__index_select".

    Source: torchgen/dest/register_dispatch_key.py: structured wrappers put the overload last, others first.
    """
    name, _, overload = function.name.partition(".")
    if _is_out(function.name):
        name += "_out"
    if function.structured and key in _STRUCTURED_KEYS:
        return f"wrapper_{key}_{name}" + (f"_{overload}" if overload else "")
    return f"wrapper_{key}_{overload}_{name}"


def name_of(func: Any) -> str | None:
    """The operator's name in the yaml, or None where it is another library's."""
    schema = func._schema
    namespace, _, name = schema.name.partition("::")
    if namespace != "aten":
        return None
    return f"{name}.{schema.overload_name}" if schema.overload_name else name


def yaml_key(key: str) -> str:
    """Kernels of others live outside the file, with the same checks: CUDA's entries stand in for them."""
    for kind in ("XPU", "NPU", "HPU", "MTIA"):
        key = key.replace(kind, "CUDA")
    return key


def _functional_name(name: str) -> str:
    """The operator whose `out=` form torchgen made up: "transpose_copy.int" for "transpose_copy.int_out"."""
    base, _, overload = name.partition(".")
    overload = overload.removesuffix("out").removesuffix("_")
    return f"{base}.{overload}" if overload else base


@cache
def _is_out(name: str) -> bool:
    schema = _schema(name)
    return schema is not None and any(argument.is_out for argument in schema.arguments)


def _input_count(name: str) -> int:
    schema = _schema(name)
    if schema is None:
        return 2
    return sum(not a.is_out and "Tensor" in str(a.type) for a in schema.arguments)


def _schema(name: str) -> Any:
    base, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, base, None)
    return getattr(getattr(packet, overload or "default", None), "_schema", None)
