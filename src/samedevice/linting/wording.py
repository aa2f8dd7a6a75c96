"""How rules speak of places, tensors and lines, and how a fix names a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.lattice import same_place
from samedevice.linting.devices.operation_tables import RECURRENT, WEIGHTED
from samedevice.linting.devices.places import CPU, Location, Place, resolve
from samedevice.linting.devices.values import Module, Tensor, Value
from samedevice.linting.lines import line
from samedevice.linting.source import Source
from samedevice.texts import say

__all__ = [
    "device_expression",
    "device_name",
    "here",
    "line",
    "line_of",
    "own_device_name",
    "place_name",
    "text_of",
    "there",
]

_LONGEST = 60


def text_of(node: ast.AST, source: Source) -> str:
    """The source of an expression on one line, shortened where it is long."""
    if not isinstance(node, ast.expr):
        return "it"
    text = " ".join(source.segment(node).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def place_name(place: Location | None) -> str:
    """A place as a reader says it."""
    if place is None:
        return _UNKNOWN
    found = resolve(place)
    if isinstance(found, Place):
        return _THE_CPU if found == CPU else str(found)
    return found.name


_UNKNOWN = say("an unknown device")
_THE_CPU = say("the CPU")


def device_name(place: Location | None) -> str | None:
    """A place as PyTorch writes it, for reports; None where its name is not known."""
    found = None if place is None else resolve(place)
    return str(found) if isinstance(found, Place) else None


def here(conflict: Conflict) -> str:
    """Where the culprit is."""
    return place_name(conflict.culprit.place)


def there(conflict: Conflict) -> str:
    """Where the other operand is."""
    return place_name(conflict.other.place)


def line_of(node: ast.AST | None) -> int:
    """The line of a node, 0 where it has none."""
    line: int = getattr(node, "lineno", 0)
    return line


def device_expression(
    conflict: Conflict, source: Source, *, at: ast.AST | None = None, beside: Operand | None = None
) -> str | None:
    """An expression for the device where the culprit should be.

    The function's own name for that device comes first, then the device of a tensor or layer that is at hand there,
    then a name from outside, then the device as text.

    Args:
        conflict: what happened.
        source: the file.
        at: where the expression is to stand, in the conflict's function; where the conflict is, if left out.
        beside: the operand that is in the right place, where it is not `conflict.other`.

    Returns:
        The expression, or None where none is certain.
    """
    node = at or conflict.node
    candidates = _candidates(conflict, source, beside or conflict.other)
    return next((text for text in candidates if _is_known_before(text, node, conflict, source)), None)


def own_device_name(conflict: Conflict, right: Operand) -> str | None:
    """The function's own name for the device of `right`."""
    return next((name for name, place in conflict.where.devices if same_place(place, right.place)), None)


def _candidates(conflict: Conflict, source: Source, right: Operand) -> Iterator[str]:
    yield from (name for name, place in conflict.where.devices if same_place(place, right.place))
    if isinstance(right.value, Tensor) and _is_simple(right.node):
        yield f"{source.segment(right.node)}.device"
    elif conflict.where.in_module and _has_weight(right.value) and _is_simple(right.node):
        yield f"{source.segment(right.node)}.weight.device"
    yield from (name for name, place in conflict.where.outer_devices if same_place(place, right.place))
    found = resolve(right.place) if right.place is not None else None
    if isinstance(found, Place) and not isinstance(found.index, str):
        yield f'"{found}"'


def _has_weight(value: Value) -> bool:
    return isinstance(value, Module) and value.cls is None and value.name in WEIGHTED - RECURRENT


def _is_known_before(expression: str, node: ast.AST, conflict: Conflict, source: Source) -> bool:
    """Whether the name that `expression` begins with is bound where `node` stands, in the conflict's function."""
    name = expression.partition(".")[0].partition("[")[0]
    if not name.isidentifier() or name == "self":
        return True
    function = conflict.where.node
    scope = function if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) else source.tree
    if scope is function and name in _parameters(scope):
        return True
    bound = [part for part in ast.walk(scope) if isinstance(part, ast.Name) and part.id == name and _is_store(part)]
    if not bound and scope is function:
        return True
    line = getattr(node, "lineno", 0)
    return any(part.lineno < line for part in bound)


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _parameters(function: ast.AST) -> set[str]:
    return {part.arg for part in ast.walk(function) if isinstance(part, ast.arg)}


def _is_simple(node: ast.AST) -> bool:
    """A name or a chain of attributes: evaluating it twice costs nothing."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)
