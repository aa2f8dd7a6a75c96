"""Padded and packed sequences (torch.nn.utils.rnn)."""

from __future__ import annotations

import ast

from samedevice.linting.devices import moves, operations
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.places import CPU
from samedevice.linting.devices.values import (
    UNKNOWN,
    Sequence,
    Tensor,
    Value,
)

__all__ = ["sequence_function"]


def sequence_function(machine: Machine, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """A function of torch.nn.utils.rnn."""
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    if name == "pack_padded_sequence":
        return _pack(machine, arguments, node)
    if name == "pad_packed_sequence" and isinstance(first, Tensor):
        return Sequence((Tensor(moves.place_of(first), first.origin, False), Tensor(CPU, None, False)), mutable=False)
    if name in ("pad_sequence", "pack_sequence"):
        result = operations.combine(machine, node, name, "none", [(first, node, "")])
        if isinstance(result, Tensor):
            result.scalar, result.certain = False, name == "pad_sequence"
        return result
    return UNKNOWN


def _pack(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """Source: torch/nn/utils/rnn.py and native/PackedSequence.cpp: `lengths` must be on the CPU."""
    lengths = arguments.get(1, "lengths")
    if isinstance(lengths, Tensor):
        operands = [
            Operand(lengths, moves.place_of(lengths), arguments.node(1, "lengths", node), "lengths"),
            Operand(UNKNOWN, CPU, node, "cpu"),
        ]
        if operations.may_conflict(operands):
            machine.report(node, "pack_padded_sequence", "lengths", operands)
    first = operations.as_tensor(arguments.get(0, "input") or UNKNOWN)
    if first is None:
        return UNKNOWN
    return Tensor(moves.place_of(first), first.origin, False, certain=False, sources=first.sources)
