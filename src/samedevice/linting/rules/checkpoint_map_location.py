"""SD113: `torch.load` without `map_location` brings tensors back to the device that saved them."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, naming, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import is_certain, made_here, origin_node, origin_of
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    origin = origin_of(fact)
    return origin is not None and origin.how == "loaded" and is_certain(fact)


def _message(fact: Conflict, source: Source) -> str:
    return say(
        "`{code}` brings back tensors on {here}, where they were saved; {line} uses them with one on {there}",
        code=wording.text_of(origin_node(fact), source),
        line=wording.line(wording.line_of(fact.node)),
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    node = origin_node(fact)
    if not isinstance(node, ast.Call) or not made_here(fact):
        return None
    device = naming.device_expression(fact, source, at=node)
    if device is None:
        return None
    keyword = f"map_location={device}"
    safe = naming.holds_everywhere(device, source)
    return Fix(keyword, (edits.add_keyword(source, node, keyword),), safe=safe)


RULE = Rule("SD113", "checkpoint-map-location", Conflict, _claims, _message, at=origin_node, fix=_fix)
