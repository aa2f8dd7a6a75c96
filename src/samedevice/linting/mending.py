"""Fixes that several rules propose: a move where a tensor is used, or where a module is made."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.values import Module
from samedevice.linting.evidence import made_here
from samedevice.linting.source import Source

__all__ = ["add_device", "move_at_use", "move_module_where_made", "moved"]


def moved(node: ast.AST, device: str | None, source: Source) -> Fix | None:
    """`node` followed by `.to(device)`; None where either is not known."""
    if device is None or not isinstance(node, ast.expr):
        return None
    suffix = f".to({device})"
    return Fix(f"{wording.text_of(node, source)}{suffix}", (edits.append(source, node, suffix),))


def move_at_use(conflict: Conflict, source: Source, *, beside: Operand | None = None) -> Fix | None:
    """The culprit moved in the expression that uses it, to where `beside` or the other operand is.

    What is written in place stays: of a moved copy the result would be lost.
    """
    if _is_written(conflict):
        return None
    return moved(conflict.culprit.node, wording.device_expression(conflict, source, beside=beside), source)


def _is_written(conflict: Conflict) -> bool:
    """Whether the culprit is `x` in `x.add_(y)`."""
    call, culprit = conflict.node, conflict.culprit.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    name = call.func.attr
    return call.func.value is culprit and name.endswith("_") and not name.endswith("__")


def move_module_where_made(conflict: Conflict, source: Source) -> Fix | None:
    """The culprit, a module, moved in the expression that makes it, where that is in the same function."""
    module = conflict.culprit.value
    if not isinstance(module, Module) or module.moved or not made_here(conflict):
        return None
    made = module.origin.node
    if not isinstance(made, ast.Call):
        return None
    return moved(made, wording.device_expression(conflict, source, at=made), source)


def add_device(call: ast.Call, device: str | None, source: Source) -> Fix | None:
    """`device=…` added to a call that makes a tensor."""
    if device is None:
        return None
    return Fix(f"device={device}", (edits.add_keyword(source, call, f"device={device}"),))
