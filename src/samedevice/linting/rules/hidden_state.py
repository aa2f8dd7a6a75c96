"""SD120: the state given to a recurrent layer is not where its input is."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact, Operand
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import conflict_over, is_certain, made_here, origin_of, where_made
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact, Tensor)
    return conflict is not None and conflict.role == "hidden" and is_certain(conflict)


def _at(fact: Fact) -> ast.AST:
    assert isinstance(fact, Conflict)
    return where_made(fact)


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    name = wording.text_of(fact.culprit.node, source)
    line = getattr(fact.node, "lineno", 0)
    return (
        f"the state `{name}` that {fact.operation} gets in line {line} is on {wording.place_name(fact.culprit.place)}, its "
        f"input on {wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    origin = origin_of(fact)
    call, node = fact.node, fact.culprit.node
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    beside = Operand(fact.culprit.value, fact.other.place, given) if isinstance(given, ast.Name) else None
    if origin is not None and origin.how == "made" and made_here(fact) and isinstance(origin.node, ast.Call):
        device = wording.device_expression(fact, source, at=origin.node, beside=beside)
        if device is not None:
            return Fix(f"device={device}", (edits.add_keyword(source, origin.node, f"device={device}"),))
    device = wording.device_expression(fact, source, beside=beside)
    if device is None or not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.to({device})", (edits.append(source, node, f".to({device})"),))


RULE = Rule("SD120", "hidden-state", _claims, _at, _message, _fix)
