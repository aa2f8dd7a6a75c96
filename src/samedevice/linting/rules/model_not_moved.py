"""SD102: a model that was never moved gets inputs that were."""

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
    return conflict is not None and is_certain(conflict) and conflict.role != "replicas"


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict) and isinstance(fact.culprit.value, Module)
    module = fact.culprit.value
    name = wording.text_of(fact.culprit.node, source)
    moved = getattr(module.moved_at, "lineno", None)
    since = f"since line {moved} " if moved is not None else ""
    return (
        f"`{name}` is {since}on {wording.place_name(fact.culprit.place)} and is called with a tensor on "
        f"{wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict) and isinstance(fact.culprit.value, Module)
    made = fact.culprit.value.origin.node
    device = wording.device_expression(fact, source, at=made)
    if device is None or fact.culprit.value.moved or not made_here(fact) or not isinstance(made, ast.Call):
        return None
    return Fix(f"{wording.text_of(made, source)}.to({device})", (edits.append(source, made, f".to({device})"),))


RULE = Rule("SD102", "model-not-moved", _claims, _at, _message, _fix)
