"""Small questions about the shape of expressions and statements: what binds a name, what is merely re-dressed.

Pure syntax: no frame and no value is looked at here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from samedevice.explaining.sources import Function
from samedevice.explaining.vocabulary import DRESSINGS, FACTORIES, FACTS, MOVES

__all__ = [
    "Binding",
    "arguments_of",
    "bindings_of",
    "call_name",
    "dropped_in_loop",
    "is_discarded_move",
    "is_move",
    "keyword",
    "lenders",
    "move_calls",
    "moved_device",
    "undressed",
]

_DRESSING_ATTRIBUTES = ("T", "mT", "H", "mH", "data", "real", "imag")


@dataclass(frozen=True, slots=True)
class Binding:
    """A statement (or comprehension) that gives a name its value."""

    node: ast.AST
    line: int
    value: ast.expr | None
    """The expression bound; of a loop, the iterable."""
    index: int | None = None
    """Position within `value` where it is unpacked."""
    loop: bool = False
    """Whether the name gets something out of `value`, no telling where: a loop's variable, a part of a pattern."""


def undressed(node: ast.expr) -> ast.expr:
    """`node` without the methods, subscripts and signs that leave the device as it is: `~m[0].float()` gives `m`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in DRESSINGS:
            node = node.func.value
        elif isinstance(node, ast.Subscript | ast.Starred | ast.Await) or (
            isinstance(node, ast.Attribute) and node.attr in _DRESSING_ATTRIBUTES
        ):
            node = node.value
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        else:
            return node


def lenders(node: ast.AST) -> list[ast.AST]:
    """The parts of `node` that lend it their device: not keys, slices, sizes, devices, or what a factory is told."""
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Attribute):
        return [] if node.attr in FACTS else [node.value]
    if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
        return [node.elt, node.generators[0].iter]
    if isinstance(node, ast.Call):
        if call_name(node) in FACTS or (call_name(node) in FACTORIES and not _is_method_of_value(node)):
            return []
        return [node.func, *node.args, *(word.value for word in node.keywords if word.arg not in ("device", "dtype"))]
    return list(ast.iter_child_nodes(node))


def _is_method_of_value(call: ast.Call) -> bool:
    """`x.normal(…)` works on x; `torch.normal(…)` and `zeros(…)` make something of nothing."""
    function = call.func
    return isinstance(function, ast.Attribute) and not (
        isinstance(function.value, ast.Name) and function.value.id in ("torch", "th", "np")
    )


def arguments_of(node: ast.AST) -> list[tuple[str | None, ast.expr]]:
    """(keyword or None, expression) for what an operation works on: operands, receiver and arguments of a call."""
    if isinstance(node, ast.BinOp):
        return [(None, node.left), (None, node.right)]
    if isinstance(node, ast.Compare):
        return [(None, node.left), *((None, other) for other in node.comparators)]
    if isinstance(node, ast.UnaryOp):
        return [(None, node.operand)]
    if isinstance(node, ast.Subscript):
        return [(None, node.value), *((None, part) for part in _parts(node.slice))]
    if isinstance(node, ast.Call):
        return _call_arguments(node)
    if isinstance(node, ast.AugAssign):
        return [(None, node.target), (None, node.value)]
    if isinstance(node, ast.Assign):
        targets = [part for target in node.targets if isinstance(target, ast.Subscript) for part in _write(target)]
        return [*targets, *_inner(node.value)] if targets else arguments_of(node.value)
    if isinstance(node, ast.Expr | ast.Return | ast.AnnAssign | ast.Await | ast.YieldFrom | ast.Starred):
        return arguments_of(node.value) if node.value is not None else []
    if isinstance(node, ast.For | ast.AsyncFor):
        return [(None, node.iter)]
    return []


def call_name(node: ast.expr) -> str:
    """The last name of what a call calls: `torch.nn.Linear(…)` gives "Linear"; "" for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of keyword `name` of `call`."""
    return next((word.value for word in call.keywords if word.arg == name), None)


def move_calls(node: ast.AST) -> Iterator[ast.Call]:
    """Calls inside `node` that move something: `.to(…)` with something like a device, `.cuda()`, `.cpu()`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and is_move(inner):
            yield inner


