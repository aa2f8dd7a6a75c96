"""Conditions whose outcome is known. A program for CUDA is judged as it runs where CUDA is available."""

from __future__ import annotations

import ast
from typing import Any

from samedevice.linting.devices import moves
from samedevice.linting.devices.lattice import as_place, same_place
from samedevice.linting.devices.machine import Machine
from samedevice.linting.devices.places import Certainty, Place, difference, resolve
from samedevice.linting.devices.values import (
    Class,
    Constant,
    Device,
    External,
    Function,
    Instance,
    Mapping,
    Module,
    Optimizer,
    Sequence,
    Tensor,
    Value,
)

__all__ = ["compare", "is_instance", "is_on", "of_value", "truth"]


def truth(machine: Machine, node: ast.expr) -> bool | None:
    """Whether a condition holds, or None where that is not known."""
    return of_value(machine.evaluate(node))


def of_value(value: Value) -> bool | None:
    """Whether a value counts as true, or None where that is not known."""
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, Module | Optimizer | Function | Class | Device):
        return True
    if isinstance(value, Sequence) and value.items is not None and not value.mutable:
        return bool(value.items)
    return None


def compare(machine: Machine, node: ast.Compare) -> bool | None:
    """The outcome of a comparison, or None."""
    if len(node.ops) != 1:
        return None
    left, right = machine.evaluate(node.left), machine.evaluate(node.comparators[0])
    operator = node.ops[0]
    if isinstance(operator, ast.Is | ast.IsNot):
        same = _is(left, right)
        return None if same is None else same is isinstance(operator, ast.Is)
    if isinstance(operator, ast.In | ast.NotIn):
        inside = _is_in(left, right)
        return None if inside is None else inside is isinstance(operator, ast.In)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _compare_constants(operator, left.value, right.value)
    if (
        isinstance(operator, ast.Eq | ast.NotEq)
        and isinstance(left, Device | Constant)
        and isinstance(right, Device | Constant)
    ):
        equal = _equal_places(left, right)
        return None if equal is None else equal is isinstance(operator, ast.Eq)
    return None


def _is(left: Value, right: Value) -> bool | None:
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Constant) and value.value is None:
            if isinstance(other, Constant):
                return other.value is None
            if isinstance(other, Tensor):
                return False if other.certain else None
            if isinstance(other, Module | Instance | Sequence | Mapping | Optimizer | Function | Class | Device):
                return False
    return None


def _is_in(left: Value, right: Value) -> bool | None:
    if not isinstance(left, Constant):
        return None
    if isinstance(right, Mapping) and left.value.__hash__ and left.value in right.entries:
        return True
    if isinstance(right, Sequence) and right.items is not None and all(isinstance(i, Constant) for i in right.items):
        return left.value in [item.value for item in right.items if isinstance(item, Constant)]
    if isinstance(right, Constant) and isinstance(right.value, str) and isinstance(left.value, str):
        return left.value in right.value
    return None


def _compare_constants(operator: ast.cmpop, left: Any, right: Any) -> bool | None:
    try:
        if isinstance(operator, ast.Eq):
            return bool(left == right)
        if isinstance(operator, ast.NotEq):
            return bool(left != right)
        if isinstance(operator, ast.Lt):
            return bool(left < right)
        if isinstance(operator, ast.LtE):
            return bool(left <= right)
        if isinstance(operator, ast.Gt):
            return bool(left > right)
        return bool(left >= right) if isinstance(operator, ast.GtE) else None
    except TypeError:
        return None


def _equal_places(left: Value, right: Value) -> bool | None:
    first, second = as_place(left), as_place(right)
    if first is None or second is None:
        return None
    if same_place(first, second):
        return True
    if isinstance(resolve(first), Place) and isinstance(resolve(second), Place):
        return False if difference(first, second) is Certainty.CERTAIN else None
    return None


def is_instance(machine: Machine, value: Value, kinds: Value) -> bool | None:
    """`isinstance(value, kinds)` where it can be told."""
    if isinstance(value, Instance) and value.cls is not None and not value.cls.opaque:
        return _is_object_of(value.cls, kinds)
    names = _type_names(kinds)
    if names is None:
        return None
    if isinstance(value, Tensor):
        if "torch.Tensor" in names:
            return True if value.certain else None
        return False if value.certain and names <= {"builtins.list", "builtins.tuple", "builtins.dict"} else None
    if isinstance(value, Sequence):
        if names & {"builtins.list", "builtins.tuple"} and len(names & {"builtins.list", "builtins.tuple"}) == 2:
            return True
        return False if "torch.Tensor" in names and len(names) == 1 else None
    if isinstance(value, Mapping) and names == {"torch.Tensor"}:
        return False
    if isinstance(value, Mapping) and "builtins.dict" in names:
        return True
    if isinstance(value, Constant):
        known = {"builtins.str": str, "builtins.int": int, "builtins.float": float, "builtins.bool": bool}
        if names <= known.keys() | {"torch.Tensor", "builtins.list", "builtins.tuple", "builtins.dict"}:
            return any(isinstance(value.value, known[name]) for name in names & known.keys())
    return None


def _is_object_of(cls: Class, kinds: Value) -> bool | None:
    """`isinstance` of an object whose class and bases are all known."""
    options = kinds.items if isinstance(kinds, Sequence) and kinds.items is not None else (kinds,)
    if any(option in _lineage(cls) for option in options):
        return True
    return None if any(not isinstance(option, Class | External) for option in options) else False


def _lineage(cls: Class) -> list[Value]:
    """A class and everything that it inherits from."""
    above = [ancestor for base in cls.bases if isinstance(base, Class) for ancestor in _lineage(base)]
    return [cls, *(base for base in cls.bases if not isinstance(base, Class)), *above]


def _type_names(kinds: Value) -> set[str] | None:
    options = kinds.items if isinstance(kinds, Sequence) and kinds.items is not None else (kinds,)
    names = {option.name for option in options if isinstance(option, External)}
    return names if len(names) == len(options) else None


def is_on(tensor: Tensor, kind: str) -> bool | None:
    """`tensor.is_cuda` and its kin, where it can be told."""
    place = moves.place_of(tensor)
    found = resolve(place) if place is not None else None
    return found.kind == kind if isinstance(found, Place) else None
