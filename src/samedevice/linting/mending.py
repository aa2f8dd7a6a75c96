"""Fixes that several rules propose: a move where a tensor is used, or where a module is made."""

from __future__ import annotations

import ast
from dataclasses import replace

from samedevice.findings import Fix
from samedevice.linting import edits, naming, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.operation_tables import RANDOM
from samedevice.linting.devices.values import UNKNOWN, Module, Value
from samedevice.linting.evidence import made_here, origin_of
from samedevice.linting.source import Source

__all__ = ["add_device", "is_random", "make_there", "move_at_use", "move_module_where_made", "moved"]


def moved(node: ast.AST, device: str | None, source: Source) -> Fix | None:
    """`node` followed by `.to(device)`; None where either is not known, or `node` stands for the items of a list."""
    if device is None or not isinstance(node, ast.expr) or isinstance(node, ast.Starred):
        return None
    suffix = f".to({device})"
    safe = naming.holds_everywhere(device, source)
    return Fix(wording.text_with(suffix, node, source), (edits.append(source, node, suffix),), safe=safe)


def move_at_use(conflict: Conflict, source: Source, *, beside: Operand | None = None) -> Fix | None:
    """The culprit moved in the expression that uses it, to where `beside` or the other operand is.

    What is written in place stays: of a moved copy the result would be lost.
    """
    if _is_written(conflict) or conflict.culprit.node is conflict.node:
        return None
    if isinstance(conflict.culprit.node, ast.Starred):
        return make_there(conflict, source, _made(conflict), beside=beside)
    return moved(conflict.culprit.node, naming.device_expression(conflict, source, beside=beside), source)


def _made(conflict: Conflict) -> list[ast.Call]:
    origin = origin_of(conflict)
    known = origin is not None and origin.how == "made" and not origin.foreign
    return [origin.node] if origin is not None and known and isinstance(origin.node, ast.Call) else []


def make_there(
    conflict: Conflict, source: Source, calls: list[ast.Call], *, beside: Operand | None = None
) -> Fix | None:
    """`device=…` at the factories of one function that made what is in the wrong place."""
    device = _device_where_made(conflict, source, calls[0], beside) if calls else None
    return add_device(calls, device, source)


def _device_where_made(conflict: Conflict, source: Source, made: ast.Call, beside: Operand | None) -> str | None:
    origin = origin_of(conflict)
    assert origin is not None
    if made_here(conflict):
        return naming.device_expression(conflict, source, at=made, beside=beside)
    if not origin.function:
        return naming.outer_device_name(conflict, source, made)
    where = conflict.where
    own = where.in_module and origin.cls == where.cls and not origin.function.endswith(".__init__")
    return "next(self.parameters()).device" if own and naming.has_self(origin.function, source) else None


def _is_written(conflict: Conflict) -> bool:
    """Whether the culprit is `x` in `x.add_(y)`."""
    call, culprit = conflict.node, conflict.culprit.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    name = call.func.attr
    return call.func.value is culprit and name.endswith("_") and not name.endswith("__")


def move_module_where_made(conflict: Conflict, source: Source) -> Fix | None:
    """The culprit, a module, moved in the expression that makes it, where that is in the same function.

    A layer is moved with all of the model that was called.
    """
    culprit = conflict.culprit
    if culprit.model is not None and conflict.caller is not None:
        # What is at hand in `forward` is not where the model is made: that leaves the names of the device.
        beside = Operand(UNKNOWN, conflict.other.place, conflict.other.node)
        return _moved_where_made(culprit.model, replace(conflict, where=conflict.caller), source, beside)
    return _moved_where_made(culprit.whole or culprit.value, conflict, source, conflict.other)


def _moved_where_made(module: Value, conflict: Conflict, source: Source, beside: Operand) -> Fix | None:
    if not isinstance(module, Module) or module.moved or module.origin.function != conflict.where.function:
        return None
    made = module.origin.node
    if not isinstance(made, ast.Call):
        return None
    return moved(made, naming.device_expression(conflict, source, at=made, beside=beside), source)


def add_device(calls: list[ast.Call], device: str | None, source: Source) -> Fix | None:
    """`device=…` added to calls that make tensors; random numbers of another device are others."""
    if device is None or not calls:
        return None
    if any(keyword.arg == "generator" for call in calls for keyword in call.keywords):
        # A generator draws for its own device only.
        return moved(calls[0], device, source) if len(calls) == 1 else None
    safe = naming.holds_everywhere(device, source) and not any(map(is_random, calls))
    return Fix(f"device={device}", (edits.add_keywords(source, calls, f"device={device}"),), safe=safe)


def is_random(call: ast.Call) -> bool:
    """Whether a factory draws random numbers."""
    return isinstance(call.func, ast.Name | ast.Attribute) and _last_name(call.func) in RANDOM


def _last_name(func: ast.Name | ast.Attribute) -> str:
    return func.id if isinstance(func, ast.Name) else func.attr
