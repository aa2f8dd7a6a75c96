"""SD120: the state given to a recurrent layer is not where its input is."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import mending, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.evidence import is_certain, is_tensor, made_here, origin_of, where_made
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return fact.role == "hidden" and is_tensor(fact) and is_certain(fact)


def _message(fact: Conflict, source: Source) -> str:
    name = wording.text_of(fact.culprit.node, source)
    return say(
        "the state `{name}` that {operation} gets in {line} is on {here}, its input on {there}",
        name=name,
        operation=fact.operation,
        line=wording.line(wording.line_of(fact.node)),
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    origin = origin_of(fact)
    call = fact.node
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    beside = Operand(fact.culprit.value, fact.other.place, given) if isinstance(given, ast.Name) else None
    if origin is not None and origin.how == "made" and made_here(fact) and isinstance(origin.node, ast.Call):
        device = wording.device_expression(fact, source, at=origin.node, beside=beside)
        if device is not None:
            return mending.add_device(origin.node, device, source)
    return mending.move_at_use(fact, source, beside=beside)


RULE = Rule("SD120", "hidden-state", Conflict, _claims, _message, at=where_made, fix=_fix)
