"""What there is to know about an operator before it is called, read once from its schema and from the device rules.

The dispatch mode looks it up on every call, so everything that can be decided beforehand is decided here. This module
calls no operator and knows no tensor.
"""

from __future__ import annotations

from typing import Any, Literal

import torch

from samedevice.simulation import device_checks, device_only, nondeterministic, observers, type_texts
from samedevice.simulation.operator_kernels import without_layout_kernel

__all__ = ["COMPOSITE", "NOTHING_TO_DO", "Operator"]

COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
NOTHING_TO_DO = "aten::record_stream"
"""Has no kernel for the CPU, and on a device nothing to wait for."""

Kind = Literal["ordinary", "factory", "composite", "python"]
_NUMBERS_FROM_TENSORS = ("aten::linspace", "aten::logspace")
"""Factories whose tensor arguments are read as numbers: the result does not follow them."""


_MAKES_QUANTIZED = ("aten::quantize_per_", "aten::_empty_affine", "aten::_empty_per_channel", "aten::_make_per_")


class Operator:
    """An `OpOverload`, with what its schema says.

    Attributes:
        call: calls it without PyTorch's Python layer.
        name: e.g. "aten::add".
        positions: the positional arguments that are tensors.
        names_tensors: there are keyword-only tensors (`out=`).
        draws: it draws random numbers.
        fresh: the results that are new tensors, neither views nor what was written to.
        kind: a factory has no operand that says where; a composite is made of other operators; the kernel of a
            "python" one is Python (`torch.library`), whose operators are seen one by one.
        event: what observers hear.
        plain: operands on one device are all there is to look at.
    """

    __slots__ = ("call", "draws", "event", "fresh", "func", "kind", "name", "names_tensors", "plain", "positions")

    def __init__(self, func: Any) -> None:
        schema = func._schema
        arguments = schema.arguments
        types = [str(argument.type) for argument in arguments]
        self.func = func
        self.name: str = schema.name
        self.call = func._op if schema.overload_name else device_only.KERNELS.get(self.name, func._op)
        if self.name in type_texts.REFUSED:
            self.call = type_texts.without(self.call, self.name)
        elif self.name in type_texts.CONVOLUTIONS:
            self.call = type_texts.convolved(self.call)
        self.positions = tuple(
            i for i, kind in enumerate(types) if kind in ("Tensor", "Optional[Tensor]") and not arguments[i].kwarg_only
        )
        self.names_tensors = any(a.kwarg_only and "Tensor" in kind for a, kind in zip(arguments, types, strict=True))
        self.draws = torch.Tag.nondeterministic_seeded in func.tags
        self.fresh = tuple(i for i, r in enumerate(schema.returns) if r.alias_info is None and "Tensor" in str(r.type))
        takes_device = any(argument.name == "device" for argument in arguments)
        takes_list = any("Tensor" in kind and "List" in kind for kind in types)
        self.kind = _kind_of(func, takes_device and not (self.positions or takes_list))
        made = self.kind == "factory" or self.name == "aten::lift_fresh"
        self.event: observers.EventKind = "made" if made else "computed"
        self.plain = (
            self.kind == "ordinary"
            and not (takes_list or takes_device or self.draws)
            and self.name not in (NOTHING_TO_DO, *nondeterministic.OPERATORS)
            and not device_checks.needs_check(func)
        )

    @property
    def makes_quantized(self) -> bool:
        """Whether its result is a quantized tensor."""
        return self.name.startswith(_MAKES_QUANTIZED)

    @property
    def refuses_quantized(self) -> bool:
        """Whether a device has no kernel of it for quantized tensors."""
        return without_layout_kernel(self.func, "QuantizedCUDA") is not None

    def has_nested_kernel(self, args: Any) -> bool:
        """Whether nested tensors are among `args` and the operator has a kernel for them."""
        return any(isinstance(value, torch.Tensor) and value.is_nested for value in args) and (
            torch._C._dispatch_has_kernel_for_dispatch_key(self.func.name(), "NestedTensorCPU")
        )


def _kind_of(func: Any, makes_from_nothing: bool) -> Kind:
    name = func.name()
    # A few operators of TorchScript (prim::device) are unknown to the dispatcher.
    if torch._C._dispatch_has_kernel(name) and _is_composite(name):
        return "composite"
    if func.namespace != "aten" and _is_python(func):
        return "python"
    return "factory" if makes_from_nothing or func._schema.name in _NUMBERS_FROM_TENSORS else "ordinary"


def _is_composite(name: str) -> bool:
    """Whether the CPU has no kernel of its own: `silu_backward` and two others are both, with other rounding.

    Source: native_functions.yaml, 2.6 to 2.14.
    """
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return has_kernel(name, COMPOSITE.name) and not has_kernel(name, "CPU")


def _is_python(func: Any) -> bool:
    """Whether `torch.library` registered a kernel of the operator: its list of them, 2.6 to 2.14."""
    overload = f".{func._schema.overload_name}" if func._schema.overload_name else ""
    begin = f"{func._schema.name.replace('::', '/', 1)}{overload}/"
    return any(name.startswith(begin) for name in torch.library._impls)
