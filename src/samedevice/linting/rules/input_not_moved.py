"""SD101: a tensor is given to a model or operation on another device."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import conflict_over, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact, Tensor)
    return conflict is not None and is_certain(conflict)


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    name = wording.text_of(fact.culprit.node, source)
    return (
        f"`{name}` is on {wording.place_name(fact.culprit.place)} and {fact.operation} needs it on "
        f"{wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    device = wording.device_expression(fact, source)
    if device is None or not isinstance(fact.culprit.node, ast.expr):
        return None
    name = wording.text_of(fact.culprit.node, source)
    return Fix(f"{name}.to({device})", (edits.append(source, fact.culprit.node, f".to({device})"),))


RULE = Rule("SD101", "input-not-moved", _claims, _at, _message, _fix)
