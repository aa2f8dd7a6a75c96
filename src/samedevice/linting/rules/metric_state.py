"""SD121: what a metric or loop has accumulated is not where the values are that it takes in."""

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
    if conflict is None or not is_certain(conflict):
        return False
    held = held_of(conflict)
    if conflict.role == "inplace" and isinstance(conflict.node, ast.AugAssign):
        return held is None or not held.in_module
    return held is not None and held.kind == "attribute" and not held.in_module and held.accumulates


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    name = wording.text_of(fact.culprit.node, source)
    return (
        f"`{name}` is kept on {wording.place_name(fact.culprit.place)} from call to call and meets a tensor on "
        f"{wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    """The new value goes to what is kept, so that what was counted before stays where it is."""
    assert isinstance(fact, Conflict)
    node, kept = fact.other.node, fact.culprit.node
    if (
        not isinstance(fact.node, ast.AugAssign)
        or node is not fact.node.value
        or not isinstance(kept, ast.Name | ast.Attribute)
    ):
        return None
    suffix = f".to({source.segment(kept)}.device)"
    return Fix(f"{wording.text_of(node, source)}{suffix}", (edits.append(source, node, suffix),))


RULE = Rule("SD121", "metric-state", _claims, _at, _message, _fix)
