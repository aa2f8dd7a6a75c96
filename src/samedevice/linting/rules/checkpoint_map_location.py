"""SD113: `torch.load` without `map_location` brings tensors back to the device that saved them."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict
from samedevice.linting.evidence import is_certain, origin_of
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source
from samedevice.texts import say


def _claims(fact: Conflict) -> bool:
    origin = origin_of(fact)
    return origin is not None and origin.how == "loaded" and is_certain(fact)


def _at(fact: Conflict) -> ast.AST:
    origin = origin_of(fact)
    assert origin is not None
    return origin.node


def _message(fact: Conflict, source: Source) -> str:
    return say(
        "`{code}` brings back tensors on {here}, where they were saved; {line} uses them with one on {there}",
        code=wording.text_of(_at(fact), source),
        line=wording.line(wording.line_of(fact.node)),
        here=wording.here(fact),
        there=wording.there(fact),
    )


def _fix(fact: Conflict, source: Source) -> Fix | None:
    origin = origin_of(fact)
    node = _at(fact)
    if origin is None or not isinstance(node, ast.Call) or origin.function != fact.where.function:
        return None
    device = wording.device_expression(fact, source, at=node)
    if device is None:
        return None
    return Fix(f"map_location={device}", (edits.add_keyword(source, node, f"map_location={device}"),))


RULE = Rule("SD113", "checkpoint-map-location", Conflict, _claims, _message, at=_at, fix=_fix)
