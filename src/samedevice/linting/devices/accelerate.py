"""What Hugging Face's Accelerator moves: the models, loaders and optimizers that it prepares, and nothing else.

Source: accelerate/accelerator.py, `prepare_model` (`model.to(self.device)` unless `device_placement` is off), and
accelerate/data_loader.py, `DataLoaderShard.__iter__` (`send_to_device(batch, self.device)`), accelerate 0.20 to 1.15.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.linting.devices import moves, optimizers
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.places import CPU, Cell, Certainty
from samedevice.linting.devices.sequences import sequence
from samedevice.linting.devices.values import (
    UNKNOWN,
    Accelerator,
    Constant,
    Either,
    Mapping,
    Module,
    Optimizer,
    Sequence,
    Tensor,
    Value,
)
from samedevice.texts import say

__all__ = ["made", "method"]

_DEEPEST_BATCH = 5
_AS_GIVEN = frozenset({"unwrap_model", "autocast", "gather", "gather_for_metrics", "reduce", "pad_across_processes"})


def made(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """`Accelerator(…)`: an accelerator where there is one, unless it is told to stay on the CPU."""
    placement = arguments.keywords.get("device_placement")
    places = arguments.complete and not arguments.positional and (placement is None or _is(placement, True))
    if _is(arguments.keywords.get("cpu", UNKNOWN), True):
        return Accelerator(CPU, places)
    return Accelerator(Cell(say("the accelerator's device"), Certainty.CERTAIN), places)


def _is(value: Value, flag: bool) -> bool:
    return isinstance(value, Constant) and value.value is flag


def method(machine: Machine, accelerator: Accelerator, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """A call of one of its methods."""
    if name == "prepare" and arguments.complete:
        prepared = [_prepared(machine, accelerator, value, node) for value, _, _ in arguments.all()]
        return prepared[0] if len(prepared) == 1 else sequence(prepared, node, mutable=False)
    if name in ("prepare_model", "prepare_data_loader") and arguments.positional:
        return _prepared(machine, accelerator, arguments.positional[0], node)
    if name == "backward":
        loss = arguments.get(0, "loss")
        optimizers.note_backward(machine, loss if isinstance(loss, Tensor) else None)
        return Constant(None)
    if name in _AS_GIVEN and arguments.positional:
        return arguments.positional[0]
    for value, _, _ in arguments.all():
        moves.escape(machine, value)
    return UNKNOWN


def _prepared(machine: Machine, accelerator: Accelerator, value: Value, node: ast.AST) -> Value:
    if isinstance(value, Module | Either) and accelerator.places:
        return moves.move(machine, value, accelerator.place, node)
    if isinstance(value, Sequence) and accelerator.places:
        return Sequence(None, _sent(machine, accelerator, value.element, node), node=node)
    if isinstance(value, Optimizer):
        return value
    moves.escape(machine, value)
    return UNKNOWN


def _sent(machine: Machine, accelerator: Accelerator, value: Value, node: ast.AST, depth: int = 0) -> Value:
    """A batch as the prepared loader hands it out: whatever the nesting, its tensors are on the device."""
    if depth > _DEEPEST_BATCH:
        return UNKNOWN
    if isinstance(value, Tensor):
        return replace(value, place=accelerator.place, origin=machine.origin(node, "moved"), held=None, part_of=None)
    if isinstance(value, Sequence) and value.items is not None:
        items = [_sent(machine, accelerator, item, node, depth + 1) for item in value.items]
        return sequence(items, node, mutable=False)
    if isinstance(value, Mapping):
        entries = {key: _sent(machine, accelerator, item, node, depth + 1) for key, item in value.entries.items()}
        return Mapping(entries, UNKNOWN, node=node)
    return UNKNOWN
