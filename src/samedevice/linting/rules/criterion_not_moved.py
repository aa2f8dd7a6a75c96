"""SD122: the class weights of a loss stayed behind."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import mending, naming, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return fact.role == "criterion" and is_certain(fact)


def _weight(conflict: Conflict) -> Operand:
    return conflict.culprit if conflict.culprit.argument in ("weight", "pos_weight") else conflict.other


def _message(fact: Conflict, source: Source) -> str:
    weight = _weight(fact)
    other = fact.other if weight is fact.culprit else fact.culprit
    return say(
        "the {argument} of {operation} is on {here}, its input on {there}",
        argument=weight.argument or "",
        operation=fact.operation,
        here=wording.place_name(weight.place),
        there=wording.place_name(other.place),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    weight = _weight(fact)
    other = fact.other if weight is fact.culprit else fact.culprit
    held = weight.value.held if isinstance(weight.value, Tensor) else None
    if held is None or held.function != fact.where.function:
        return None
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and any(part is held.node for part in _arguments(node)):
            return mending.moved(node, naming.device_expression(fact, source, at=node, beside=other), source)
    return None


def _arguments(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)]


RULE = Rule("SD122", "criterion-not-moved", Conflict, _claims, _message, fix=_fix)
