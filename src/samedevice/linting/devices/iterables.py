"""Functions of Python and of libraries that make, go through and pick from lists, dicts and other iterables."""

from __future__ import annotations

import ast
from collections.abc import Callable

from samedevice.linting.devices import moves
from samedevice.linting.devices.machine import Arguments, Machine
from samedevice.linting.devices.sequences import element_of, item_of, sequence, unpack
from samedevice.linting.devices.values import (
    NOTHING,
    UNKNOWN,
    Constant,
    External,
    Mapping,
    Module,
    Parameters,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["DEVICE_COUNT", "FUNCTIONS"]

DEVICE_COUNT = "torch.cuda.device_count()"
"""What the number of devices is called, wherever a program asks for it."""


def _list(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    if not arguments.positional:
        made = sequence([], node)
        made.loops = machine.loops
        return made
    value = arguments.positional[0]
    items = unpack(machine, value, node)
    if items is not None:
        return sequence(items, node)
    if isinstance(value, Mapping):
        return Sequence(None, node=node)
    return Sequence(None, element_of(machine, value, node), node=node)


def _dict(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    made = Mapping(dict(arguments.keywords), node=node)
    for value in arguments.positional:
        if isinstance(value, Mapping):
            made.entries.update(value.entries)
            made.element = value.element
        else:
            made.element = item_of(machine, element_of(machine, value, node), Constant(1), node)
    return made


def _defaultdict(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    factory = arguments.positional[0] if arguments.positional else UNKNOWN
    lists = isinstance(factory, External) and factory.name == "builtins.list"
    return Mapping({}, NOTHING if lists else UNKNOWN, node=node, lists=lists)


def _zip(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    columns = [unpack(machine, value, node) for value in arguments.positional]
    known = [column for column in columns if column is not None]
    if known and len(known) == len(columns) and len({len(column) for column in known}) == 1:
        return sequence([sequence(row, mutable=False) for row in zip(*known, strict=True)])
    if not arguments.complete:
        return _columns(arguments)
    return Sequence(None, sequence([element_of(machine, v, node) for v in arguments.positional], mutable=False))


def _columns(arguments: Arguments) -> Value:
    """`zip(*rows)`: one tuple a column."""
    rows = arguments.positional[0] if len(arguments.positional) == 1 else UNKNOWN
    if isinstance(rows, Sequence) and rows.items is not None:
        return sequence([Sequence(None, item, mutable=False) for item in rows.items])
    return UNKNOWN


def _enumerate(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    from_zero = len(arguments.positional) == 1 and not arguments.keywords
    items = unpack(machine, value, node) if from_zero else None
    if items is not None:
        return sequence([sequence([Constant(i), item], mutable=False) for i, item in enumerate(items)])
    return Sequence(None, sequence([UNKNOWN, element_of(machine, value, node)], mutable=False))


def _map(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    if len(arguments.positional) != 2:
        return UNKNOWN
    function, source = arguments.positional
    items = unpack(machine, source, node)
    if items is not None and len(items) <= 8:
        return sequence([machine.call(function, Arguments([item], [node]), node) for item in items])
    element = element_of(machine, source, node)
    return Sequence(None, machine.call(function, Arguments([element], [node]), node))


def _same_items(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    items = unpack(machine, value, node)
    return Sequence(items, element_of(machine, value, node))


def _reversed(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    items = unpack(machine, value, node)
    return sequence(items[::-1]) if items is not None else Sequence(None, element_of(machine, value, node))


def _first_item(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    if isinstance(value, Sequence) and value.items:
        return value.items[0]
    if isinstance(value, Parameters) and isinstance(value.module, Module):
        return _first_parameter(value.module) or element_of(machine, value, node)
    return element_of(machine, value, node)


def _first_parameter(module: Module) -> Tensor | None:
    """The parameter that `next(module.parameters())` gives, for its device."""
    if module.place is not None:
        return Tensor(None, module.origin, kind="parameter", owner=module, requires_grad=True)
    parts = list(moves.registered(module))
    own = next((part for part in parts if isinstance(part, Tensor) and part.kind == "parameter"), None)
    inner = (_first_parameter(part) for part in parts if isinstance(part, Module))
    return own or next((found for found in inner if found is not None), None)


def _sum(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    value = arguments.positional[0] if arguments.positional else UNKNOWN
    return element_of(machine, value, node)


def _range(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    only = arguments.positional[0] if len(arguments.positional) == 1 else UNKNOWN
    if isinstance(only, Symbol) and only.name == DEVICE_COUNT:
        # A program that counts its devices is meant for more than one.
        return sequence([Constant(0), Constant(1)])
    values = [
        value.value for value in arguments.positional if isinstance(value, Constant) and isinstance(value.value, int)
    ]
    if len(values) == len(arguments.positional) and 0 < len(values) <= 2 and 0 <= len(range(*values)) <= 4:
        return sequence([Constant(number) for number in range(*values)])
    return Sequence(None)


def _choice(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return element_of(machine, arguments.positional[0], node) if arguments.positional else UNKNOWN


def _choices(machine: Machine, arguments: Arguments, node: ast.AST) -> Value:
    return Sequence(None, _choice(machine, arguments, node))


FUNCTIONS: dict[str, Callable[[Machine, Arguments, ast.AST], Value]] = {
    "builtins.list": _list,
    "builtins.tuple": _list,
    "builtins.set": _list,
    "builtins.dict": _dict,
    "builtins.zip": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.map": _map,
    "builtins.iter": _same_items,
    "builtins.sorted": _same_items,
    "builtins.reversed": _reversed,
    "builtins.next": _first_item,
    "builtins.sum": _sum,
    "builtins.range": _range,
    "random.choice": _choice,
    "random.choices": _choices,
    "random.sample": _choices,
    "collections.OrderedDict": _dict,
    "collections.defaultdict": _defaultdict,
    "collections.deque": _list,
    "tqdm.tqdm": _same_items,
    "tqdm.auto.tqdm": _same_items,
    "tqdm.notebook.tqdm": _same_items,
}
