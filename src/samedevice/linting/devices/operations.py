"""Operations on several tensors: what they demand of the places of their operands, and where the result is.

Source of the demands: `device_check` in torch's native_functions.yaml (one device for all, also for tensors without
dimensions: "strict") and ATen's TensorIterator (a 0-dim CPU tensor may join: "elementwise"), torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from samedevice.linting.devices import moves
from samedevice.linting.devices.facts import Operand
from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.places import CPU, Cell, Certainty, Location, Place, resolve
from samedevice.linting.devices.values import (
    UNKNOWN,
    Constant,
    Module,
    Sequence,
    Symbol,
    Tensor,
    Value,
)

__all__ = ["as_tensor", "combine", "index", "link", "may_conflict", "sources_of", "store", "tensors_in"]

Argument = tuple[Value, ast.AST, str]
"""A value, the expression that gave it, and PyTorch's name for the argument."""


def as_tensor(value: Value) -> Tensor | None:
    """The value as a tensor, where it may be one."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Symbol) and value.role != "number":
        # A part, such as a setting, is most often a number; code that asks for its device shows that it is a tensor.
        if value.role == "part" and value.cell.evidence < Certainty.CERTAIN and value.cell.link is None:
            return None
        return Tensor(value.cell, certain=False, leaf=False)
    return None


def tensors_in(value: Value, node: ast.AST, argument: str) -> Iterable[tuple[Tensor, ast.AST, str]]:
    """The tensors in an argument: itself, or the items of a list of tensors."""
    if isinstance(value, Sequence):
        parts = _parts(value, node)
        for part, part_node in parts:
            tensor = as_tensor(part)
            if tensor is not None:
                yield tensor, part_node, argument
        return
    tensor = as_tensor(value)
    if tensor is not None:
        yield tensor, node, argument


def _parts(value: Sequence, node: ast.AST) -> list[tuple[Value, ast.AST]]:
    if value.apart is not None:
        return [(item, _each_of(node)) for item in value.apart]
    if value.items is None:
        return [(value.element, _each_of(node))]
    written = node.elts if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == len(value.items) else None
    return [(item, written[i] if written else _each_of(node)) for i, item in enumerate(value.items)]


def _each_of(node: ast.AST) -> ast.AST:
    """An item of what `node` gives, which has no expression of its own: `*node`, at the place of `node`."""
    return ast.copy_location(ast.Starred(node, ast.Load()), node) if isinstance(node, ast.expr) else node


def combine(machine: Machine, node: ast.AST, operation: str, role: str, arguments: list[Argument]) -> Value:
    """The result of an operation on `arguments`, after checking what it demands.

    Args:
        machine: the interpreter.
        node: the operation.
        operation: PyTorch's name for it.
        role: "strict" (all on one device), "elementwise" (0-dim CPU tensors may join), "inplace" (elementwise into the
            first), or "none" (nothing is demanded).
        arguments: its operands.

    Returns:
        A tensor, or unknown where no operand is one.
    """
    tensors = [part for argument in arguments for part in tensors_in(*argument)]
    if not tensors:
        return _of_numbers([value for value, *_ in arguments])
    operands = [Operand(tensor, moves.place_of(tensor), part, name) for tensor, part, name in tensors]
    if role != "none" and len(operands) > 1:
        demanded = _demanded(operands, role)
        if may_conflict(demanded):
            machine.report(node, operation, role, demanded)
        if operation in _LINKING:
            link(demanded)
    return _result(operands, arguments)


def _of_numbers(values: list[Value]) -> Value:
    """What comes of numbers and arrays alone is no tensor either."""
    number = next((value for value in values if isinstance(value, Symbol) and value.role == "number"), UNKNOWN)
    known = all(value is number or isinstance(value, Constant | Symbol) for value in values)
    return number if known else UNKNOWN


_LINKING = frozenset({"matmul", "mm", "bmm", "linear", "embedding"})
"""Operations that take nothing but tensors, so that an unknown argument is one."""


def may_conflict(operands: list[Operand]) -> bool:
    """Whether two operands are, or may turn out to be, on different devices."""
    first: Location | None = None
    for operand in operands:
        if operand.place is None:
            continue
        place = resolve(operand.place)
        if first is None:
            first = place
        elif first is not place and first != place:
            return True
    return False


def link(operands: list[Operand]) -> None:
    """What a strict operation accepts is on one device: unknown arguments are where the others are."""
    anchor = next((place for o in operands if (place := _anchor(o.place)) is not None), None)
    if anchor is None:
        return
    for operand in operands:
        place = resolve(operand.place) if operand.place is not None else None
        if isinstance(place, Cell) and place is not anchor and place.evidence < Certainty.CERTAIN:
            place.join(anchor)


def _anchor(place: Location | None) -> Location | None:
    """A place that is known not to be just the CPU."""
    if place is None:
        return None
    found = resolve(place)
    if isinstance(found, Cell):
        return found if found.evidence is Certainty.CERTAIN else None
    return found if found != CPU else None


def _demanded(operands: list[Operand], role: str) -> list[Operand]:
    """The operands that must be on one device."""
    if role == "strict":
        return operands
    target = operands[0]
    if role == "inplace" and _is_cpu(target):
        return operands
    return [operand for operand in operands if not (_is_cpu(operand) and _maybe_scalar(operand))]


def _is_cpu(operand: Operand) -> bool:
    return operand.place is not None and resolve(operand.place) == CPU


def _maybe_scalar(operand: Operand) -> bool:
    return not isinstance(operand.value, Tensor) or operand.value.scalar is not False


def _result(operands: list[Operand], arguments: list[Argument]) -> Value:
    values = [operand.value for operand in operands if isinstance(operand.value, Tensor)]
    place = _result_place(operands, arguments)
    base = next((o.value for o in operands if isinstance(o.value, Tensor) and o.place is place and o.value.held), None)
    base = base or next((o.value for o in operands if isinstance(o.value, Tensor) and o.place is place), values[0])
    scalars = {value.scalar for value in values}
    scalar = False if False in scalars else True if scalars == {True} and len(values) == len(arguments) else None
    if scalar is None and len(values) == 1 and all(_is_number(v) for v, *_ in arguments if v is not values[0]):
        scalar = values[0].scalar
    return Tensor(
        place,
        base.origin,
        scalar,
        held=base.held if base.kind == "plain" else None,
        leaf=not any(value.requires_grad for value in values),
        requires_grad=any(value.requires_grad for value in values),
        certain=any(value.certain for value in values),
        sources=frozenset().union(*[sources_of(value) for value in values]),
        part_of=base.part_of,
        copied=base.copied,
    )


def _is_number(value: Value) -> bool:
    return isinstance(value, Constant) or (isinstance(value, Symbol) and value.role == "number")


def sources_of(tensor: Tensor) -> frozenset[Module]:
    """The modules whose parameters a tensor was computed with."""
    return tensor.sources | {tensor.owner} if tensor.owner is not None else tensor.sources


def _result_place(operands: list[Operand], arguments: list[Argument]) -> Location | None:
    known = [o for o in operands if o.place is not None]
    if not known:
        return None
    for operand in known:
        place = resolve(operand.place) if operand.place is not None else None
        if isinstance(place, Place) and place != CPU:
            return operand.place
    cells = [cell for operand in known if isinstance(cell := resolve(operand.place or CPU), Cell)]
    if cells:
        strongest = max(cells, key=lambda cell: cell.evidence)
        # A weak one may stand for a number, which leaves the result where the known tensors are.
        if strongest.evidence is Certainty.CERTAIN or all(_maybe_scalar(o) for o in known if _is_cpu(o)):
            return strongest
    # All that is known is on the CPU. What is not known must be there too, or be a number, unless the known ones are
    # scalars that may join a tensor elsewhere.
    if len(known) < len(operands) or any(_may_be_tensor(value) for value, *_ in arguments):
        return CPU if any(not _maybe_scalar(operand) for operand in known) else None
    return CPU


def _may_be_tensor(value: Value) -> bool:
    return value is UNKNOWN or isinstance(value, Symbol)


def index(machine: Machine, node: ast.AST, tensor: Tensor, keys: list[tuple[Value, ast.AST]]) -> Tensor:
    """`tensor[keys]`: an index is on the CPU or where the tensor is.

    Source: ATen/native/TensorAdvancedIndexing.cpp, check_indices_on_cpu_or_selfdevice.
    """
    parts = _index_parts(keys)
    place = moves.place_of(tensor)
    here = Operand(tensor, place, getattr(node, "value", node), "self")
    for value, part in parts:
        key = as_tensor(value)
        if key is None or key.scalar is True or not tensor.certain:
            continue
        operand = Operand(key, moves.place_of(key), part, "indices")
        if not _is_cpu(operand) and key.scalar is False and may_conflict([here, operand]):
            machine.report(node, "index", "index", [here, operand])
    sliced = any(isinstance(value, Constant) and value.value in (Ellipsis, None) for value, _ in parts)
    by_tensor = any(isinstance(value, Tensor) and value.scalar is False for value, _ in parts)
    return Tensor(
        place,
        tensor.origin,
        False if sliced or by_tensor else None,
        held=tensor.held if tensor.kind == "plain" else None,
        leaf=False,
        requires_grad=tensor.requires_grad,
        certain=tensor.certain,
        sources=sources_of(tensor),
        part_of=tensor.part_of or (None if tensor.certain else tensor),
    )


def _index_parts(keys: list[tuple[Value, ast.AST]]) -> list[tuple[Value, ast.AST]]:
    parts: list[tuple[Value, ast.AST]] = []
    for value, node in keys:
        if isinstance(value, Sequence) and value.items is not None and isinstance(node, ast.Tuple):
            parts.extend(_parts(value, node))
        else:
            parts.append((value, node))
    return parts


def store(machine: Machine, node: ast.AST, tensor: Tensor, key: Value, value: Value, value_node: ast.AST) -> None:
    """`tensor[key] = value`: with tensors as indices the value must be on the tensor's device, or have no dimensions.

    Source: TensorIterator in index_put_; with integers and slices it is a copy, which may cross devices, and an integer
    tensor without dimensions counts as an integer (torch/csrc/autograd/python_variable_indexing.cpp).
    """
    keys = key.items if isinstance(key, Sequence) and key.items is not None else (key,)
    if not any(isinstance(part, Tensor) and part.scalar is not True for part in keys):
        return
    given = as_tensor(value)
    if given is None or given.scalar is not False:
        return
    here = Operand(tensor, moves.place_of(tensor), node, "self")
    operand = Operand(given, moves.place_of(given), value_node, "values")
    if may_conflict([here, operand]):
        machine.report(node, "index_put_", "value", [here, operand])
