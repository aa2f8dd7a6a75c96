"""SD110: `pack_padded_sequence` wants its lengths on the CPU."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return fact.role == "lengths"


def _message(fact: Conflict, source: Source) -> str:
    name = wording.text_of(fact.culprit.node, source)
    return say(
        "pack_padded_sequence wants its lengths on the CPU; `{name}` is on {here}", name=name, here=wording.here(fact)
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    node = fact.culprit.node
    if not isinstance(node, ast.expr):
        return None
    return Fix(f"{wording.text_of(node, source)}.cpu()", (edits.append(source, node, ".cpu()"),))


RULE = Rule("SD110", "lengths-must-be-cpu", Conflict, _claims, _message, fix=_fix)
