"""SD110: `pack_padded_sequence` wants its lengths on the CPU."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact, Operand
from samedevice.linting.evidence import conflict_over
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact)
    return conflict is not None and conflict.role == "lengths"


def _at(fact: Fact) -> ast.AST:
    return fact.node


def _lengths(conflict: Conflict) -> Operand:
    return conflict.culprit if conflict.culprit.argument == "lengths" else conflict.other


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    lengths = _lengths(fact)
    name = wording.text_of(lengths.node, source)
    return f"pack_padded_sequence wants its lengths on the CPU; `{name}` is on {wording.place_name(lengths.place)}"


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    node = _lengths(fact).node
    if not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.cpu()", (edits.append(source, node, ".cpu()"),))


RULE = Rule("SD110", "lengths-must-be-cpu", _claims, _at, _message, _fix)
