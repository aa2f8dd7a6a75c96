"""SD107: `.cuda()` or "cuda:0" is written down where the program works on another device."""

from __future__ import annotations

import ast

from samedevice.findings import Fix
from samedevice.linting import edits, wording
from samedevice.linting.devices.facts import Conflict, Fact
from samedevice.linting.evidence import conflict_over, made_here, on_accelerator, origin_of
from samedevice.linting.rule import Rule
from samedevice.linting.source import Source


def _claims(fact: Fact) -> bool:
    conflict = conflict_over(fact)
    origin = origin_of(conflict) if conflict is not None else None
    return conflict is not None and origin is not None and origin.literal and on_accelerator(conflict)


def _at(fact: Fact) -> ast.AST:
    assert isinstance(fact, Conflict)
    origin = origin_of(fact)
    assert origin is not None
    return origin.node


def _message(fact: Fact, source: Source) -> str:
    assert isinstance(fact, Conflict)
    line = getattr(fact.node, "lineno", 0)
    return (
        f"`{wording.text_of(_at(fact), source)}` names {wording.place_name(fact.culprit.place)}; line {line} uses it with a "
        f"tensor on {wording.place_name(fact.other.place)}"
    )


def _fix(fact: Fact, source: Source) -> Fix | None:
    assert isinstance(fact, Conflict)
    node = _at(fact)
    device = wording.device_expression(fact, source, at=node)
    if (
        device is None
        or not made_here(fact)
        or not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
    ):
        return None
    if node.func.attr not in ("cuda", "to"):
        return None
    text = f"{source.segment(node.func.value)}.to({device})"
    return Fix(text, (edits.replace(source, node, text),))


RULE = Rule("SD107", "hardcoded-device", _claims, _at, _message, _fix)
