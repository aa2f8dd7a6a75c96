"""SD111: random numbers for one device are drawn with a generator of another."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, naming, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.values import Generator
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return fact.role == "generator"


def _message(fact: Conflict, source: Source) -> str:
    name = wording.text_of(fact.culprit.node, source)
    return say(
        "the generator `{name}` is on {here}, the numbers are wanted on {there}",
        name=name,
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    generator = fact.culprit.value
    if not isinstance(generator, Generator) or not isinstance(generator.origin.node, ast.Call):
        return None
    call = generator.origin.node
    device = naming.device_expression(fact, source, at=call)
    if device is None or generator.origin.function != fact.where.function or call.args or call.keywords:
        return None
    text = f"{source.segment(call.func)}({device})"
    return Fix(text, (edits.replace(source, call, text),), safe=naming.holds_everywhere(device, source))


RULE = Rule("SD111", "generator-device", Conflict, _claims, _message, fix=_fix)
