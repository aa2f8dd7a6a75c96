"""SD111: random numbers for one device are drawn with a generator of another."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.values import Generator
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Conflict) -> bool:
    return fact.role == "generator"


def _sides(conflict: Conflict) -> tuple[Operand, Operand]:
    """The generator, and the place where the numbers are wanted."""
    if isinstance(conflict.culprit.value, Generator):
        return conflict.culprit, conflict.other
    return conflict.other, conflict.culprit


def _message(fact: Conflict, source: Source) -> str:
    generator, wanted = _sides(fact)
    name = wording.text_of(generator.node, source)
    return (
        f"the generator `{name}` is on {wording.place_name(generator.place)}, the numbers are wanted on "
        f"{wording.place_name(wanted.place)}"
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    generator, wanted = _sides(fact)
    made = generator.value
    if not isinstance(made, Generator) or not isinstance(made.origin.node, ast.Call):
        return None
    call = made.origin.node
    device = wording.device_expression(fact, source, at=call, beside=wanted)
    if device is None or made.origin.function != fact.where.function or call.args or call.keywords:
        return None
    text = f"{source.segment(call.func)}({device})"
    return Fix(text, (edits.replace(source, call, text),))


RULE = Rule("SD111", "generator-device", Conflict, _claims, _message, fix=_fix)
