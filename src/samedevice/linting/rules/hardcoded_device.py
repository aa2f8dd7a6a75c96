"""SD107: `.cuda()` or "cuda:0" is written down where the program works on another device."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, naming, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.devices.method_tables import MOVES
from samedevice.linting.evidence import made_here, on_accelerator, origin_node, origin_of
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    origin = origin_of(fact)
    return origin is not None and origin.literal and on_accelerator(fact)


def _message(fact: Conflict, source: Source) -> str:
    return say(
        "`{code}` names {here}; {line} uses it with a tensor on {there}",
        code=wording.text_of(origin_node(fact), source),
        line=wording.line(wording.line_of(fact.node)),
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    node = origin_node(fact)
    device = naming.device_expression(fact, source, at=node)
    if (
        device is None
        or not made_here(fact)
        or not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
    ):
        return None
    if node.func.attr not in ("to", *MOVES):
        return None
    text = f"{source.segment(node.func.value)}.to({device})"
    return Fix(text, (edits.replace(source, node, text),), safe=naming.holds_everywhere(device, source))


RULE = Rule("SD107", "hardcoded-device", Conflict, _claims, _message, at=origin_node, fix=_fix)
