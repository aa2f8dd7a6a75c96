"""Would the real device refuse this operator call? Decided from PyTorch's own yaml, in PyTorch's own words.

    device = check(torch.ops.aten.add.Tensor, (x, y), {}, device_of)      # where the result lives, or RuntimeError

Values are on the CPU whatever a tensor's label says; only `device_of` knows the labels. The rules are in
`operator_rules.py`, those of Python-level functions in `function_checks.py`. This module must not label anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from samedevice.simulation import generators, type_texts
from samedevice.simulation.calls import DeviceOf, call_of, refusal, tensors_in
from samedevice.simulation.operator_kernels import has_kernel, kernel_is_iterated, without_layout_kernel
from samedevice.simulation.operator_rules import needs_cpu_argument, rule_of
from samedevice.simulation.rules.comparing import no_kernel_refusal

__all__ = ["check", "needs_check", "no_kernel", "on_meta", "result_devices"]

_CPU = torch.device("cpu")
_COMPRESSED = frozenset({torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc})
_Tensor = torch.Tensor
_Generator = torch._C.Generator
_META_REFUSAL = re.compile(r"Tensor on device (\S+) is not on the expected device (\S+)!")


def check(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], device_of: DeviceOf) -> torch.device | None:
    """Decide one operator call as the real device would.

    Args:
        func: The `OpOverload`, as a dispatch mode receives it.
        args: Its positional arguments; tensors on the CPU.
        kwargs: Its keyword arguments.
        device_of: Where a tensor lives on the simulated machine.

    Returns:
        The device on which the results live. None where no operand has one (factories) or where results follow a
        rule of their own: views and in-place results stay with their storage, lists (`_foreach_*`) with the element
        at their position, copies and factories with `device=` there.

    Raises:
        RuntimeError: or the type that PyTorch raises there: the real device refuses these operands.
    """
    device: torch.device | None = None
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, _Tensor):
            here = device_of(value)
            if here != device:
                if device is not None:
                    return _decide(func, args, kwargs, device_of)
                device = here
        elif isinstance(value, list | tuple):
            for item in value:
                if isinstance(item, _Tensor):
                    here = device_of(item)
                    if here != device:
                        if device is not None:
                            return _decide(func, args, kwargs, device_of)
                        device = here
    _check_generator(func, args, kwargs, device, device_of)
    if device is not None and device.type != "cpu" and (needs_check(func) or _is_quantized(args)):
        return _decide(func, args, kwargs, device_of)
    return None if kwargs and kwargs.get("device") is not None else device


@cache
def needs_check(func: Any) -> bool:
    """Whether an operator is to be asked even where all its operands share a device, as nearly none is.

    Args:
        func: The `OpOverload`.

    Returns:
        True where no device has the operator, or where an argument must be on the CPU; False for the others, which
        need `check` only where devices differ or a generator is given.
    """
    return needs_cpu_argument(func) or not has_kernel(func, "CUDA")


def _is_quantized(args: tuple[Any, ...]) -> bool:
    """Whether quantized tensors are among the arguments: for them a device has few operators."""
    return any(tensor.is_quantized for value in args for _, tensor in tensors_in(value))


def no_kernel(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], device_of: DeviceOf) -> Exception:
    """The dispatcher's error for an operator without a kernel for where its operands are, to be raised.

    Args:
        func: The `OpOverload`.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        device_of: Where a tensor lives.

    Returns:
        A NotImplementedError.
    """
    return no_kernel_refusal(call_of(func, args, kwargs, device_of), None, _full_name(func))


def on_meta(
    error: RuntimeError, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], device_of: DeviceOf
) -> Exception:
    """What an operator with an operand on the meta device raises, its words about the CPU told of the device.

    Args:
        error: As it was raised with all other operands on the CPU.
        func: The `OpOverload`.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
        device_of: Where a tensor lives.

    Returns:
        The error to be raised.

    Source: torch/_prims_common, `check_same_device`, as the real CUDA build of 2.13 answered.
    """
    said = _META_REFUSAL.match(str(error))
    if said is None:
        return error
    call = call_of(func, args, kwargs, device_of)
    away = next(operand.device for operand in call.operands if operand.device.type not in ("cpu", "meta"))
    device, other = (str(away) if name == "cpu" else name for name in said.groups())
    blamed = next((operand for operand in call.operands if str(operand.device) == device), None)
    return refusal(call, "same-device", blamed, device=device, other_device=other)


def result_devices(func: Any, args: tuple[Any, ...], device_of: DeviceOf) -> tuple[torch.device, ...] | None:
    """The device of each result, for the operators whose results live on different ones.

    Args:
        func: The `OpOverload`, for which `check` returned None.
        args: Its positional arguments.
        device_of: Where a tensor lives.

    Returns:
        A device for each result, or None where `check` says all there is to say.
    """
    name: str = func._schema.name
    if name == "aten::_pack_padded_sequence":
        # The data is where the input is, the batch sizes are on the CPU. Source: native/PackedSequence.cpp.
        return device_of(args[0]), _CPU
    if name.startswith("aten::_foreach_"):
        # Each result is where the element of the first list at its position is.
        tensors = next((value for value in args if isinstance(value, list | tuple)), ())
        return tuple(device_of(tensor) for tensor in tensors if isinstance(tensor, _Tensor))
    return None


def _decide(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], device_of: DeviceOf) -> torch.device | None:
    call = call_of(func, args, kwargs, device_of)
    tensors = [operand.tensor for operand in call.operands]
    kind = next(operand.device.type for operand in call.operands if operand.device.type != "cpu")
    key = _dispatch_key(kind, tensors)
    if not has_kernel(func, "CUDA"):
        raise no_kernel_refusal(call, None, _full_name(func), backend=key)
    missing = without_layout_kernel(func, key)
    if missing is not None:
        if key.startswith("Quantized") and kernel_is_iterated(func):
            # An iterator compares devices and types before it looks for a kernel.
            rule_of(func, key)(call)
            type_texts.promote(tensors)
        raise no_kernel_refusal(call, None, missing, backend=key)
    device = rule_of(func, key)(call)
    _check_generator(func, args, kwargs, device, device_of)
    return device


def _dispatch_key(kind: str, tensors: list[torch.Tensor]) -> str:
    """The key whose kernel runs: the most special layout, on the one device that is not the CPU."""
    layouts = {tensor.layout for tensor in tensors}
    if layouts & _COMPRESSED:
        prefix = "SparseCsr"
    elif torch.sparse_coo in layouts:
        prefix = "Sparse"
    elif any(tensor.is_quantized for tensor in tensors):
        prefix = "Quantized"
    elif any(tensor.is_nested for tensor in tensors):
        prefix = "NestedTensor"
    else:
        prefix = ""
    return prefix + kind.upper()


def _check_generator(
    func: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    device: torch.device | None,
    device_of: DeviceOf,
) -> None:
    """A generator is of the kind of device that it draws on. Source: ATen/core/Generator.h, check_generator."""
    generator = kwargs.get("generator") or next((v for v in args if isinstance(v, _Generator)), None)
    if generator is None:
        return
    if device is None:
        wanted = kwargs.get("device")
        device = _CPU if wanted is None else torch.device(wanted)
    found = generators.device_of(generator)
    if found.type != device.type:
        raise refusal(
            call_of(func, args, kwargs, device_of),
            "generator",
            device=device.type,
            generator_device=found.type,
        )


def _full_name(func: Any) -> str:
    schema = func._schema
    name: str = schema.name
    return name + (f".{schema.overload_name}" if schema.overload_name else "")
