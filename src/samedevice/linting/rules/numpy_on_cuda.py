"""SD112: numpy reads memory of the CPU only."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return fact.role == "numpy" and is_certain(fact)


def _message(fact: Conflict, source: Source) -> str:
    name, here = wording.text_of(fact.culprit.node, source), wording.here(fact)
    if fact.culprit.argument == "item":
        return say("an item of `{name}` is on {here}; numpy needs it on the CPU", name=name, here=here)
    return say("`{name}` is on {here}; numpy needs it on the CPU", name=name, here=here)


def _fix(fact: Conflict, source: Source) -> Fix | None:
    node = fact.culprit.node
    if not isinstance(node, ast.expr) or fact.culprit.argument == "item":
        return None
    return Fix(f"{wording.text_of(node, source)}.cpu()", (edits.append(source, node, ".cpu()"),))


RULE = Rule("SD112", "numpy-on-cuda", Conflict, _claims, _message, fix=_fix)
