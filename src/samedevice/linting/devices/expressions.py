"""What expressions evaluate to, calls and attributes aside."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from samedevice.linting.devices import attributes, branches, calls, imports, left_out, operations, operators, truth
from samedevice.linting.devices.lattice import join, join_all
from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.method_tables import ACCELERATORS
from samedevice.linting.devices.places import CPU, Place, resolve
from samedevice.linting.devices.sequences import LONGEST, element_of, item_of, sequence, unpack
from samedevice.linting.devices.values import (
    NOTHING,
    UNKNOWN,
    Constant,
    Device,
    External,
    Function,
    Held,
    Imported,
    Mapping,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["EXPRESSIONS", "bind_target"]

_BUILTINS = frozenset(dir(builtins))


def _constant(machine: Machine, node: ast.Constant) -> Value:
    return Constant(node.value)


def _name(machine: Machine, node: ast.Name) -> Value:
    value = machine.lookup(node.id)
    if value is None:
        return External(f"builtins.{node.id}") if node.id in _BUILTINS else UNKNOWN
    if isinstance(value, Tensor) and value.held is None and value.kind == "plain":
        return _held_globally(machine, node, value)
    if isinstance(value, Imported):
        return _imported(machine, node, value)
    return value


def _imported(machine: Machine, node: ast.Name, value: Imported) -> Value:
    found = imports.resolve(machine, value)
    if isinstance(found, Tensor) and found.held is None and found.kind == "plain":
        return replace(found, held=Held("global", "", node.id, machine.own(node)))
    return found


def _held_globally(machine: Machine, node: ast.Name, value: Tensor) -> Tensor:
    """A tensor at module level that a function reads."""
    frame = machine.frame
    if not frame.name or frame.scopes[-1].get(node.id) is not value or node.id in frame.scopes[0]:
        return value
    return replace(value, held=Held("global", "", node.id, machine.own(node)))


def _attribute(machine: Machine, node: ast.Attribute) -> Value:
    return attributes.read(machine, machine.evaluate(node.value), node.attr, node)


def _if_expression(machine: Machine, node: ast.IfExp) -> Value:
    known = truth.truth(machine, node.test)
    if known is not None:
        return machine.evaluate(node.body if known else node.orelse)
    first = machine.evaluate(node.body)
    second = machine.evaluate(node.orelse)
    without = None if branches.asks_for_device(machine, node.test) else left_out.arm_without(machine, node.test)
    if without is not None and left_out.is_made_instead(first if without else second):
        return first if without else second
    return join(first, second)


def _tuple(machine: Machine, node: ast.Tuple | ast.List | ast.Set) -> Value:
    items: list[Value] = []
    for part in node.elts:
        if not isinstance(part, ast.Starred):
            items.append(machine.evaluate(part))
            continue
        inner = machine.evaluate(part.value)
        if not isinstance(inner, Sequence) or inner.items is None or len(items) + len(inner.items) > LONGEST:
            element = element_of(machine, inner, part)
            return Sequence(None, join_all([*items, element]), node=node, mutable=not isinstance(node, ast.Tuple))
        items.extend(inner.items)
    made = sequence(items, node, mutable=not isinstance(node, ast.Tuple))
    made.loops = machine.loops
    return made


def _dict(machine: Machine, node: ast.Dict) -> Value:
    made = Mapping({}, node=node)
    others: list[Value] = []
    for key, part in zip(node.keys, node.values, strict=True):
        value = machine.evaluate(part)
        if key is None:
            if isinstance(value, Mapping):
                made.entries.update(value.entries)
                others.append(value.element)
            continue
        name = machine.evaluate(key)
        if isinstance(name, Constant) and _is_hashable(name.value):
            made.entries[name.value] = value
        else:
            others.append(value)
    made.element = join_all(others) if others else NOTHING
    return made


def _is_hashable(value: Any) -> bool:
    return isinstance(value, str | int | bool | float | bytes | None)


def _subscript(machine: Machine, node: ast.Subscript) -> Value:
    value = machine.evaluate(node.value)
    if isinstance(value, Tensor):
        return operations.index(machine, node, value, [(machine.evaluate(node.slice), node.slice)])
    if isinstance(node.slice, ast.Slice):
        return _slice_of(machine, value, node.slice)
    if isinstance(value, Mapping):
        _note_unmoved(machine, value, node)
    return item_of(machine, value, machine.evaluate(node.slice), node)


def _note_unmoved(machine: Machine, value: Mapping, node: ast.Subscript) -> None:
    outer = node.value
    if _is_unmoved(value) and (not isinstance(outer, ast.Subscript) or outer in machine.unmoved):
        machine.unmoved.add(node)
    else:
        machine.unmoved.discard(node)


def _is_unmoved(value: Value) -> bool:
    """Whether all tensors in nested dicts and lists, each of which is known, are on the CPU."""
    if isinstance(value, Mapping):
        return value.element is NOTHING and all(_is_unmoved(part) for part in value.entries.values())
    if isinstance(value, Sequence):
        return value.items is not None and all(_is_unmoved(part) for part in value.items)
    if isinstance(value, Tensor):
        return value.place is not None and resolve(value.place) == CPU
    return isinstance(value, Constant)


def _slice_of(machine: Machine, value: Value, node: ast.Slice) -> Value:
    if not isinstance(value, Sequence):
        return value if isinstance(value, Symbol) else item_of(machine, value, UNKNOWN, node)
    if value.items is None:
        return Sequence(None, value.element, value.held, value.node)
    bounds = [None if part is None else _number(machine.evaluate(part)) for part in (node.lower, node.upper, node.step)]
    if any(
        part is not None and bound is None
        for part, bound in zip((node.lower, node.upper, node.step), bounds, strict=True)
    ):
        return Sequence(None, value.element, value.held, value.node)
    if bounds[2] == 0:
        return UNKNOWN
    return sequence(value.items[slice(*bounds)], value.node)


def _number(value: Value) -> int | None:
    return value.value if isinstance(value, Constant) and isinstance(value.value, int) else None


def _slice(machine: Machine, node: ast.Slice) -> Value:
    return Constant(Ellipsis)


def _text(machine: Machine, node: ast.JoinedStr) -> Value:
    parts: list[str] = []
    unknown: str | None = None
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
            continue
        value = machine.evaluate(part.value) if isinstance(part, ast.FormattedValue) else UNKNOWN
        if isinstance(value, Constant) and not (isinstance(part, ast.FormattedValue) and part.format_spec):
            parts.append(str(value.value))
        elif isinstance(value, Device) and isinstance(value.place, Place) and value.place != CPU:
            parts.append(str(value.place))
        elif isinstance(part, ast.FormattedValue):
            unknown = ast.unparse(part.value)
            parts.append("\0")
    text = "".join(parts)
    if unknown is None:
        return Constant(text)
    kind = text.removesuffix(":\0")
    return Device(Place(kind, unknown)) if kind in ACCELERATORS and text.endswith(":\0") else UNKNOWN


def _lambda(machine: Machine, node: ast.Lambda) -> Value:
    return Function(node, machine.frame.scopes, None, machine.frame.cls)


def _named(machine: Machine, node: ast.NamedExpr) -> Value:
    value = machine.evaluate(node.value)
    bind_target(machine, node.target, value)
    return value


def _comprehension(machine: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    with machine.inside(calls.nested_frame(machine)):
        known = _single_source(machine, node.generators)
        if known is not None:
            items = []
            for item in known:
                bind_target(machine, node.generators[0].target, item)
                items.append(machine.evaluate(node.elt))
            return sequence(items, node)
        _bind_generators(machine, node.generators)
        return Sequence(None, machine.evaluate(node.elt), node=node)


def _single_source(machine: Machine, generators: list[ast.comprehension]) -> tuple[Value, ...] | None:
    """The items of a comprehension over one short list that is wholly known, without conditions."""
    if len(generators) != 1 or generators[0].ifs:
        return None
    source = machine.evaluate(generators[0].iter)
    items = unpack(machine, source, generators[0].iter)
    return items if items is not None and len(items) <= 8 else None


def _bind_generators(machine: Machine, generators: list[ast.comprehension]) -> None:
    for generator in generators:
        source = machine.evaluate(generator.iter)
        bind_target(machine, generator.target, element_of(machine, source, generator.iter))
        for condition in generator.ifs:
            machine.evaluate(condition)


def _dict_comprehension(machine: Machine, node: ast.DictComp) -> Value:
    with machine.inside(calls.nested_frame(machine)):
        if len(node.generators) == 1 and not node.generators[0].ifs:
            source = machine.evaluate(node.generators[0].iter)
            items = unpack(machine, source, node.generators[0].iter)
            if items is not None and len(items) <= 16:
                return _entries(machine, node, items)
        _bind_generators(machine, node.generators)
        machine.evaluate(node.key)
        return Mapping({}, machine.evaluate(node.value), node=node)


def _entries(machine: Machine, node: ast.DictComp, items: tuple[Value, ...]) -> Mapping:
    made, others = Mapping({}, node=node), []
    for item in items:
        bind_target(machine, node.generators[0].target, item)
        key, value = machine.evaluate(node.key), machine.evaluate(node.value)
        if isinstance(key, Constant) and _is_hashable(key.value):
            made.entries[key.value] = value
        else:
            others.append(value)
    made.element = join_all(others) if others else NOTHING
    return made


def _await(machine: Machine, node: ast.Await) -> Value:
    return machine.evaluate(node.value)


def _yield(machine: Machine, node: ast.Yield) -> Value:
    machine.frame.yields.append(machine.evaluate(node.value) if node.value else Constant(None))
    return UNKNOWN


def _yield_from(machine: Machine, node: ast.YieldFrom) -> Value:
    machine.frame.yields.append(element_of(machine, machine.evaluate(node.value), node))
    return UNKNOWN


def _starred(machine: Machine, node: ast.Starred) -> Value:
    return machine.evaluate(node.value)


def bind_target(machine: Machine, target: ast.AST, value: Value) -> None:
    """Assign `value` to a target: a name, an attribute, an item, or several of those."""
    if isinstance(target, ast.Name):
        machine.bind(target.id, value)
    elif isinstance(target, ast.Attribute):
        attributes.write(machine, machine.evaluate(target.value), target.attr, value, target)
    elif isinstance(target, ast.Subscript):
        attributes.write_item(machine, target, value)
    elif isinstance(target, ast.Starred):
        bind_target(machine, target.value, Sequence(None, element_of(machine, value, target)))
    elif isinstance(target, ast.Tuple | ast.List):
        _bind_several(machine, target.elts, value, target)


def _bind_several(machine: Machine, targets: list[ast.expr], value: Value, node: ast.AST) -> None:
    items = unpack(machine, value, node)
    if items is not None and len(items) == len(targets) and not any(isinstance(t, ast.Starred) for t in targets):
        for target, item in zip(targets, items, strict=True):
            bind_target(machine, target, item)
        return
    for position, target in enumerate(targets):
        part = value.part(f"[{position}]") if isinstance(value, Symbol) else element_of(machine, value, node)
        bind_target(machine, target, part)


EXPRESSIONS: dict[type[ast.AST], Callable[[Machine, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: calls.evaluate_call,
    ast.BinOp: operators.binary,
    ast.UnaryOp: operators.unary,
    ast.BoolOp: operators.boolean,
    ast.Compare: operators.compare,
    ast.IfExp: _if_expression,
    ast.Tuple: _tuple,
    ast.List: _tuple,
    ast.Set: _tuple,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.JoinedStr: _text,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Starred: _starred,
}
