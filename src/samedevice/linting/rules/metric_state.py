"""SD121: what a metric or loop has accumulated is not where the values are that it takes in."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, mending, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import held_of, is_certain, is_tensor
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    held = held_of(fact)
    if not is_tensor(fact) or not is_certain(fact):
        return False
    if fact.role == "inplace" and isinstance(fact.node, ast.AugAssign):
        # What gets the value must be what was kept: made before, and no result of this very expression.
        written = fact.culprit.node is fact.node.target
        return written and (held is None or not held.in_module)
    return held is not None and held.kind == "attribute" and not held.in_module and held.accumulates


def _message(fact: Conflict, source: Source) -> str:
    name = wording.text_of(fact.culprit.node, source)
    return say(
        "`{name}` is kept on {here} from call to call and meets a tensor on {there}",
        name=name,
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    """The new value goes to what is kept, so that what was counted before stays where it is."""
    node, kept = fact.other.node, fact.culprit.node
    if not isinstance(fact.node, ast.AugAssign):
        return mending.move_at_use(fact, source)
    if node is not fact.node.value or not isinstance(kept, ast.Name | ast.Attribute):
        return None
    suffix = f".to({source.segment(kept)}.device)"
    return Fix(wording.text_with(suffix, node, source), (edits.append(source, node, suffix),))


RULE = Rule("SD121", "metric-state", Conflict, _claims, _message, fix=_fix)
