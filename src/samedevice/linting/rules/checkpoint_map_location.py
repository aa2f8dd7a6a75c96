"""SD113: `torch.load` without `map_location` brings tensors back to the device that saved them."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.evidence import conflict_over, is_certain, origin_of
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact)
    origin = origin_of(conflict) if conflict is not None else None
    return conflict is not None and origin is not None and origin.how == "loaded" and is_certain(conflict)


def _at(fact: Fact) -> ast.AST:
    assert isinstance(fact, Conflict)
    origin = origin_of(fact)
    assert origin is not None
    return origin.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    line = getattr(fact.node, "lineno", 0)
    return (
        f"`{wording.text_of(_at(fact), source)}` brings back tensors on {wording.place_name(fact.culprit.place)}, where they "
        f"were saved; line {line} uses them with one on {wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    origin = origin_of(fact)
    node = _at(fact)
    if origin is None or not isinstance(node, ast.Call) or origin.function != fact.where.function:
        return None
    device = wording.device_expression(fact, source, at=node)
    if device is None:
        return None
    return Fix(f"map_location={device}", (edits.add_keyword(source, node, f"map_location={device}"),))


RULE = Rule("SD113", "checkpoint-map-location", _claims, _at, _message, _fix)
