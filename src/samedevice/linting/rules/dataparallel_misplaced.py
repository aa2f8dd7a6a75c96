"""SD116: DataParallel wants its module on the first of its devices."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Operand
from samedevice.linting.devices.places import CPU, resolve
from samedevice.linting.devices.values import Module
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return fact.role == "replicas"


def _sides(conflict: Conflict) -> tuple[Operand, Operand]:
    """The module, and the first device."""
    sides = (conflict.culprit, conflict.other)
    return sides if isinstance(conflict.culprit.value, Module) else sides[::-1]


def _message(fact: Conflict, source: Source) -> str:
    module, first = _sides(fact)
    return say(
        "DataParallel copies its module from {there}, the first of its devices; the module is on {here}",
        here=wording.place_name(module.place),
        there=wording.place_name(first.place),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    module, _ = _sides(fact)
    made = module.node
    if module.place is None or resolve(module.place) != CPU or not isinstance(made, ast.Call):
        return None
    return Fix(f'{wording.text_of(made, source)}.to("cuda")', (edits.append(source, made, '.to("cuda")'),))


RULE = Rule("SD116", "dataparallel-misplaced", Conflict, _claims, _message, fix=_fix)
