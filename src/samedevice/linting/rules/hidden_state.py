"""SD120: the state given to a recurrent layer is not where its input is."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import mending, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.lattice import same_place
from samedevice.linting.evidence import is_certain, is_tensor, origin_of, where_made
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
    call = fact.node
    given = call.args[0] if isinstance(call, ast.Call) and call.args else None
    beside = Operand(fact.culprit.value, fact.other.place, given) if isinstance(given, ast.Name) else None
    there = mending.make_there(fact, source, _factories(fact), beside=beside)
    return there if there is not None and there.safe else mending.move_at_use(fact, source, beside=beside) or there


def _factories(fact: Conflict) -> list[ast.Call]:
    """The calls of one function that made the parts of the state."""
    first = origin_of(fact)
    calls: list[ast.Call] = []
    for operand in fact.operands:
        origin = getattr(operand.value, "origin", None)
        if operand.argument != "hx" or not same_place(operand.place, fact.culprit.place):
            continue
        if first is None or origin is None or origin.how != "made" or origin.foreign:
            return []
        if origin.function != first.function or not isinstance(origin.node, ast.Call):
            return []
        if origin.node not in calls:
            calls.append(origin.node)
    return calls


RULE = Rule("SD120", "hidden-state", Conflict, _claims, _message, at=where_made, fix=_fix)
