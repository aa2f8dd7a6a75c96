"""How an edit names the device where a tensor or module should be.

What is written has to be bound where it stands, and to name a device that is there on every machine on which the
program runs. Where nothing is certain, there is no name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.lattice import same_place
from samedevice.linting.devices.method_tables import MOVES
from samedevice.linting.devices.moves import module_place
from samedevice.linting.devices.operation_tables import RECURRENT, WEIGHTED
from samedevice.linting.devices.places import Place, resolve
from samedevice.linting.devices.values import Module, Tensor
from samedevice.linting.source import Source

__all__ = ["device_expression", "has_self", "holds_everywhere", "outer_device_name", "own_device_name"]


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


def outer_device_name(conflict: Conflict, source: Source, at: ast.Call) -> str | None:
    """The file's own name for the device where the culprit should be, at a place outside of all functions."""
    for name, place in conflict.where.outer_devices:
        if same_place(place, conflict.other.place) and any(
            isinstance(part, ast.Name) and part.id == name and _is_store(part) and part.lineno < at.lineno
            for part in ast.walk(source.tree)
        ):
            return name
    return None


def has_self(function: str, source: Source) -> bool:
    """Whether a method names its object `self`."""
    cls, _, name = function.rpartition(".")
    return any(
        isinstance(node, ast.ClassDef)
        and node.name == cls.rpartition(".")[2]
        and any(
            isinstance(part, ast.FunctionDef) and part.name == name and [a.arg for a in part.args.args[:1]] == ["self"]
            for part in node.body
        )
        for node in ast.walk(source.tree)
    )


def _candidates(conflict: Conflict, source: Source, right: Operand) -> Iterator[str]:
    yield from (name for name, place in conflict.where.devices if same_place(place, right.place))
    of_module = _of_module(conflict, source, right)
    if isinstance(right.value, Tensor) and not _is_called(right) and _is_simple(right.node):
        yield f"{source.segment(right.node)}.device"
    elif conflict.where.in_module and of_module is not None:
        yield of_module
    yield from (name for name, place in conflict.where.outer_devices if same_place(place, right.place))
    found = resolve(right.place) if right.place is not None else None
    literal = f'"{found}"' if isinstance(found, Place) and not isinstance(found.index, str) else None
    if of_module is not None and (conflict.where.function or literal is None or not holds_everywhere(literal, source)):
        yield of_module
    if literal is not None:
        yield literal


def _of_module(conflict: Conflict, source: Source, right: Operand) -> str | None:
    """The device of a module that is called by a name, which has a `weight` only where it is such a layer itself."""
    if not _is_simple(right.node) or not (isinstance(right.value, Module) or _is_called(right)):
        return None
    name = source.segment(right.node)
    if _may_lack_weight(right):
        return None
    if _has_weight(right):
        return f"{name}.weight.device" if conflict.where.in_module else f"next({name}.parameters()).device"
    if right.whole is not None and not same_place(module_place(right.whole), right.place):
        return None
    # Replicas have no parameters: source: torch/nn/parallel/replicate.py.
    replicated = conflict.where.in_module and "DataParallel" in _names_in(source)
    return None if replicated else f"next({name}.parameters()).device"


def _is_called(operand: Operand) -> bool:
    """Whether it is a module of a class that is not seen: what is called has parameters, and need not have a device."""
    return isinstance(operand.value, Tensor) and not operand.value.certain and operand.argument == "weight"


def _has_weight(operand: Operand) -> bool:
    value = operand.value
    layer = isinstance(value, Module) and value.cls is None and value.name in _WITH_WEIGHT
    return layer and operand.whole is None


def _may_lack_weight(operand: Operand) -> bool:
    """Whether it is a norm that was told whether to have parameters: one without has buffers only."""
    value = operand.value
    if not isinstance(value, Module) or value.cls is not None or "Norm" not in value.name:
        return False
    made = value.origin.node
    return not isinstance(made, ast.Call) or len(made.args) > 2 or any(_is_affine(word) for word in made.keywords)


def _is_affine(keyword: ast.keyword) -> bool:
    return keyword.arg is None or keyword.arg.endswith("affine")


_WITH_WEIGHT = WEIGHTED - RECURRENT - {"MultiheadAttention"} - {name for name in WEIGHTED if "Transformer" in name}
"""Layers with a parameter of that name."""


def holds_everywhere(device: str, source: Source) -> bool:
    """Whether a device may be written down: not as text in a program that looks which ones there are."""
    literal = device.startswith('"')
    return not literal or not _looks_for_devices(source) or _is_written_down(device.strip('"'), source)


def _is_written_down(device: str, source: Source) -> bool:
    """Whether the program names this very device, by its number, where it has not asked for one."""
    asked = {
        id(part)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.IfExp | ast.If) and _ASKS.search(source.segment(node.test))
        for part in ast.walk(node)
    }
    named = (part for part in ast.walk(source.tree) if isinstance(part, ast.Constant) and part.value == device)
    return ":" in device and any(id(part) not in asked for part in named)


_ASKS = re.compile("cuda|gpu|device", re.IGNORECASE)


def _looks_for_devices(source: Source) -> bool:
    return bool({"is_available", "current_accelerator"} & _names_in(source)) or any(
        _chooses(node, source) for node in ast.walk(source.tree) if isinstance(node, ast.IfExp | ast.If)
    )


def _chooses(node: ast.IfExp | ast.If, source: Source) -> bool:
    """`"cuda" if wanted else "cpu"`, and `if cuda: model.cuda()`."""
    if isinstance(node, ast.IfExp):
        return any(isinstance(arm, ast.Constant) and arm.value == "cpu" for arm in (node.body, node.orelse))
    asks = _ASKS.search(source.segment(node.test))
    parts = (part for statement in node.body for part in ast.walk(statement))
    return asks is not None and any(isinstance(part, ast.Attribute) and part.attr in ("to", *MOVES) for part in parts)


def _names_in(source: Source) -> set[str]:
    """The names and attributes that a file mentions."""
    parts = ast.walk(source.tree)
    return {part.id if isinstance(part, ast.Name) else part.attr for part in parts if isinstance(part, _NAMES)}


_NAMES = (ast.Name, ast.Attribute)


def _is_known_before(expression: str, node: ast.AST, conflict: Conflict, source: Source) -> bool:
    """Whether the name that `expression` begins with is bound where `node` stands, in the conflict's function."""
    name = expression.removeprefix("next(").partition(".")[0].partition("[")[0]
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
