"""SD117: a tensor at module level stays where it was made, and a function uses it with others."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.devices.values import Tensor
from samedevice.linting.evidence import conflict_over, held_of, is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact, Tensor)
    held = held_of(conflict) if conflict is not None else None
    return conflict is not None and held is not None and held.kind == "global" and is_certain(conflict)


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    held = held_of(fact)
    assert held is not None
    return (
        f"`{held.name}` is made at module level on {wording.place_name(fact.culprit.place)} and used here with a tensor on "
        f"{wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    device = wording.device_expression(fact, source)
    node = fact.culprit.node
    if device is None or not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.to({device})", (edits.append(source, node, f".to({device})"),))


RULE = Rule("SD117", "global-tensor", _claims, _at, _message, _fix)
