"""Datasets and loaders: what their batches are like."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.linting.devices import attributes
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.lattice import is_given
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.operations import may_conflict
from samedevice.linting.devices.places import CPU
from samedevice.linting.devices.sequences import element_of
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    Function,
    Generator,
    Instance,
    Mapping,
    Module,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["check_generator", "loader"]

_DEEPEST_SAMPLE = 5


def loader(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    """A DataLoader: its batches are on the CPU unless the dataset holds tensors that are known to be elsewhere."""
    check_generator(machine, arguments, node)
    dataset = arguments.get(0, "dataset")
    collate = arguments.keywords.get("collate_fn")
    if is_given(collate):
        if isinstance(collate, Function):
            samples = Sequence(None, dataset.element if isinstance(dataset, Sequence) else UNKNOWN)
            return Sequence(
                None, _batched(machine, node, machine.call(collate, Arguments([samples], [node]), node)), node=node
            )
        return Sequence(None, UNKNOWN, node=node)
    if isinstance(dataset, Instance) and dataset.cls is not None and attributes.find(dataset.cls, "__iter__"):
        return Sequence(None, _batched(machine, node, element_of(machine, dataset, node)), node=node)
    if isinstance(dataset, Instance | Module) and dataset.cls is not None:
        getter = attributes.read(machine, dataset, "__getitem__", node)
        index = Symbol.named("index", "number")
        item = machine.call(getter, Arguments([index], [node]), node)
        return Sequence(None, _batched(machine, node, item), node=node)
    if isinstance(dataset, Sequence):
        return Sequence(None, _batched(machine, node, dataset.element), node=node)
    return Sequence(None, UNKNOWN, node=node)


def check_generator(machine: Machine, arguments: Arguments, node: ast.AST) -> None:
    """What draws an order (a loader, a sampler, `random_split`) does so on the default device.

    Which that is, a function that nothing in the file calls leaves to its callers: it has no other way to say it, and
    a generator that it makes elsewhere on purpose tells that they have set it.

    Source: torch/utils/data: `_BaseDataLoaderIter.__init__`, `RandomSampler.__iter__`, `random_split` name no device.
    """
    generator, written = arguments.keywords.get("generator"), arguments.keyword_nodes.get("generator", node)
    if isinstance(generator, Generator) and not (machine.standalone and machine.default_place == CPU):
        there = Operand(generator, generator.place, written, "generator")
        here = Operand(UNKNOWN, machine.default_place, node)
        if may_conflict([there, here]):
            machine.report(node, "random_", "generator", [there, here])


def _batched(machine: Machine, node: ast.AST, value: Value, depth: int = 0) -> Value:
    """What the default collate function makes of a sample: tensors with one more dimension."""
    if depth > _DEEPEST_SAMPLE:
        return UNKNOWN
    if isinstance(value, Tensor):
        return replace(value, scalar=False, leaf=False)
    if isinstance(value, Sequence):
        items = (
            tuple(_batched(machine, node, item, depth + 1) for item in value.items) if value.items is not None else None
        )
        return Sequence(items, _batched(machine, node, value.element, depth + 1), mutable=False)
    if isinstance(value, Mapping):
        return Mapping(
            {key: _batched(machine, node, item, depth + 1) for key, item in value.entries.items()},
            _batched(machine, node, value.element, depth + 1),
        )
    if (isinstance(value, Symbol) and value.role == "number") or _is_number(value):
        return Tensor(CPU, machine.origin(node, "loader"), False)
    return value


def _is_number(value: Value) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, int | float)
