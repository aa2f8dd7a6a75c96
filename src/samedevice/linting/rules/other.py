"""SD900: faults without a cause of their own: a leaf that a move replaced, a gradient on another device."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, leaves, wording
from samedevice.linting.devices.facts import Conflict, Fact, LostLeaf, WeightUntied
from samedevice.linting.evidence import is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source

_ROLES = {"gradient"}


def _claims(fact: Fact) -> bool:
    if isinstance(fact, LostLeaf | WeightUntied):
        return True
    return isinstance(fact, Conflict) and fact.role in _ROLES and is_certain(fact)


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    if isinstance(fact, WeightUntied):
        weight = wording.text_of(fact.weight, source)
        return f"this makes a second Parameter over the storage of `{weight}`; moving the model takes the two apart"
    if isinstance(fact, LostLeaf):
        line = getattr(leaves.move_of(fact), "lineno", 0)
        return f"a tensor that requires gradients was moved in line {line}: the copy is no leaf, so " + (
            "it is no parameter" if fact.use == "parameter" else "no optimizer can train it"
        )
    assert isinstance(fact, Conflict)
    return f"a gradient on {wording.place_name(fact.other.place)} is given to a tensor on {wording.place_name(fact.culprit.place)}"


def _fix(fact: Fact, source: Source) -> Fix | None:
    if isinstance(fact, LostLeaf):
        return leaves.made_in_place(fact, source)
    if not isinstance(fact, Conflict):
        return None
    node = fact.node
    if not isinstance(node, ast.Attribute):
        return None
    owner = source.segment(node.value)
    for statement in ast.walk(source.tree):
        if isinstance(statement, ast.Assign) and statement.targets == [node]:
            edit = edits.append(source, statement.value, f".to({owner}.device)")
            return Fix(f"{source.segment(statement.value)}.to({owner}.device)", (edit,))
    return None


RULE = Rule("SD900", "other", _claims, _at, _message, _fix)
