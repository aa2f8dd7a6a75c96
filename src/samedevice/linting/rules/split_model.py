"""SD115: parts of a model are on several devices, and a tensor goes from one to the other without being moved."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact, Operand
from samedevice.linting.devices.places import CPU, Place, resolve
from samedevice.linting.devices.values import Module
from samedevice.linting.evidence import conflict_over, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact)
    return (
        conflict is not None
        and is_certain(conflict)
        and _named(conflict.culprit)
        and _named(conflict.other)
        and conflict.role in ("module", "strict", "elementwise", "criterion")
    )


def _named(operand: Operand) -> bool:
    place = resolve(operand.place) if operand.place is not None else None
    return isinstance(place, Place) and place != CPU


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    tensor, part = _sides(fact)
    return (
        f"`{wording.text_of(tensor.node, source)}` is on {wording.place_name(tensor.place)} and "
        f"`{wording.text_of(part.node, source)}` on {wording.place_name(part.place)}"
    )


def _sides(conflict: Conflict) -> tuple[Operand, Operand]:
    """The operand to move, and the one to move it to: a module stays."""
    if isinstance(conflict.culprit.value, Module):
        return conflict.other, conflict.culprit
    return conflict.culprit, conflict.other


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    tensor, part = _sides(fact)
    # The parts were placed by name, so the name of the device says most.
    device = wording.own_device_name(fact, part) or f'"{wording.place_name(part.place)}"'
    if "{" in device:
        device = wording.device_expression(fact, source, beside=part) or ""
    if not device or not isinstance(tensor.node, ast.expr):
        return None
    return Fix(
        f"{wording.text_of(tensor.node, source)}.to({device})", (edits.append(source, tensor.node, f".to({device})"),)
    )


RULE = Rule("SD115", "split-model", _claims, _at, _message, _fix)