def is_move(call: ast.Call) -> bool:
    """Whether `call` moves something by a method."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in MOVES:
        return False
    return call.func.attr != "to" or _names_device(call)


def moved_device(call: ast.Call) -> ast.expr | None:
    """The device argument of a move; None for `.cuda()` and `.cpu()` without one."""
    return call.args[0] if call.args else keyword(call, "device")


def is_discarded_move(statement: ast.stmt | None) -> ast.Call | None:
    """The move whose result nothing keeps, where `statement` is one: a line that is just `mask.to(device)`."""
    if isinstance(statement, ast.Expr) and statement.value in list(move_calls(statement)):
        return statement.value if isinstance(statement.value, ast.Call) else None
    return None


def dropped_in_loop(loop: ast.AST) -> ast.Call | None:
    """The move whose result at most the variable of `loop` keeps, for one round, and which is all that it does.

    `for x in xs: x = x.to(device)`, `for x in xs: x.to(device)`.
    """
    if not isinstance(loop, ast.For | ast.AsyncFor) or len(loop.body) > 1:
        return None
    (statement,) = loop.body
    names = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    call = statement.value if isinstance(statement, ast.Assign) else is_discarded_move(statement)
    if not isinstance(call, ast.Call) or call not in list(move_calls(call)) or not isinstance(call.func, ast.Attribute):
        return None
    moved = call.func.value
    if not isinstance(moved, ast.Name) or moved.id not in names or len(targets) > 1:
        return None
    return call if all(isinstance(target, ast.Name) and target.id in names for target in targets) else None


def bindings_of(name: str, scope: Function | ast.Module) -> list[Binding]:
    """Everything in `scope` itself (not in the functions inside it) that gives `name` a value, by line."""
    found: list[Binding] = []
    for node in _own_nodes(scope):
        found.extend(_bindings_in(name, node))
    return sorted(found, key=lambda binding: binding.line)


def _bindings_in(name: str, node: ast.AST) -> Iterator[Binding]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _bound(name, target, node.value, node, node.lineno)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield from _bound(name, node.target, node.value, node, node.lineno)
    elif isinstance(node, ast.For | ast.AsyncFor):
        yield from _bound(name, node.target, node.iter, node, node.lineno, loop=True)
    elif isinstance(node, ast.comprehension):
        yield from _bound(name, node.target, node.iter, node, node.target.lineno, loop=True)
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield from _captured(name, case.pattern, node)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield from _bound(name, node.optional_vars, node.context_expr, node, node.context_expr.lineno)


def _bound(
    name: str, target: ast.expr, value: ast.expr, node: ast.AST, line: int, *, loop: bool = False
) -> Iterator[Binding]:
    target = target.value if isinstance(target, ast.Starred) else target
    if isinstance(target, ast.Name) and target.id == name:
        yield Binding(node, line, value, None, loop)
    elif isinstance(target, ast.Tuple | ast.List):
        for index, part in enumerate(target.elts):
            starred = any(isinstance(each, ast.Starred) for each in target.elts)
            matching = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
            if matching and not loop and not starred:
                yield from _bound(name, part, value.elts[index], node, line)  # type: ignore[attr-defined]
            elif any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(part)):
                direct = index if isinstance(part, ast.Name) and not starred else None
                yield Binding(node, line, value, direct, loop)


def _captured(name: str, pattern: ast.pattern, match: ast.Match) -> Iterator[Binding]:
    """The name that a pattern gives to its whole subject, or to a part of it."""
    for inner in ast.walk(pattern):
        if name in (getattr(inner, "name", None), getattr(inner, "rest", None)):
            yield Binding(match, inner.lineno, match.subject, None, inner is not pattern)  # type: ignore[attr-defined]


def _own_nodes(scope: Function | ast.Module) -> Iterator[ast.AST]:
    body = scope.body if isinstance(scope.body, list) else [scope.body]
    queue: list[ast.AST] = list(body)
    while queue:
        node = queue.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            queue.extend(ast.iter_child_nodes(node))


def _call_arguments(node: ast.Call) -> list[tuple[str | None, ast.expr]]:
    found: list[tuple[str | None, ast.expr]] = []
    if isinstance(node.func, ast.Attribute):
        found.append((None, node.func.value))
    elif isinstance(node.func, ast.Call):
        found.extend(_call_arguments(node.func))
    for argument in node.args:
        found.extend((None, part) for part in _parts(argument))
    for word in node.keywords:
        found.extend((word.arg, part) for part in _parts(word.value))
    return found


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List):
        return [part for element in node.elts for part in _parts(element)]
    return [node.value] if isinstance(node, ast.Starred) else [node]


def _write(target: ast.Subscript) -> list[tuple[str | None, ast.expr]]:
    return [(None, target.value), *((None, part) for part in _parts(target.slice))]


def _inner(value: ast.expr) -> list[tuple[str | None, ast.expr]]:
    return [(None, value)]


def _names_device(call: ast.Call) -> bool:
    """Whether the first argument of `.to` may be a device: `.to(torch.float16)` and `.to(dtype=…)` move nothing."""
    device = moved_device(call)
    if device is None:
        return keyword(call, "dtype") is None and bool(call.args or call.keywords)
    return not (isinstance(device, ast.Attribute) and isinstance(device.value, ast.Name) and device.value.id == "torch")
