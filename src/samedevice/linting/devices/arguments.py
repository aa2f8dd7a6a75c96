"""What a call passes, and to which parameter it goes."""

from __future__ import annotations

import ast

from samedevice.linting.devices.lattice import join_all
from samedevice.linting.devices.machine import Arguments, Frame, Machine
from samedevice.linting.devices.sequences import element_of, sequence
from samedevice.linting.devices.values import NOTHING, UNKNOWN, Function, Mapping, Sequence, Tensor, Value

__all__ = ["bind", "completed", "evaluate"]


def evaluate(machine: Machine, node: ast.Call) -> Arguments:
    """The arguments of a call expression."""
    found = Arguments()
    for part in node.args:
        if isinstance(part, ast.Starred):
            inner = machine.evaluate(part.value)
            if isinstance(inner, Sequence) and inner.items is not None:
                found.positional.extend(inner.items)
                found.nodes.extend([part.value] * len(inner.items))
            else:
                found.complete = False
                found.positional.append(element_of(machine, inner, part))
                found.nodes.append(part.value)
            continue
        found.positional.append(machine.evaluate(part))
        found.nodes.append(part)
    for keyword in node.keywords:
        value = machine.evaluate(keyword.value)
        if keyword.arg is not None:
            found.keywords[keyword.arg] = value
            found.keyword_nodes[keyword.arg] = keyword.value
        else:
            _expand_keywords(found, value, keyword.value)
    return found


def _expand_keywords(found: Arguments, value: Value, node: ast.expr) -> None:
    if isinstance(value, Tensor):
        found.keywords["**"] = value
        found.keyword_nodes["**"] = node
    if not isinstance(value, Mapping):
        found.complete = False
        return
    found.complete = found.complete and value.element is NOTHING and bool(value.entries)
    for name, entry in value.entries.items():
        if isinstance(name, str):
            found.keywords[name] = entry
            found.keyword_nodes[name] = node


def completed(first: Arguments, then: Arguments) -> Arguments:
    """The arguments of a partial function's call."""
    return Arguments(
        [*first.positional, *then.positional],
        [*first.nodes, *then.nodes],
        {**first.keywords, **then.keywords},
        {**first.keyword_nodes, **then.keyword_nodes},
        first.complete and then.complete,
    )


def bind(machine: Machine, function: Function, arguments: Arguments) -> dict[str, Value]:
    """The parameters of a function as a call sets them, defaults included."""
    spec = function.node.args
    names = [parameter.arg for parameter in (*spec.posonlyargs, *spec.args)]
    given = list(arguments.positional)
    if function.receiver is not None and function.binding != "static":
        given.insert(0, function.receiver)
    scope: dict[str, Value] = dict(zip(names, given, strict=False))
    if spec.vararg is not None:
        rest = given[len(names) :]
        scope[spec.vararg.arg] = sequence(rest, mutable=False) if arguments.complete else Sequence(None, join_all(rest))
    extra = {}
    accepted = {*names, *(parameter.arg for parameter in spec.kwonlyargs)}
    for name, value in arguments.keywords.items():
        if name in accepted:
            scope[name] = value
        else:
            extra[name] = value
    if spec.kwarg is not None:
        scope[spec.kwarg.arg] = Mapping(dict(extra), NOTHING if arguments.complete else UNKNOWN)
    _bind_defaults(machine, function, scope, complete=arguments.complete)
    return scope


def _bind_defaults(machine: Machine, function: Function, scope: dict[str, Value], *, complete: bool) -> None:
    spec = function.node.args
    positional = [*spec.posonlyargs, *spec.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(spec.defaults))
    pairs = zip([*positional, *spec.kwonlyargs], [*defaults, *spec.defaults, *spec.kw_defaults], strict=True)
    frame = Frame(function.scopes, "", None, function.cls)
    for parameter, default in pairs:
        if parameter.arg in scope:
            continue
        if default is None or not complete:
            scope[parameter.arg] = UNKNOWN
            continue
        with machine.inside(frame):
            scope[parameter.arg] = machine.evaluate(default)
