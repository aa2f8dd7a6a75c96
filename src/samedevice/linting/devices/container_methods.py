"""Methods of lists, dicts, texts, optimizers and generators."""

from __future__ import annotations

import ast
import itertools

from samedevice.linting.devices import moves, optimizers
from samedevice.linting.devices.lattice import join, join_all
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.places import Certainty, difference
from samedevice.linting.devices.sequences import sequence
from samedevice.linting.devices.values import (
    NOTHING,
    UNKNOWN,
    Constant,
    Generator,
    Mapping,
    Module,
    Optimizer,
    OptimizerState,
    Parameters,
    Sequence,
    Tensor,
    Value,
)

__all__ = ["call"]


def call(machine: Machine, receiver: Value, name: str, arguments: Arguments, node: ast.AST) -> Value:
    """`receiver.name(…)` for a value that is no tensor or module."""
    if isinstance(receiver, Sequence):
        return _sequence(machine, receiver, name, arguments)
    if isinstance(receiver, Mapping):
        return _mapping(machine, receiver, name, arguments)
    if isinstance(receiver, Optimizer):
        return _optimizer(machine, receiver, name, arguments, node)
    if isinstance(receiver, OptimizerState):
        return _optimizer_state(receiver, name)
    if isinstance(receiver, Generator):
        return receiver if name == "manual_seed" else UNKNOWN
    if isinstance(receiver, Constant) and isinstance(receiver.value, str):
        return _text(receiver.value, name, arguments)
    return UNKNOWN


def _text(text: str, name: str, arguments: Arguments) -> Value:
    values = [value.value for value in arguments.positional if isinstance(value, Constant)]
    if len(values) != len(arguments.positional) or arguments.keywords or len(text) > 200:
        return UNKNOWN
    if name in ("startswith", "endswith", "lower", "upper", "strip", "format", "split"):
        try:
            result = getattr(text, name)(*values)
        except (TypeError, ValueError, IndexError, KeyError, AttributeError):
            return UNKNOWN
        return sequence([Constant(part) for part in result]) if isinstance(result, list) else Constant(result)
    return UNKNOWN


def _sequence(machine: Machine, receiver: Sequence, name: str, arguments: Arguments) -> Value:
    if name in ("append", "appendleft", "add") and arguments.positional:
        _add(machine, receiver, arguments.positional[:1])
        return Constant(None)
    if name == "insert" and len(arguments.positional) > 1:
        _add(machine, receiver, arguments.positional[1:2])
        return Constant(None)
    if name in ("extend", "update") and arguments.positional:
        other = arguments.positional[0]
        if isinstance(other, Sequence):
            _add(machine, receiver, _inside(other))
        elif isinstance(other, Parameters):
            _add(machine, receiver, [other])
        return Constant(None)
    if name in ("pop", "popleft"):
        return receiver.element
    if name == "copy":
        return Sequence(receiver.items, receiver.element, receiver.held, receiver.node)
    if name == "clear":
        machine.memory.assign(receiver, "items", ())
        machine.memory.assign(receiver, "element", UNKNOWN)
    return UNKNOWN


def _inside(other: Sequence) -> list[Value]:
    if other.items is not None:
        return list(other.items)
    return list(other.apart) if other.apart is not None else [other.element]


def _two_apart(values: list[Value]) -> tuple[Tensor, Tensor] | None:
    """Two tensors of a list that are certainly on different devices, or None."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    for first, second in itertools.pairwise(tensors):
        if difference(moves.place_of(first), moves.place_of(second)) is Certainty.CERTAIN:
            return first, second
    return None


def _add(machine: Machine, receiver: Sequence, values: list[Value]) -> None:
    before = receiver.items
    element = join_all(values) if before == () else join_all([receiver.element, *values])
    items = (*before, *values) if before is not None and machine.loops == receiver.loops and len(before) < 16 else None
    if receiver.apart is None:
        machine.memory.assign(receiver, "apart", _two_apart([receiver.element, *values]))
    machine.memory.assign(receiver, "items", items)
    machine.memory.assign(receiver, "element", element)
    if receiver.held is not None:
        for value in values:
            if isinstance(value, Module) and value.held is None:
                machine.memory.assign(value, "held", receiver.held)


def _mapping(machine: Machine, receiver: Mapping, name: str, arguments: Arguments) -> Value:
    entries = receiver.entries
    everything = join_all([receiver.element, *entries.values()])
    closed = receiver.element is NOTHING
    if name == "items":
        if entries and closed:
            return sequence([sequence([Constant(k), v], mutable=False) for k, v in entries.items()])
        return Sequence(None, sequence([UNKNOWN, everything], mutable=False))
    if name == "values":
        return sequence(entries.values()) if entries and closed else Sequence(None, everything)
    if name == "keys":
        return sequence([Constant(key) for key in entries]) if closed else Sequence(None)
    if name in ("get", "pop", "setdefault") and arguments.positional:
        return _get(receiver, arguments)
    if name == "update":
        _update(machine, receiver, arguments)
    if name == "copy":
        return Mapping(dict(entries), receiver.element, receiver.held, receiver.node, receiver.cls)
    return UNKNOWN


def _get(receiver: Mapping, arguments: Arguments) -> Value:
    key = arguments.positional[0]
    known = receiver.entries.get(key.value) if isinstance(key, Constant) and key.value.__hash__ else None
    if known is not None:
        return known
    default = arguments.positional[1] if len(arguments.positional) > 1 else Constant(None)
    return join(receiver.element, default) if isinstance(key, Constant) else _known(receiver.element)


def _known(value: Value) -> Value:
    return UNKNOWN if value is NOTHING else value


def _update(machine: Machine, receiver: Mapping, arguments: Arguments) -> None:
    for name, value in arguments.keywords.items():
        machine.memory.write(receiver.entries, name, value)
    for other in arguments.positional:
        if isinstance(other, Mapping):
            for key, value in other.entries.items():
                machine.memory.write(receiver.entries, key, value)
            machine.memory.assign(receiver, "element", join(receiver.element, other.element))


def _optimizer(machine: Machine, receiver: Optimizer, name: str, arguments: Arguments, node: ast.AST) -> Value:
    if name == "step":
        for value in arguments.positional:
            if not isinstance(value, Constant | Tensor):
                machine.call(value, Arguments(), node)
        optimizers.step(machine, receiver, node)
    elif name == "load_state_dict":
        optimizers.loaded(machine, receiver)
    elif name == "add_param_group":
        machine.memory.assign(receiver, "modules", ())
    return UNKNOWN


def _optimizer_state(receiver: OptimizerState, name: str) -> Value:
    """Going through `optimizer.state`, and through what it holds for a parameter."""
    if name not in ("values", "items", "get"):
        return UNKNOWN
    held = (
        Tensor(receiver.place, None) if receiver.one else OptimizerState(receiver.optimizer, receiver.place, one=True)
    )
    if name == "get":
        return held
    return Sequence(None, held if name == "values" else sequence([UNKNOWN, held], mutable=False))
