"""SD109: a tensor is indexed by one on another device; only the CPU or the tensor's own device is accepted."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, mending, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import is_certain
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    return fact.role in ("index", "value") and is_certain(fact)


def _message(fact: Conflict, source: Source) -> str:
    return say(
        "`{code}`: `{name}` is on {here}, `{other}` on {there}",
        code=wording.text_of(fact.node, source),
        name=wording.text_of(fact.culprit.node, source),
        other=wording.text_of(fact.other.node, source),
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    index = fact.other.node
    if fact.role == "index" and isinstance(index, ast.expr) and fact.other.argument == "indices":
        if isinstance(index, ast.Starred):
            return None
        return Fix(wording.text_with(".cpu()", index, source), (edits.append(source, index, ".cpu()"),))
    return mending.move_at_use(fact, source)


RULE = Rule("SD109", "index-device", Conflict, _claims, _message, fix=_fix)
