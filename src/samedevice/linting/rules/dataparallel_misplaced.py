"""SD116: DataParallel wants its module on the first of its devices."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact, Operand
from samedevice.linting.devices.places import CPU, resolve
from samedevice.linting.devices.values import Module
from samedevice.linting.evidence import conflict_over
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact)
    return conflict is not None and conflict.role == "replicas"


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _sides(conflict: Conflict) -> tuple[Operand, Operand]:
    """The module, and the first device."""
    sides = (conflict.culprit, conflict.other)
    return sides if isinstance(conflict.culprit.value, Module) else sides[::-1]


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    module, first = _sides(fact)
    return (
        f"DataParallel copies its module from {wording.place_name(first.place)}, the first of its devices; the module is on "
        f"{wording.place_name(module.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    module, _ = _sides(fact)
    made = module.node
    if module.place is None or resolve(module.place) != CPU or not isinstance(made, ast.Call):
        return None
    return Fix(f'{wording.text_of(made, source)}.to("cuda")', (edits.append(source, made, '.to("cuda")'),))


RULE = Rule("SD116", "dataparallel-misplaced", _claims, _at, _message, _fix)
