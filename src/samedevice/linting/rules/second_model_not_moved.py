"""SD119: a teacher, a copy or a target network stayed behind when the first model was moved."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.devices.values import Module
from samedevice.linting.evidence import conflict_over, is_certain, made_here
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact, Module)
    if conflict is None or not is_certain(conflict) or conflict.role not in ("module", "hidden"):
        return False
    module = conflict.culprit.value
    return isinstance(module, Module) and module.copied and not module.moved


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    name = wording.text_of(fact.culprit.node, source)
    return (
        f"`{name}` was copied on {wording.place_name(fact.culprit.place)} and not moved since; it is called with a tensor on "
        f"{wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict) and isinstance(fact.culprit.value, Module)
    made = fact.culprit.value.origin.node
    device = wording.device_expression(fact, source, at=made)
    if device is None or not made_here(fact) or not isinstance(made, ast.Call):
        return None
    return Fix(f"{wording.text_of(made, source)}.to({device})", (edits.append(source, made, f".to({device})"),))


RULE = Rule("SD119", "second-model-not-moved", _claims, _at, _message, _fix)
