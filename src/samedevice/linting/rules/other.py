"""SD900: faults without a cause of their own: a leaf that a move replaced, a gradient on another device."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, leaves, wording
from samedevice.linting.devices.facts import Conflict, LostLeaf, WeightUntied
from samedevice.linting.evidence import is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source

_Fact = Conflict | LostLeaf | WeightUntied


def _claims(fact: _Fact) -> bool:
    return not isinstance(fact, Conflict) or (fact.role == "gradient" and is_certain(fact))


def _message(fact: _Fact, source: Source) -> str:
    if isinstance(fact, WeightUntied):
        weight = wording.text_of(fact.weight, source)
        return f"this makes a second Parameter over the storage of `{weight}`; moving the model takes the two apart"
    if isinstance(fact, LostLeaf):
        line = wording.line_of(leaves.move_of(fact))
        return f"a tensor that requires gradients was moved in line {line}: the copy is no leaf, so " + (
            "it is no parameter" if fact.use == "parameter" else "no optimizer can train it"
        )
    assert isinstance(fact, Conflict)
    return f"a gradient on {wording.there(fact)} is given to a tensor on {wording.here(fact)}"


def _fix(fact: _Fact, source: Source) -> Fix | None:
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


RULE: Rule[_Fact] = Rule("SD900", "other", (Conflict, LostLeaf, WeightUntied), _claims, _message, fix=_fix)
