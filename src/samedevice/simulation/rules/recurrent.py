"""Recurrent layers and cells: what `torch.lstm` and its siblings compare before they start.

Source: aten/src/ATen/native/RNN.cpp and RNN.h, `check_attributes` and the fused cells, 2.6 to 2.14.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from samedevice.simulation.calls import Call, Operand, refusal
from samedevice.simulation.rules.comparing import compared

__all__ = ["CELL_PARAMETERS", "cell", "filled", "recurrent", "recurrent_arguments"]

CELL_PARAMETERS = ("input", "hx", "w_ih", "w_hh", "b_ih", "b_hh")


def recurrent_arguments(args: tuple[Any, ...]) -> dict[str, Any]:
    """The tensors of a call by role: the packed form has the batch sizes in second place, the weights in fourth."""
    packed = len(args) > 3 and isinstance(args[3], list | tuple)
    hidden, parameters = args[2:4] if packed else args[1:3]
    return {"input": args[0], "hidden": hidden, "parameter": parameters}


def recurrent(call: Call) -> torch.device | None:
    """Hidden state first, then parameters, each against the input.

    cuDNN looks at nothing, and is taken where no wrapper compares: with parameters on the meta device.
    """
    inputs = call.of("input")[0]
    if _is_empty_for_cudnn(call):
        call = call.without("parameter")
    for role in ("hidden", "parameter"):
        for operand in call.of(role):
            if operand.device != inputs.device:
                kind = "rnn-hidden" if role == "hidden" else "rnn-parameters"
                raise refusal(call, kind, operand, input_device=inputs.device, **{f"{role}_device": operand.device})
    return inputs.device


def _is_empty_for_cudnn(call: Call) -> bool:
    on_meta = bool(call.of("parameter")) and all(o.device.type == "meta" for o in call.of("parameter"))
    return on_meta and call.of("input")[0].device.type == "cuda" and torch.backends.cudnn.enabled


def filled(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call that was let through, with memory for parameters that have none: of any values."""
    device = args[0].device

    def fill(value: Any) -> Any:
        if isinstance(value, list | tuple) and device.type != "meta":
            return [
                torch.zeros_like(item, device=device)
                if isinstance(item, torch.Tensor) and item.device.type == "meta"
                else item
                for item in value
            ]
        return value

    return tuple(map(fill, args))


def cell(call: Call) -> torch.device | None:
    """Two products, then on a device one fused kernel; on the CPU the operators that arrive there tell."""
    inputs = call.of("input")[0]
    if inputs.device.type == "cpu":
        return None
    hidden = call.of("hx")
    lstm = call.operator == "aten::lstm_cell"
    _product(call, inputs, call.of("w_ih")[0])
    _product(call, hidden[0], call.of("w_hh")[0])
    gates = Operand("input_gates", inputs.tensor, inputs.device)
    hidden_gates = Operand("hidden_gates", hidden[0].tensor, hidden[0].device)
    state = hidden[1:] if lstm else hidden[:1]
    operands = (
        gates,
        hidden_gates,
        *(replace(operand, argument="cx" if lstm else "hx") for operand in state),
        *(replace(operand, argument="input_bias") for operand in call.of("b_ih")),
        *(replace(operand, argument="hidden_bias") for operand in call.of("b_hh")),
    )
    name = "lstm" if lstm else "gru"
    return compared(f"wrapper_CUDA___thnn_fused_{name}_cell")(call.among(operands))


def _product(call: Call, left: Operand, weight: Operand) -> None:
    operands = (replace(left, argument="self"), replace(weight, argument="mat2"))
    compared("wrapper_CUDA_mm")(call.among(operands))
