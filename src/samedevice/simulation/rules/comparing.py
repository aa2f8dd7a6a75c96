"""The few ways in which PyTorch compares the devices of operands, each for many operators.

A `Rule` looks at one call with operands on several devices: it raises what the real kernel raises, or returns the
device of the results. Which operator follows which rule is decided in `operator_rules.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch

from samedevice.simulation.calls import Call, Operand, first_elsewhere, refusal, torch_version
from samedevice.simulation.rules import apple

__all__ = [
    "Rule",
    "any_device",
    "assumed",
    "compared",
    "iterated",
    "one_device",
    "out_follows_input",
    "out_follows_result",
]

_CPU = torch.device("cpu")
Rule = Callable[[Call], "torch.device | None"]


def compared(method: str) -> Rule:
    """The check that torchgen writes into the wrappers of kernels: type and index of all devices are equal.

    The first tensor sets the device (`out=` before the positional arguments, in schema order) and the first that
    differs is blamed. Keyword-only tensors are not looked at; 0-dim and empty ones are no exception. Operands on the
    meta device have a wrapper of their own, without a check.
    Source: torchgen/dest/register_dispatch_key.py, `gen_device_check`; ATen/core/op_registration/adaption.h.
    """

    def rule(call: Call) -> torch.device | None:
        looked_at = [operand for operand in call.operands if operand.compared]
        if not looked_at or any(operand.device.type == "meta" for operand in looked_at):
            return call.common_device
        device = looked_at[0].device
        blamed = first_elsewhere(looked_at, device)
        if blamed is not None:
            raise compared_refusal(call, method, blamed, device)
        return device

    return rule


def compared_refusal(call: Call, method: str, blamed: Operand, device: torch.device) -> Exception:
    """The generated check's error: `blamed` is not on `device`, where the first tensor is.

    `method` is CUDA's name of the wrapper; other devices call theirs alike. MPS has no such check.
    """
    kind = (blamed.device if device.type == "cpu" else device).type
    if kind == "mps":
        return apple.refused(call, method)
    method = method.replace("CUDA", kind.upper(), 1)
    return refusal(
        call,
        "same-device",
        blamed,
        argument=blamed.argument,
        device=blamed.device,
        other_device=device,
        method=method,
    )


def iterated(scalars: Collection[str] | None = None, kernel_needs: Collection[str] = ()) -> Rule:
    """The rule of a TensorIterator: the common device is the first that is not the CPU, outputs before inputs.

    An input may be a 0-dim CPU tensor, once in a call. Outputs may not, and a tensor on another device never may.
    Source: aten/src/ATen/TensorIterator.cpp, `compute_types`.

    Args:
        scalars: The arguments that may be a 0-dim CPU tensor; None: all inputs.
        kernel_needs: Arguments that pass the iterator as a 0-dim CPU tensor, then fail in the kernel, which has no
            place for them (ATen/native/cuda/Loops.cuh, `gpu_kernel`).
    """

    def rule(call: Call) -> torch.device | None:
        device = call.common_device
        if device is None or device.type == "cpu" or not _fit(call):
            return device
        exempt: list[Operand] = []
        for operand in call.operands:
            if operand.is_cpu_scalar and not operand.output and (scalars is None or operand.argument in scalars):
                if exempt:
                    raise refusal(call, "cpu-scalars", operand)
                exempt.append(operand)
            elif operand.device != device:
                raise refusal(call, "tensor-iterator", operand, device=device, other_device=operand.device)
        for operand in exempt:
            if operand.argument in kernel_needs:
                # The result is operand 0 without being an argument, save for `out=`; `self` in place is both.
                index = call.operands.index(operand) + (0 if call.operands[0].is_out else 1)
                raise kernel_operand_refusal(call, operand, index)
        return device

    return rule


def _fit(call: Call) -> bool:
    """Whether shapes broadcast; an iterator looks at them before devices, and the operator itself will tell."""
    if any(operand.tensor.is_nested for operand in call.operands):
        return True
    try:
        shape = torch.broadcast_shapes(*(o.tensor.shape for o in call.operands if not o.is_out))
    except RuntimeError:
        return False
    return all(o.tensor.shape == shape for o in call.operands if o.output and not o.is_out)


# As wheels of 2.6, 2.9, 2.13 and 2.14 say it.
_ASSERTED_AT = (
    ((2, 13), ("/__w/pytorch/pytorch", 118)),
    ((2, 9), ("/pytorch", 106)),
    ((0, 0), ("/pytorch", 104)),
)


def kernel_operand_refusal(call: Call, operand: Operand, index: int) -> Exception:
    """The assertion of a CUDA kernel that was handed a CPU operand; it counts outputs and inputs from 0."""
    folder, line = next(place for since, place in _ASSERTED_AT if torch_version() >= since)
    return refusal(
        call,
        "kernel-operand",
        operand,
        source_text=f"{folder}/aten/src/ATen/native/cuda/Loops.cuh",
        line_count=line,
        index=index,
        device=operand.device,
    )


def one_device(call: Call) -> torch.device | None:
    """An iterator over tensors that were reshaped for it: one device for all, whatever their shapes."""
    device = call.common_device
    blamed = first_elsewhere(call.operands, device) if device is not None else None
    if blamed is not None:
        raise refusal(call, "tensor-iterator", blamed, device=device, other_device=blamed.device)
    return device


def assumed(call: Call) -> torch.device | None:
    """What is assumed of operators that nothing is known of, as FakeTensor does: one device, 0-dim CPU tensors free."""
    return one_device(call.among(operand for operand in call.operands if not operand.is_cpu_scalar))


def out_follows_input(call: Call) -> torch.device | None:
    """Structured operators that make their result on the input's device and then find `out=` elsewhere.

    Source: torchgen's `resize_out` and the device guard of structured CUDA kernels.
    """
    inputs = [operand for operand in call.operands if not operand.output]
    device = inputs[0].device if inputs else call.common_device
    blamed = first_elsewhere([operand for operand in call.operands if operand.output], device) if device else None
    if blamed is None or device is None:
        return device
    if device.type == "cpu":
        raise refusal(call, "guard-kind", blamed, backend="CUDA", device=device)
    raise refusal(call, "out-device", blamed, device=device, other_device=blamed.device)


def out_follows_result(rule: Rule) -> Rule:
    """`out=` forms that torchgen makes up: the functional form runs, then its result is copied.

    Source: torchgen/native_function_generation.py, `gen_composite_out_kernel`.
    """

    def both(call: Call) -> torch.device | None:
        device = rule(call.among(operand for operand in call.operands if not operand.output))
        for out in call.operands:
            if out.output and device is not None and out.device != device:
                raise refusal(call, "out-device", out, device=device, other_device=out.device)
        return device

    return both


def any_device(argument: str | None = None) -> Rule:
    """Operands may be anywhere; results live where `argument` does, or follow a rule of their own (None)."""

    def rule(call: Call) -> torch.device | None:
        return call.device(argument) if argument is not None else None

    return rule


def no_kernel_refusal(
    call: Call, blamed: Operand | None, operator: str, available: str = "CPU, Meta", backend: str = ""
) -> Exception:
    """The dispatcher's error: the operator has no kernel for this device."""
    backend = backend or (blamed.device if blamed is not None else call.common_device or _CPU).type.upper()
    return refusal(call, "no-kernel", blamed, function=operator, backend=backend, backends_text=f"{available}, …")
