"""How rules speak of places, tensors and lines, and how a fix names a device."""

from __future__ import annotations

import ast

from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.lattice import same_place
from samedevice.linting.devices.places import CPU, Cell, Location, Place, resolve
from samedevice.linting.devices.values import Tensor
from samedevice.linting.source import Source

__all__ = ["device_expression", "is_known_before", "place_name", "tensor_of", "text_of"]

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
        return "an unknown device"
    found = resolve(place)
    if isinstance(found, Place):
        return "the CPU" if found == CPU else str(found)
    return found.name


def tensor_of(operand: Operand) -> Tensor | None:
    """The operand's tensor, or None where it is a module or something else."""
    return operand.value if isinstance(operand.value, Tensor) else None


def device_expression(conflict: Conflict, source: Source, *, beside: Operand | None = None) -> str | None:
    """An expression for the device where the culprit should be, valid in the function where the conflict is.

    A name for that device comes first, then the device of a tensor that is at hand there, then the device as text.

    Args:
        conflict: what happened.
        source: the file.
        beside: the operand that is in the right place, where it is not `conflict.other`.

    Returns:
        The expression, or None where none is certain.
    """
    right = beside or conflict.other
    for name, place in conflict.where.devices:
        if same_place(place, right.place):
            return name
    if isinstance(right.value, Tensor) and _is_simple(right.node):
        return f"{source.segment(right.node)}.device"
    found = resolve(right.place) if right.place is not None else None
    if isinstance(found, Cell):
        return None
    if isinstance(found, Place) and not isinstance(found.index, str):
        return f'"{found}"'
    return None


def is_known_before(expression: str, node: ast.AST, conflict: Conflict, source: Source) -> bool:
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
